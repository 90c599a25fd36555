"""Forward mode through control flow: regions that compute tangents beside their values.

    c..., y...               = scan c0..., s..., x...
    c..., dc..., y..., dy... = scan c0..., dc0..., s..., ds..., x..., dx...

A loop carries the tangents of what it carries, in as many trips: so a `while` has a derivative in
this mode.

Invariants: of a loop, what its carried values depend on after any number of trips has a tangent,
zero at first where the loop began without one.
Not here: straight lines (jvp.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import error
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.derivative import custom_jvp, custom_vjp, recompute
from ..ops.flow import cond
from ..ops.shaping import zeros_like
from ..types import TensorType
from .custom import custom_jvp_tangents
from .loops import Form
from .reach import tensors_of

# pushforward(builder, graph, operands, tangents) of jvp.py.
Tangents = Sequence[Value | None]
Push = Callable[[Builder, Graph, Sequence[Value], Tangents], tuple[list[Value], list[Value | None]]]
Pair = tuple[list[Value], list[Value | None]]


def flow_tangents(
    builder: Builder, node: Node, operands: Sequence[Value], tangents: Tangents, push: Push
) -> Pair:
    """A node of control flow on these operands: its results, and their tangents."""
    if node.op is custom_vjp:
        raise error(
            "TM120",
            "a function with a gradient of its own (custom_vjp) has no derivative forwards",
            place=node.location,
            hint="tm.custom_jvp gives a function a derivative for both modes",
        )
    if node.op is custom_jvp:
        return custom_jvp_tangents(builder, node, operands, tangents)
    rule = _regions if node.op in (cond, recompute) else _loop
    return rule(builder, node, operands, tangents, push)


def _regions(
    builder: Builder, node: Node, operands: Sequence[Value], tangents: Tangents, push: Push
) -> Pair:
    head = 1 if node.op is cond else 0
    moved = [at for at in range(head, len(operands)) if tangents[at] is not None]
    arms = [_Both(region, [at - head for at in moved], push) for region in node.regions]
    count = len(tensors_of(node.results))
    places = [at for at in range(count) if any(arm.tangents[at] is not None for arm in arms)]
    regions = [
        arm.finish([*arm.given, *arm.added], [*arm.results, *map(arm.tangent, places)])
        for arm in arms
    ]
    made = builder.emit_all(
        node.op, [*operands, *_some(tangents, moved)], {}, regions=regions, name=_names(node)
    )
    return _parted(node, made[:count], dict(zip(places, made[count:])), made)


def _loop(
    builder: Builder, node: Node, operands: Sequence[Value], tangents: Tangents, push: Push
) -> Pair:
    (region,) = node.regions
    form = Form.of(node)
    head, handed, yielded = form.head, form.handed, form.yielded
    carried, stacked = form.carried, form.stacked
    rest = head + carried + stacked
    rows = [at for at in range(head + carried, rest) if tangents[at] is not None]
    uses = [at for at in range(rest, len(operands)) if tangents[at] is not None]
    flows = [at for at in range(carried) if tangents[head + at] is not None]
    while True:
        moved = [*[head + at for at in flows], *rows, *uses]
        body = _Both(region, [form.param(at) for at in moved], push)
        reached = [at for at in range(carried) if body.tangents[yielded + at] is not None]
        if set(reached) <= set(flows):
            break
        flows = sorted({*flows, *reached})
    split, split_rows = len(flows), len(flows) + len(rows)
    count = len(tensors_of(node.results))
    ys = [at for at in range(carried, count) if body.tangents[yielded + at] is not None]

    given, added, results = body.given, body.added, body.results
    first, last = handed + carried, handed + carried + stacked
    graph = body.finish(
        [*given[:first], *added[:split], *given[first:last], *added[split:split_rows],
         *given[last:], *added[split_rows:]],
        [*results[: yielded + carried], *[body.tangent(yielded + at) for at in flows],
         *results[yielded + carried :], *[body.tangent(yielded + at) for at in ys]],
    )  # fmt: skip
    begun = [tangents[head + at] for at in flows]
    held = [
        zeros_like(builder, operands[head + at]) if tangent is None else tangent
        for at, tangent in zip(flows, begun)
    ]
    first, last = head + carried, rest
    everything = [
        *operands[:first], *held, *operands[first:last], *_some(tangents, rows),
        *operands[last:], *_some(tangents, uses),
    ]  # fmt: skip
    attrs = {**node.attrs, "carried": carried + len(flows)}
    if "stacked" in attrs:
        attrs["stacked"] = stacked + len(rows)
    made = builder.emit_all(node.op, everything, attrs, regions=[graph])
    behind = carried + split
    values = [*made[:carried], *made[behind : behind + count - carried]]
    found = dict(zip((*flows, *ys), (*made[carried:behind], *made[behind + count - carried :])))
    return _parted(node, values, found, made)


class _Both:
    """A region with the tangents of some of its parameters."""

    def __init__(self, region: Graph, moved: Sequence[int], push: Push) -> None:
        self.builder = builder = Builder(region.name)
        builder.hints = dict(region.hints)
        self.given = [builder.param(param.name, param.type) for param in region.params]
        made = {at: builder.param(f"d{region.params[at].name}", region.params[at].type)
                for at in moved}  # fmt: skip
        self.added = list(made.values())
        tangents = [made.get(at) for at in range(len(self.given))]
        self.results, self.tangents = push(builder, region, self.given, tangents)

    def tangent(self, at: int) -> Value:
        """Of a result; zeros where it has none."""
        found = self.tangents[at]
        if found is not None:
            return found
        made: Value = zeros_like(self.builder, self.results[at])
        return made

    def finish(self, params: Sequence[Value], results: Sequence[Value]) -> Graph:
        """The region with these parameters and results, and all its effects."""
        self.builder.params = list(params)
        return self.builder.finish(results)


def _some(tangents: Tangents, places: Sequence[int]) -> list[Value]:
    return [tangent for at in places if (tangent := tangents[at]) is not None]


def _names(node: Node) -> list[str]:
    return [result.name for result in tensors_of(node.results)]


def _parted(
    node: Node, values: Sequence[Value], tangents: dict[int, Value], made: Sequence[Value]
) -> Pair:
    """Results as the node has them, its token last, and the tangent of each."""
    tokens = [v for v in made if not isinstance(v.type, TensorType)]
    results = [*values, *tokens]
    return results, [tangents.get(at) for at in range(len(results))]
