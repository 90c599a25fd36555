"""Gradients through control flow: what the cotangents of a branch's or loop's results become.

A branch is taken again, for its gradient; so is what is marked to be computed again. A loop is run
backwards by a scan over what each trip began with, which the loop is made to stack as it goes:

    c..., y... = scan c0..., s..., x...          forward; now also gives the stacks c[0..n-1]
    dc0..., dx..., ds... = scan dc..., 0..., c[0..n-1], s..., dy..., x...      reversed

Each of its trips computes the forward trip again, from what that began with, and carries the
cotangents of what the loop carries and the sums of those of what it uses. A counting loop becomes
a scan when it is differentiated, if how many trips it makes is known as a size; for others see
bounded_trips.py and unknown_trips.py.

Invariants: a loop that is differentiated gives more results than before, and those it gave.
Prints and checks happen in forward trips alone.
Not here: straight lines (grad.py), derivatives that users write (custom.py), the regions of
gradients (regions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..dims import Size, maximum
from ..ir.attrs import freeze
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.traversal import counted
from ..ops import ALL
from ..ops.creation import constant
from ..ops.derivative import custom_jvp, custom_vjp, recompute
from ..ops.flow import cond, for_, scan, while_
from ..ops.movement import reshape
from ..ops.shaping import zeros_like
from ..records import replace
from ..types import I64, TensorType
from .bounded_trips import cotangents_of_bounded
from .custom import custom_jvp_cotangents, custom_vjp_cotangents
from .reach import carried_between, carried_pairs, tensors_of
from .regions import Asked, Cotangents, add_results, region_again
from .trips import Trip
from .unknown_trips import cotangents_of_trips

Rule = Callable[[Builder, Node, Asked], Cotangents]


def flow_cotangents(builder: Builder, node: Node, asked: Asked) -> Cotangents:
    """The cotangents of a node's operands, with what was added up of them before."""
    return _RULES[node.op.name](builder, node, asked)


# -- branches


def _cond(builder: Builder, node: Node, asked: Asked) -> Cotangents:
    """What a loop in a branch leaves for its way back it leaves in there: the branch is taken
    again. Others leave little things of large operands behind."""
    places = [at for at, want in enumerate(asked.wanted) if want and at]
    before = {at: ct for at in places if (ct := asked.before[at]) is not None}
    again = any(inner.regions for region in node.regions for inner in region.nodes)
    arms = [
        Trip(region_again(region) if again else region, asked.gradients) for region in node.regions
    ]
    for arm in arms:
        weights = [None if ct is None else arm.param("ct", ct.tensor) for ct in asked.arrived]
        sums = {at: arm.param("dx", ct.tensor) for at, ct in before.items()}
        found = arm.of_params(weights, [at - 1 for at in places])
        arm.results = [
            arm.total(sums.get(at), part, arm.given[at - 1]) for at, part in zip(places, found)
        ]
    count = len(node.operands) - 1
    little = [[] if again else [v for v in arm.kept(count) if v not in arm.given] for arm in arms]
    read = [arm.read(kept) for arm, kept in zip(arms, little)]
    used = [at for at in range(count) if any(arm.given[at] in r for arm, r in zip(arms, read))]
    left = [value for values in little for value in values]
    kept = _leave(builder, node, arms, left)
    regions = []
    for arm, own in zip(arms, little):
        given = [v if v in own else arm.builder.param("other", v.tensor) for v in left]
        regions.append(arm.backward([*[arm.given[at] for at in used], *given, *arm.added]))
    arrived = [ct for ct in asked.arrived if ct is not None]
    operands = [node.operands[0], *[node.operands[1 + at] for at in used], *kept, *arrived]
    made = builder.emit_all(cond, [*operands, *before.values()], {}, regions=regions)
    return asked.answer(builder, dict(zip(places, made)), places)


