"""Regions of gradients: the trips and branches of a program, with what runs them backwards.

Invariants: prints and checks happen in forward regions alone.
Not here: which operands and results the nodes around them have (flow.py, unknown_trips.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.traversal import needed
from ..ops.shaping import zeros_like
from ..records import replace
from ..types import TensorType
from .reach import tensors_of

# gradients(builder, outputs, inputs, cotangents) of grad.py, with the rules in use.
Gradients = Callable[
    [Builder, Sequence[Value], Sequence[Value], Sequence[Value | None]], list[Value | None]
]
Cotangents = Sequence[Value | None]


class Backward:
    """A forward region, and what is added to it to run it backwards.

    given, outputs: the forward region's parameters and tensors. results: of what is added.
    """

    def __init__(
        self,
        builder: Builder,
        given: Sequence[Value],
        outputs: Sequence[Value],
        gradients: Gradients,
    ) -> None:
        self.builder = builder
        self.given = tuple(given)
        self.outputs = outputs
        self.added: list[Value] = []
        self.results: list[Value] = []
        self._gradients = gradients

    @classmethod
    def of_copy(cls, region: Graph, gradients: Gradients) -> Backward:
        """What computes the region again, without its effects."""
        builder = Builder("region")
        builder.hints = dict(region.hints)
        given = [builder.param(p.name, p.type) for p in region.params]
        return cls(builder, given, copied(builder, region, given), gradients)

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


def spread(count: int, found: Mapping[int, Value]) -> list[Value | None]:
    """As many, with what is found in its places."""
    return [found.get(at) for at in range(count)]
