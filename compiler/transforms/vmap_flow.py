"""Control flow for many lanes: what all lanes do alike stays a branch or loop, the rest is chosen.

    cond    on a condition of each lane's own: both regions, then `select`
    while   until the last lane is done; lanes that are keep what they carry
    for     with bounds of each lane's own: as such a while
    scan    as it is: all lanes have as many rows

    any(p), p, c... = while any(p), p, c0..., x...     where p is a lane's condition
        q, d... = region(c..., x...)                   of which p says who is active
        p, c... = p and q, select(p, d, c)

Invariants: regions still read nothing but their parameters; which lanes are active is one of them
where that matters.
Not here: straight lines (vmap.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.batching import Each, Lanes, aligned, moved_axis
from ..ops.derivative import custom_vjp, recompute
from ..ops.flow import cond, for_, while_
from ..records import replace
from ..types import BOOL, I64, TensorType
from .loops import Form
from .reach import carries, tensors_of

# batched(builder, graph, operands, lanes) of vmap.py.
Batch = Callable[[Builder, Graph, Sequence[Each], Lanes], list[Each]]


def flow_lanes(
    builder: Builder, node: Node, operands: Sequence[Each], lanes: Lanes, batch: Batch
) -> list[Each]:
    """The tensors that a node of control flow gives, on these operands."""
    if node.op is cond and operands[0].own:
        return _selected(builder, node, operands, lanes, batch)
    if node.op in (cond, recompute):
        return _alike(builder, node, operands, lanes, batch)
    if "inputs" in node.attrs:
        return _custom(builder, node, operands, lanes, batch)
    if node.op is for_ and (operands[0].own or operands[1].own):
        return _counted(builder, node, operands, lanes, batch)
    (region,) = node.regions
    is_while = node.op is while_
    # Where not all lanes are active, others may have no last trip.
    if is_while and (operands[0].own or lanes.active is not None):
        return _masked(builder, region, operands, [], lanes, batch)
    own, body = _settled(node, operands, lanes, batch)
    if is_while and body.results[0].own:
        return _masked(builder, region, operands, own, lanes, batch)
    return _loop(builder, node, operands, own, body, lanes)


# -- branches


def _selected(
    builder: Builder, node: Node, operands: Sequence[Each], lanes: Lanes, batch: Batch
) -> list[Each]:
    """Both regions, each for the lanes that take it."""
    test = operands[0].value
    arms = []
    for region, taken in zip(node.regions, (test, builder.emit("logical_not", (test,)))):
        if lanes.active is not None:
            taken = builder.emit("logical_and", (lanes.active, taken))
        arms.append(batch(builder, region, operands[1:], Lanes(lanes.size, taken)))
    return [_select(builder, test, a, b) for a, b in zip(*arms, strict=True)]


def _select(builder: Builder, test: Value, left: Each, right: Each) -> Each:
    """The left one in lanes where the test holds."""
    if left == right:
        return left
    rank = left.rank
    parts = [aligned(builder, Each(test, True), rank), left.value, right.value]
    return Each(builder.emit("select", parts), True)


def _alike(
    builder: Builder, node: Node, operands: Sequence[Each], lanes: Lanes, batch: Batch
) -> list[Each]:
    """Regions that all lanes take alike."""
    given = [each.own for each in operands[1 if node.op is cond else 0 :]]
    arms = [_Rows(region, given, lanes, batch) for region in node.regions]
    own = [any(each.own for each in row) for row in zip(*[arm.results for arm in arms])]
    regions = [arm.finish([*arm.params, *arm.active], own) for arm in arms]
    values = [*[each.value for each in operands], *_active(lanes)]
    made = builder.emit_all(node.op, values, {}, regions=regions)
    return [Each(value, it) for value, it in zip(made, own)]


def _custom(
    builder: Builder, node: Node, operands: Sequence[Each], lanes: Lanes, batch: Batch
) -> list[Each]:
    """A function with a derivative of its own; the derivative for lanes, too.

    What comes back for an operand that all lanes share is the sum of what each gives it.
    """
    count, everyone = node.attrs["inputs"], Lanes(lanes.size)
    given = [each.own for each in operands]
    region, rule = node.regions
    first = _Rows(region, given, everyone, batch)
    own = [each.own for each in first.results]
    smooth = [at for at, value in enumerate(tensors_of(region.results)) if carries(value)]
    if node.op is custom_vjp:
        seeds = [own[at] for at in smooth]
        second = _Rows(rule, [*given[:count], *seeds, *given[count:]], everyone, batch)
        second.results = [
            second.summed(each) if each.own and not it else each
            for each, it in zip(second.results, given)
        ]
        wanted = given[:count]
    else:
        second = _Rows(rule, [*given[:count], *given], everyone, batch)
        own = [it or each.own for it, each in zip(own, second.results)]
        for at, each in zip(smooth, second.results[len(own) :]):
            own[at] = own[at] or each.own
        wanted = [*own, *[own[at] for at in smooth]]
    graphs = [first.finish(first.params, own), second.finish(second.params, wanted)]
    values = [each.value for each in operands]
    made = builder.emit_all(node.op, values, node.attrs, regions=graphs)
    return [Each(value, it) for value, it in zip(made, own)]


# -- loops


def _loop(
    builder: Builder,
    node: Node,
    operands: Sequence[Each],
    own: Sequence[bool],
    body: _Rows,
    lanes: Lanes,
) -> list[Each]:
    """All lanes make the same trips."""
    form = Form.of(node)
    behind = form.head + form.carried
    rows = [
        moved_axis(builder, each.value, 0, 1) if each.own else each.value
        for each in operands[behind : behind + form.stacked]
    ]
    values = [
        *[each.value for each in operands[: form.head]],
        *_begun(builder, operands[form.head : behind], own, lanes),
        *rows,
        *[each.value for each in operands[behind + form.stacked :]],
        *_active(lanes),
    ]
    stacked = [each.own for each in body.results[form.yielded + form.carried :]]
    wanted = [*[False] * form.yielded, *own, *stacked]
    graph = body.finish([*body.params, *body.active], wanted)
    made = builder.emit_all(node.op, values, node.attrs, regions=[graph])
    found = [Each(value, it) for value, it in zip(made, (*own, *stacked))]
    return [
        Each(moved_axis(builder, each.value, 1, 0), True)
        if each.own and at >= form.carried
        else each
        for at, each in enumerate(found)
    ]


def _settled(
    node: Node, operands: Sequence[Each], lanes: Lanes, batch: Batch
) -> tuple[list[bool], _Rows]:
    """Which carried values lanes have of their own after any number of trips, and the region."""
    (region,) = node.regions
    form = Form.of(node)
    behind = form.head + form.carried
    own = [each.own for each in operands[form.head : behind]]
    rest = [each.own for each in operands[behind:]]
    while True:
        body = _Rows(region, [*[False] * form.handed, *own, *rest], lanes, batch)
        made = [each.own for each in body.results[form.yielded : form.yielded + form.carried]]
        more = [a or b for a, b in zip(own, made)]
        if more == own:
            return own, body
        own = more


def _counted(
    builder: Builder, node: Node, operands: Sequence[Each], lanes: Lanes, batch: Batch
) -> list[Each]:
    """A counting loop as a `while` that carries its counter."""
    begin, end, *others = operands
    (region,) = node.regions
    inner = Builder.extending(region)
    counter = region.params[0]
    last = inner.param("end", TensorType(I64, ()))
    following = inner.emit("add", (counter, inner.constant(1, I64)))
    more = inner.emit("less", (following, last))
    tensors = tensors_of(region.results)
    made = inner.finish([more, following, *tensors], region.results[len(tensors) :])
    test = Each(builder.emit("less", (begin.value, end.value)), True)
    everything = [test, begin, *others, end]
    return _masked(builder, made, everything, [], lanes, batch)[1:]


def _masked(
    builder: Builder,
    region: Graph,
    operands: Sequence[Each],
    known: Sequence[bool],
    lanes: Lanes,
    batch: Batch,
) -> list[Each]:
    """A `while` that runs until the last lane is done. What a trip does not change stays shared.

    known: which carried values lanes have of their own for sure; those they begin with, if empty.
    """
    carried = len(tensors_of(region.results)) - 1
    test, held, rest = operands[0], operands[1 : 1 + carried], operands[1 + carried :]
    active = lanes.spread(builder, test)
    if lanes.active is not None:
        active = builder.emit("logical_and", (lanes.active, active))
    everyone = Lanes(lanes.size, active)
    own = list(known) or [each.own for each in held]
    while True:
        body = _Rows(region, [*own, *[each.own for each in rest]], everyone, batch)
        kept = [_is(made, param) for made, param in zip(body.results[1:], body.eaches)]
        more = [it or not same for it, same in zip(own, kept)]
        if more == own:
            break
        own = more
    inner, (running,) = body.builder, body.active
    following = body.results[0]
    going = inner.emit("logical_and", (running, following.value))
    body.results = [
        Each(inner.emit("any", (going,), {"axes": (0,)}), False),
        Each(going, True),
        *[
            _select(inner, running, made, param) if it else made
            for made, param, it in zip(body.results[1:], body.eaches, own)
        ],
    ]
    graph = body.finish([*body.active, *body.params], [False, True, *own])
    values = [
        builder.emit("any", (active,), {"axes": (0,)}),
        active,
        *_begun(builder, held, own, lanes),
        *[each.value for each in rest],
    ]
    made = builder.emit_all(while_, values, {"carried": carried + 1}, regions=[graph])
    return [Each(value, it) for value, it in zip(made[1:], own)]


def _is(made: Each, param: Each) -> bool:
    return made.value is param.value


def _begun(
    builder: Builder, held: Sequence[Each], own: Sequence[bool], lanes: Lanes
) -> list[Value]:
    """What a loop carries at first, with rows where lanes come to differ."""
    return [lanes.spread(builder, each) if it else each.value for each, it in zip(held, own)]


def _active(lanes: Lanes) -> list[Value]:
    return [] if lanes.active is None else [lanes.active]


class _Rows:
    """A region on rows of some of its parameters.

    active: the further parameter that says which lanes count, where there is one.
    """

    def __init__(self, region: Graph, own: Sequence[bool], lanes: Lanes, batch: Batch) -> None:
        self.builder = builder = Builder(region.name)
        builder.hints = dict(region.hints)
        self.params: list[Value] = []
        for param, it in zip(region.params, own, strict=True):
            tensor = param.tensor
            rows = TensorType(tensor.dtype, (lanes.size, *tensor.shape))
            self.params.append(builder.param(param.name, rows if it else tensor))
        self.eaches = [Each(value, it) for value, it in zip(self.params, own)]
        self.active: list[Value] = []
        if lanes.active is not None:
            self.active = [builder.param("active", TensorType(BOOL, (lanes.size,)))]
        self._lanes = replace(lanes, active=self.active[0] if self.active else None)
        self.results = batch(builder, region, self.eaches, self._lanes)

    def summed(self, each: Each) -> Each:
        """The sum over all lanes."""
        return Each(self.builder.emit("sum", (each.value,), {"axes": (0,)}), False)

    def finish(self, params: Sequence[Value], own: Sequence[bool]) -> Graph:
        """The region with these parameters; its results as rows where `own` says so."""
        self.builder.params = list(params)
        results = [
            self._lanes.spread(self.builder, each) if it else each.value
            for each, it in zip(self.results, own, strict=True)
        ]
        return self.builder.finish(results)