def _leave(
    builder: Builder, node: Node, arms: Sequence[Trip], left: Sequence[Value]
) -> list[Value]:
    """Let a branch give also what its arms leave behind, zeros where the other one was taken."""
    if not left:
        return []
    node.regions = tuple([
        arm.forward([v if arm.makes(v) else zeros_like(arm.builder, v) for v in left])
        for arm in arms
    ])  # fmt: skip
    return add_results(builder, node, [value.tensor for value in left])


def _recompute(builder: Builder, node: Node, asked: Asked) -> Cotangents:
    """In a scan of one trip: nothing in it is merged with what was computed before."""
    (region,) = node.regions
    places = [at for at, want in enumerate(asked.wanted) if want]
    arm = Trip(region_again(region), asked.gradients)
    weights = [None if ct is None else arm.param("ct", ct.tensor) for ct in asked.arrived]
    found = arm.of_params(weights, places)
    arm.results = [arm.total(None, part, arm.given[at]) for at, part in zip(places, found)]
    read = arm.read(())
    used = [at for at, param in enumerate(arm.given) if param in read]
    graph = arm.backward([*[arm.given[at] for at in used], *arm.added])
    arrived = [ct for ct in asked.arrived if ct is not None]
    operands = [*[node.operands[at] for at in used], *arrived]
    once = {"carried": 0, "length": 1, "reverse": False, "stacked": 0}
    stacks = builder.emit_all(scan, operands, once, regions=[graph])
    made = [
        builder.emit("reshape", (stack,), {"shape": node.operands[at].tensor.shape})
        for at, stack in zip(places, stacks)
    ]
    return asked.answer(builder, dict(zip(places, made)))


def _by_rule(rule: Callable[..., Cotangents]) -> Rule:
    """A rule of the user's."""

    def apply(builder: Builder, node: Node, asked: Asked) -> Cotangents:
        made = rule(builder, node, asked.arrived, asked.wanted, asked.gradients)
        found = {at: ct for at, ct in enumerate(made) if asked.wanted[at]}
        return asked.answer(builder, found)

    return apply


# -- loops


def _for(builder: Builder, node: Node, asked: Asked) -> Cotangents:
    """As the scan that the loop is made into, which has the counter behind what it carried; where
    its trips are not known, as they come."""
    if not _becomes_scan(builder, node):
        rule = cotangents_of_bounded if "most" in node.attrs else cotangents_of_trips
        return rule(builder, node, asked)
    carried = node.attrs["carried"] - 1
    arrived, wanted, before = asked.arrived, asked.wanted, asked.before
    made = _scan(
        builder,
        node,
        replace(
            asked,
            arrived=[*arrived[:carried], None],
            wanted=[*wanted[2 : 2 + carried], False, *wanted[2 + carried :]],
            before=[*before[2 : 2 + carried], None, *before[2 + carried :]],
        ),
    )
    return [*before[:2], *made[:carried], *made[carried + 1 :]]


