"""Gradients through control flow: what the cotangents of a branch's or loop's results become.

A branch is taken again, for its gradient; so is what is marked to be computed again. A loop is run
backwards by a scan over what each trip began with, which the loop is made to stack as it goes:

    c..., y... = scan c0..., s..., x...          forward; now also gives the stacks c[0..n-1]
    dc0..., dx..., ds... = scan dc..., 0..., c[0..n-1], s..., dy..., x...      reversed

Each of its trips computes the forward trip again, from what that began with, and carries the
cotangents of what the loop carries and the sums of those of what it uses. A counting loop becomes
a scan when it is differentiated, if how many trips it makes, or makes at most, is known as a size.

Invariants: a loop that is differentiated gives more results than before, and those it gave.
Prints and checks happen in forward trips alone.
Not here: straight lines (grad.py), derivatives that users write (custom.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..dims import Size, maximum
from ..errors import error
from ..ir.attrs import freeze
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.traversal import counted, needed
from ..ops import ALL
from ..ops.creation import constant
from ..ops.derivative import custom_jvp, custom_vjp, recompute
from ..ops.flow import cond, for_, scan
from ..ops.movement import reshape
from ..ops.shaping import zeros_like
from ..records import replace
from ..types import I64, TensorType
from .custom import custom_jvp_cotangents, custom_vjp_cotangents
from .reach import carried_between, carried_pairs, tensors_of

# gradients(builder, outputs, inputs, cotangents) of grad.py, with the rules in use.
Gradients = Callable[
    [Builder, Sequence[Value], Sequence[Value], Sequence[Value | None]], list[Value | None]
]
Cotangents = Sequence[Value | None]


def flow_cotangents(
    builder: Builder,
    node: Node,
    cotangents: Cotangents,
    wanted: Sequence[bool],
    gradients: Gradients,
) -> Cotangents:
    """The cotangents of a node's operands. wanted: of which; the others are None."""
    rule = _RULES.get(node.op.name)
    if rule is None:
        raise error(
            "TM120",
            f"a {node.op.name} loop has no gradient: nobody knows how many trips it makes",
            place=node.location,
            hint="use tm.scan or tm.fori_loop with a number of trips that is static or a size, "
            "and tm.cond or np.where in the body where it is to stop early",
        )
    return rule(builder, node, cotangents, wanted, gradients)


# -- branches


def _cond(
    builder: Builder, node: Node, cts: Cotangents, wanted: Sequence[bool], gradients: Gradients
) -> Cotangents:
    arrived = [ct for ct in cts if ct is not None]
    places = [at for at, want in enumerate(wanted) if want and at]
    arms = [_Backward(region, gradients) for region in node.regions]
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
    return _spread(len(node.operands), dict(zip(places, made)))


def _recompute(
    builder: Builder, node: Node, cts: Cotangents, wanted: Sequence[bool], gradients: Gradients
) -> Cotangents:
    """In a scan of one trip: nothing in it is merged with what was computed before."""
    (region,) = node.regions
    places = [at for at, want in enumerate(wanted) if want]
    arm = _Backward(region, gradients)
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
    return _spread(len(node.operands), dict(zip(places, made)))


# -- loops


def _for(
    builder: Builder, node: Node, cts: Cotangents, wanted: Sequence[bool], gradients: Gradients
) -> Cotangents:
    """As the scan that the loop is made into, which has the counter behind what it carried."""
    before = len(node.operands)
    _become_scan(builder, node)
    carried = node.attrs["carried"] - 1
    more = [False] * (len(node.operands) + 1 - before)
    made = _scan(
        builder,
        node,
        [*cts[:carried], None],
        [*wanted[2 : 2 + carried], False, *wanted[2 + carried :], *more],
        gradients,
    )
    made = made[: len(made) - len(more)]
    return [None, None, *made[:carried], *made[carried + 1 :]]


def _scan(
    builder: Builder, node: Node, cts: Cotangents, wanted: Sequence[bool], gradients: Gradients
) -> Cotangents:
    carried, stacked = node.attrs["carried"], node.attrs["stacked"]
    (region,) = node.regions
    body = _Backward(region, gradients)
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
        body.results.append(total if part is None else body.builder.emit("add", (total, part)))
    body.results += [found[at] or body.zero(body.given[at]) for at in rows]

    wants = body.needed()
    begun = [at for at in wants if at < carried]
    again = [at for at in wants if carried <= at < carried + stacked]
    rest = [at for at in wants if at >= carried + stacked]
    first = [weights[at] for at in carries]
    last = [weights[at] for at in ys]
    order = [*first, *sums, *[body.given[at] for at in (*begun, *again)], *last,
             *[body.given[at] for at in rest]]  # fmt: skip
    backward = body.finish([param for param in order if param is not None])
    stacks = _widen(builder, node, [region.params[at] for at in begun])
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
        "stacked": len(begun) + len(again) + len(ys),
    }
    made = builder.emit_all(scan, operands, attrs, regions=[backward])
    return _spread(len(node.operands), dict(zip((*carries, *uses, *rows), made)))


