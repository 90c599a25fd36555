"""Regions of gradients: the trips and branches of a program, with what runs them backwards.

Invariants: prints and checks happen in forward regions alone.
Not here: which operands and results the nodes around them have (flow.py, unknown_trips.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.shaping import zeros_like
from ..records import dataclass
from ..types import TensorType
from .reach import tensors_of
from .sums import added

# gradients(builder, outputs, inputs, cotangents) of grad.py, with the rules in use.
Gradients = Callable[
    [Builder, Sequence[Value], Sequence[Value], Sequence[Value | None]], list[Value | None]
]
Cotangents = Sequence[Value | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a branch or loop: the cotangents of its operands.

    arrived: those of its results. wanted: of which operands. before: what has been added up of
    them already, where something has. gradients: as above.
    """

    arrived: Cotangents
    wanted: Sequence[bool]
    before: Cotangents
    gradients: Gradients

    def start(self, builder: Builder, at: int, like: Value) -> Value:
        """What a sum of an operand's cotangents starts from."""
        return self.before[at] or zeros_like(builder, like)

    def answer(
        self, builder: Builder, found: Mapping[int, Value | None], totals: Sequence[int] = ()
    ) -> Cotangents:
        """The cotangents of all operands. found: of some, what is to be added; of those in
        `totals`, what was there before is in it."""
        made = list(self.before)
        for at, value in found.items():
            before = None if at in totals else made[at]
            if value is not None:
                made[at] = value if before is None else added(builder, before, value)
        return made


def copied(builder: Builder, graph: Graph, given: Sequence[Value]) -> list[Value]:
    """Make the nodes of `graph` again but for those that are only seen from outside; its tensors.
    given: what its parameters stand for."""
    copies = dict(zip(graph.params, given, strict=True))
    for node in graph.nodes:
        if not tensors_of(node.results):
            continue
        operands = [copies[v] for v in node.operands]
        regions = [region_again(region) for region in node.regions]
        made = builder.again(node, operands, device=node.device, regions=regions)
        copies.update(zip(node.results, made))
    return [copies[r] for r in tensors_of(graph.results)]


def region_again(region: Graph) -> Graph:
    """The region without its effects, of new nodes."""
    inner = Builder(region.name)
    given = [inner.param(param.name, param.type) for param in region.params]
    return inner.finish(copied(inner, region, given), ())


def move_before(builder: Builder, node: Node, start: int) -> None:
    """Put the nodes that were made since there were `start` before a node, which is to use them."""
    more = builder.nodes[start:]
    del builder.nodes[start:]
    at = builder.nodes.index(node)
    builder.nodes[at:at] = more


def add_results(builder: Builder, node: Node, types: Sequence[TensorType]) -> list[Value]:
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