def _scan(builder: Builder, node: Node, asked: Asked) -> Cotangents:
    carried, stacked = node.attrs["carried"], node.attrs["stacked"]
    (region,) = node.regions
    cts, wanted = asked.arrived, asked.wanted
    body = Trip(region, asked.gradients)
    tensors = tensors_of(region.results)
    ys = [at for at in range(carried, len(tensors)) if _at(cts, at) is not None]
    carries = carried_between(
        region,
        {param for param, want in zip(region.params, wanted) if want},
        [v for at, v in enumerate(tensors) if _at(cts, at) is not None],
        carried_pairs(node),
    )
    rows = [at for at in range(carried, carried + stacked) if wanted[at]]
    uses = [at for at in range(carried + stacked, len(node.operands)) if wanted[at]]

    weights: list[Value | None] = [None] * len(tensors)
    for at in carries:
        weights[at] = body.param("dc", tensors[at].tensor)
    sums = {at: body.param("dx", region.params[at].tensor) for at in uses}
    for at in ys:
        weights[at] = body.param("dy", tensors[at].tensor)
    places = (*carries, *uses, *rows)
    found = body.of_params(weights, places)
    body.results = [
        body.total(sums.get(at), part, body.given[at]) for at, part in zip(places, found)
    ]

    kept = body.kept(carried)
    read = body.read(kept)
    again = [at for at in range(carried, carried + stacked) if region.params[at] in read]
    rest = [at for at in range(carried + stacked, len(region.params)) if region.params[at] in read]
    first = [weights[at] for at in carries]
    last = [weights[at] for at in ys]
    order = [*first, *sums.values(), *kept, *[region.params[at] for at in again], *last,
             *[region.params[at] for at in rest]]  # fmt: skip
    backward = body.backward([value for value in order if value is not None])
    stacks = _widen(builder, node, body.forward(kept), kept)
    operands = [
        *[cts[at] or zeros_like(builder, node.results[at]) for at in carries],
        *[asked.start(builder, at, node.operands[at]) for at in uses],
        *stacks,
        *[node.operands[at] for at in again],
        *[cts[at] for at in ys],
        *[node.operands[at] for at in rest],
    ]
    attrs = {
        "carried": len(carries) + len(uses),
        "length": node.attrs["length"],
        "reverse": not node.attrs["reverse"],
        "stacked": len(kept) + len(again) + len(ys),
    }
    made = builder.emit_all(scan, operands, attrs, regions=[backward])
    return asked.answer(builder, dict(zip(places, made)), uses)


def _becomes_scan(builder: Builder, node: Node) -> bool:
    """Make a counting loop a scan over nothing, that carries the counter last, if its number of
    trips is known as a size."""
    begin, end = (_known_size(bound) for bound in node.operands[:2])
    if begin is None or end is None:
        return False
    (region,) = node.regions
    carried = node.attrs["carried"]
    inner = Builder.extending(region)
    counter, *params = region.params
    inner.params = [*params[:carried], counter, *params[carried:]]
    following = inner.emit("add", (counter, inner.constant(1, I64)))
    tensors = tensors_of(region.results)
    tokens = region.results[len(tensors) :]
    made = inner.finish([*tensors, following], tokens)
    node.regions = (replace(made, results=(*tensors, following, *tokens)),)
    held, rest = node.operands[2 : 2 + carried], node.operands[2 + carried :]
    node.op = scan
    node.operands = (*held, node.operands[0], *rest)
    node.attrs = freeze({
        "carried": carried + 1, "length": maximum(0, end - begin), "reverse": False, "stacked": 0,
    })  # fmt: skip
    add_results(builder, node, [counter.tensor])
    return True


def _widen(builder: Builder, node: Node, region: Graph, values: Sequence[Value]) -> list[Value]:
    """Let a scan run a region that gives also these values; the stacks of them."""
    node.regions = (region,)
    length = node.attrs["length"]
    types = [TensorType(v.tensor.dtype, (length, *v.tensor.shape)) for v in values]
    return add_results(builder, node, types)


def _known_size(value: Value) -> Size | None:
    """The integer that a value is wherever the graph runs, if it follows from constants and
    sizes: a size is the last element of an iota."""
    node = value.node
    if node is None:
        return None
    if node.op is constant:
        return int(node.attrs["value"])
    if node.op is reshape:
        return _known_size(node.operands[0])
    if node.op is ALL["sub"] or node.op is ALL["add"]:
        left, right = map(_known_size, node.operands)
        if left is not None and right is not None:
            return left - right if node.op is ALL["sub"] else left + right
    return counted(value)


def _at(cts: Cotangents, at: int) -> Value | None:
    return cts[at] if at < len(cts) else None


_RULES: Mapping[str, Rule] = {
    cond.name: _cond,
    for_.name: _for,
    while_.name: cotangents_of_trips,
    scan.name: _scan,
    recompute.name: _recompute,
    custom_vjp.name: _by_rule(custom_vjp_cotangents),
    custom_jvp.name: _by_rule(custom_jvp_cotangents),
}