def _become_scan(builder: Builder, node: Node) -> None:
    """Make a counting loop a scan over nothing, that carries the counter last. Where only the most
    trips it may make are known it makes those, and has where it ends as its last operand."""
    begin, end = (_known_size(bound) for bound in node.operands[:2])
    (region,) = node.regions
    carried = node.attrs["carried"]
    more: tuple[Value, ...] = ()
    if begin is not None and end is not None:
        length = maximum(0, end - begin)
    elif "most" in node.attrs:
        length, more = node.attrs["most"], node.operands[1:2]
        region = _until_the_end(region, carried)
    else:
        raise error(
            "TM120",
            "a fori_loop has a gradient where its number of trips is static or a size",
            place=node.location,
            hint="name the bound in static_argnames, or take it from a shape",
        )
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
    node.operands = (*held, node.operands[0], *rest, *more)
    node.attrs = freeze({
        "carried": carried + 1, "length": length, "reverse": False, "stacked": 0,
    })  # fmt: skip
    _add_results(builder, node, [counter.tensor])


def _until_the_end(region: Graph, carried: int) -> Graph:
    """The region of a counting loop where the counter is below a last parameter, else what it
    carries as it is."""
    builder, same = Builder("region"), Builder("region")
    builder.hints = dict(region.hints)
    params = [builder.param(param.name, param.type) for param in region.params]
    kept = [same.param(param.name, param.type) for param in region.params][1 : 1 + carried]
    end = builder.param("end", TensorType(I64, ()))
    going_on = builder.emit("less", (params[0], end))
    regions = [region, same.finish(kept)]
    made = builder.emit_all(cond, (going_on, *params), {}, regions=regions)
    return builder.finish(tensors_of(made))


def _widen(builder: Builder, node: Node, values: Sequence[Value]) -> list[Value]:
    """Let a scan stack these values of its region, too; the stacks."""
    (region,) = node.regions
    tensors = tensors_of(region.results)
    tokens = region.results[len(tensors) :]
    node.regions = (replace(region, results=(*tensors, *values, *tokens)),)
    length = node.attrs["length"]
    types = [TensorType(v.tensor.dtype, (length, *v.tensor.shape)) for v in values]
    return _add_results(builder, node, types)


def _add_results(builder: Builder, node: Node, types: Sequence[TensorType]) -> list[Value]:
    """Further results of a node, before its token."""
    tensors = tensors_of(node.results)
    tokens = node.results[len(tensors) :]
    made = [
        Value(builder.names.claim(node.op.name), typ, node, len(tensors) + at)
        for at, typ in enumerate(types)
    ]
    for token in tokens:
        token.index += len(made)
    node.results = (*tensors, *made, *tokens)
    builder.changed(node)
    return made


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


# -- regions


class _Backward:
    """The region of a gradient: the forward one without its effects, and what is added to it."""

    def __init__(self, region: Graph, gradients: Gradients) -> None:
        self.builder = Builder("region")
        self.builder.hints = dict(region.hints)
        self._gradients = gradients
        copies = _copied(self.builder, region)
        self.given = tuple([copies[param] for param in region.params])
        self.outputs = [copies[r] for r in tensors_of(region.results)]
        self.added: list[Value] = []
        self.results: list[Value] = []

    def param(self, name: str, typ: TensorType) -> Value:
        """A further parameter."""
        made = self.builder.param(name, typ)
        self.added.append(made)
        return made

    def of_params(self, weights: Cotangents, places: Sequence[int]) -> list[Value | None]:
        """The cotangents of parameters, from those of the outputs."""
        pairs = [(v, ct) for v, ct in zip(self.outputs, weights) if ct is not None]
        inputs = [self.given[at] for at in places]
        outputs, cotangents = [v for v, _ in pairs], [ct for _, ct in pairs]
        return self._gradients(self.builder, outputs, inputs, cotangents)

    def zero(self, like: Value) -> Value:
        """Zeros as `like` is."""
        made: Value = zeros_like(self.builder, like)
        return made

    def needed(self) -> list[int]:
        """Which of the forward parameters the results depend on."""
        nodes = needed(self.builder.finish(self.results, ()))
        used = {*self.results, *(v for node in nodes for v in node.operands)}
        return [at for at, param in enumerate(self.given) if param in used]

    def finish(self, params: Sequence[Value]) -> Graph:
        """The region, without what its results do not need."""
        graph = self.builder.finish(self.results, ())
        alive = needed(graph)
        nodes = tuple([node for node in graph.nodes if node in alive])
        return replace(graph, params=tuple(params), nodes=nodes)


def _copied(builder: Builder, graph: Graph) -> Mapping[Value, Value]:
    """Make the nodes of `graph` again but for those that are only seen from outside; what became
    of each value."""
    copies = {param: builder.param(param.name, param.type) for param in graph.params}
    for node in graph.nodes:
        if not tensors_of(node.results):
            continue
        regions = []
        for region in node.regions:
            inner = Builder(region.name)
            inside = _copied(inner, region)
            regions.append(inner.finish([inside[r] for r in tensors_of(region.results)], ()))
        operands = [copies[v] for v in node.operands]
        made = builder.again(node, operands, device=node.device, regions=regions)
        copies.update(zip(node.results, made))
    return copies


# -- words


def _at(cts: Cotangents, at: int) -> Value | None:
    return cts[at] if at < len(cts) else None


def _or_zeros(builder: Builder, ct: Value | None, like: Value) -> Value:
    if ct is not None:
        return ct
    made: Value = zeros_like(builder, like)
    return made


def _spread(count: int, found: Mapping[int, Value]) -> list[Value | None]:
    return [found.get(at) for at in range(count)]


_RULES = {
    cond.name: _cond,
    for_.name: _for,
    scan.name: _scan,
    recompute.name: _recompute,
    custom_vjp.name: custom_vjp_cotangents,
    custom_jvp.name: custom_jvp_cotangents,
}
