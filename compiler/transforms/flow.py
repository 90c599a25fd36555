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

from collections.abc import Sequence

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
from .regions import Backward, Cotangents, Gradients, add_results, spread
from .sums import added
from .trips import Trip
from .unknown_trips import cotangents_of_trips


def flow_cotangents(
    builder: Builder,
    node: Node,
    cotangents: Cotangents,
    wanted: Sequence[bool],
    gradients: Gradients,
) -> Cotangents:
    """The cotangents of a node's operands. wanted: of which; the others are None."""
    return _RULES[node.op.name](builder, node, cotangents, wanted, gradients)


# -- branches


def _cond(
    builder: Builder, node: Node, cts: Cotangents, wanted: Sequence[bool], gradients: Gradients
) -> Cotangents:
    arrived = [ct for ct in cts if ct is not None]
    places = [at for at, want in enumerate(wanted) if want and at]
    arms = [Backward.of_copy(region, gradients) for region in node.regions]
    for arm in arms:
        weights: list[Value | None] = [
            None if ct is None else arm.param("ct", ct.tensor) for ct in cts
        ]
        found = arm.of_params(weights, [at - 1 for at in places])
        arm.results = [arm.zero(arm.given[at - 1]) if g is None else g
                       for at, g in zip(places, found)]  # fmt: skip
    used = {at for arm in arms for at in arm.needed()}
    kept = [at for at in range(len(node.operands) - 1) if at in used]
    regions = [
        arm.finish([*[arm.given[at] for at in kept], *arm.added]) for arm in arms
    ]  # fmt: skip
    operands = [node.operands[0], *[node.operands[at + 1] for at in kept], *arrived]
    made = builder.emit_all(cond, operands, {}, regions=regions)
    return spread(len(node.operands), dict(zip(places, made)))


def _recompute(
    builder: Builder, node: Node, cts: Cotangents, wanted: Sequence[bool], gradients: Gradients
) -> Cotangents:
    """In a scan of one trip: nothing in it is merged with what was computed before."""
    (region,) = node.regions
    places = [at for at, want in enumerate(wanted) if want]
    arm = Backward.of_copy(region, gradients)
    weights = [None if ct is None else arm.param("ct", ct.tensor) for ct in cts]
    found = arm.of_params(weights, places)
    arm.results = [arm.zero(arm.given[at]) if g is None else g
                   for at, g in zip(places, found)]  # fmt: skip
    used = arm.needed()
    graph = arm.finish([*[arm.given[at] for at in used], *arm.added])
    operands = [*[node.operands[at] for at in used], *[ct for ct in cts if ct is not None]]
    once = {"carried": 0, "length": 1, "reverse": False, "stacked": 0}
    stacks = builder.emit_all(scan, operands, once, regions=[graph])
    made = [
        builder.emit("reshape", (stack,), {"shape": node.operands[at].tensor.shape})
        for at, stack in zip(places, stacks)
    ]
    return spread(len(node.operands), dict(zip(places, made)))


# -- loops


def _for(
    builder: Builder, node: Node, cts: Cotangents, wanted: Sequence[bool], gradients: Gradients
) -> Cotangents:
    """As the scan that the loop is made into, which has the counter behind what it carried; where
    its trips are not known, as they come."""
    if not _becomes_scan(builder, node):
        rule = cotangents_of_bounded if "most" in node.attrs else cotangents_of_trips
        return rule(builder, node, cts, wanted, gradients)
    carried = node.attrs["carried"] - 1
    made = _scan(
        builder,
        node,
        [*cts[:carried], None],
        [*wanted[2 : 2 + carried], False, *wanted[2 + carried :]],
        gradients,
    )
    return [None, None, *made[:carried], *made[carried + 1 :]]


def _scan(
    builder: Builder, node: Node, cts: Cotangents, wanted: Sequence[bool], gradients: Gradients
) -> Cotangents:
    carried, stacked = node.attrs["carried"], node.attrs["stacked"]
    (region,) = node.regions
    body = Trip(region, gradients)
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
    sums = [body.param("dx", region.params[at].tensor) for at in uses]
    for at in ys:
        weights[at] = body.param("dy", tensors[at].tensor)
    found = dict(zip((*carries, *rows, *uses), body.of_params(weights, (*carries, *rows, *uses))))
    body.results = [found[at] or body.zero(body.given[at]) for at in carries]
    for at, total in zip(uses, sums):
        part = found[at]
        body.results.append(total if part is None else added(body.builder, total, part))
    body.results += [found[at] or body.zero(body.given[at]) for at in rows]

    kept = body.kept(carried)
    read = body.read(kept)
    kept = [value for value in kept if value in read]
    again = [at for at in range(carried, carried + stacked) if region.params[at] in read]
    rest = [at for at in range(carried + stacked, len(region.params)) if region.params[at] in read]
    first = [weights[at] for at in carries]
    last = [weights[at] for at in ys]
    order = [*first, *sums, *kept, *[region.params[at] for at in again], *last,
             *[region.params[at] for at in rest]]  # fmt: skip
    backward = body.backward([value for value in order if value is not None])
    stacks = _widen(builder, node, body.forward(kept), kept)
    operands = [
        *[_or_zeros(builder, cts[at], node.results[at]) for at in carries],
        *[zeros_like(builder, node.operands[at]) for at in uses],
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
    return spread(len(node.operands), dict(zip((*carries, *uses, *rows), made)))


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


# -- words


def _at(cts: Cotangents, at: int) -> Value | None:
    return cts[at] if at < len(cts) else None


def _or_zeros(builder: Builder, ct: Value | None, like: Value) -> Value:
    if ct is not None:
        return ct
    made: Value = zeros_like(builder, like)
    return made


_RULES = {
    cond.name: _cond,
    for_.name: _for,
    while_.name: cotangents_of_trips,
    scan.name: _scan,
    recompute.name: _recompute,
    custom_vjp.name: custom_vjp_cotangents,
    custom_jvp.name: custom_jvp_cotangents,
}
