"""A loop's trip and its way back: which values of the one the other is handed.

Both are made as one graph and split. What a trip began with would do: the way back computes the
trip again. But where that is an array of which the trip reads a few elements, these are kept
instead, so that a loop that fills an array does not keep the whole array for each trip.

Not here: what runs which way (flow.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dims import product
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.traversal import needed
from ..ops.shaping import zeros_like
from ..records import replace
from ..types import TensorType, TokenType
from .reach import tensors_of
from .regions import Cotangents, Gradients, region_again
from .sums import added


class Trip:
    """A forward region, and what is added to it to run it backwards, which share their nodes until
    they are split.

    given, outputs: the forward region's parameters and tensors. added: further parameters of the
    way back. results: of the way back.
    """

    def __init__(self, region: Graph, gradients: Gradients) -> None:
        self.builder = Builder.extending(region)
        self.given = region.params
        self.outputs = tensors_of(region.results)
        self.added: list[Value] = []
        self.results: list[Value] = []
        self._gradients = gradients
        self._region = region
        self._forward = set(region.nodes)

    def param(self, name: str, typ: TensorType) -> Value:
        """A further parameter of the way back."""
        made = self.builder.param(name, typ)
        self.added.append(made)
        return made

    def of_params(self, weights: Cotangents, places: Sequence[int]) -> list[Value | None]:
        """The cotangents of parameters, from those of the outputs."""
        pairs = [(v, ct) for v, ct in zip(self.outputs, weights) if ct is not None]
        inputs = [self.given[at] for at in places]
        outputs, cotangents = [v for v, _ in pairs], [ct for _, ct in pairs]
        return self._gradients(self.builder, outputs, inputs, cotangents)

    def total(self, before: Value | None, part: Value | None, like: Value) -> Value:
        """The sum of what is there, zeros as `like` is where nothing is."""
        if before is None or part is None:
            return before or part or zeros_like(self.builder, like)
        return added(self.builder, before, part)

    def turn(self, carries: Sequence[int], uses: Sequence[int]) -> None:
        """Run a trip of a counting loop backwards: of the cotangents of what it carries and the
        sums of those of what it uses, the same before the trip. carries: numbers of results, which
        stand behind the counter among the parameters. uses: numbers of parameters."""
        weights: list[Value | None] = [None] * len(self.outputs)
        for at in carries:
            weights[at] = self.param("dc", self.outputs[at].tensor)
        sums = {at: self.param("dx", self.given[at].tensor) for at in uses}
        places = [*[1 + at for at in carries], *uses]
        self.results = [
            self.total(sums.get(at), part, self.given[at])
            for at, part in zip(places, self.of_params(weights, places))
        ]

    def kept(self, count: int) -> list[Value]:
        """What is to be kept for the way back in place of the first `count` parameters, where it
        reads them: these, or what the trip computes of them."""
        readers = self._readers(())
        found: dict[Value, None] = {}
        for param in self.given[:count]:
            if param in readers or param in self.results:
                found.update(dict.fromkeys(self._little(param, readers) or [param]))
        read = self.read(list(found))
        return [value for value in found if value in read]

    def read(self, kept: Sequence[Value]) -> set[Value]:
        """What the way back reads of the trip's parameters and of what is kept."""
        return {*self._readers(kept), *self.results}

    def makes(self, value: Value) -> bool:
        """Whether a value is one that the trip computes."""
        return value.node in self._forward

    def forward(self, kept: Sequence[Value]) -> Graph:
        """The trip, which gives also what is to be kept."""
        tokens = [v for v in self._region.results if isinstance(v.type, TokenType)]
        graph = self.builder.finish([*self.outputs, *kept], ())
        graph = replace(graph, params=self.given, results=(*self.outputs, *kept, *tokens))
        alive = needed(graph)
        return replace(graph, nodes=tuple([node for node in graph.nodes if node in alive]))

    def backward(self, params: Sequence[Value]) -> Graph:
        """The way back, of these values."""
        builder = Builder("region")
        builder.hints = dict(self.builder.hints)
        copies = {value: builder.param(value.name, value.type) for value in params}
        alive = self._alive(copies)
        for node in self.builder.nodes:
            if node in alive:
                operands = [copies[value] for value in node.operands]
                regions = [region_again(region) for region in node.regions]
                made = builder.again(node, operands, device=node.device, regions=regions)
                for value, copy in zip(node.results, made):
                    copies.setdefault(value, copy)
        return builder.finish([copies[value] for value in self.results], ())

    def _alive(self, known: Mapping[Value, object] | Sequence[Value]) -> set[Node]:
        """The nodes that the way back needs where some values are known."""
        found: set[Node] = set()
        pending = list(self.results)
        while pending:
            value = pending.pop()
            if value in known or value.node is None or value.node in found:
                continue
            found.add(value.node)
            pending.extend(value.node.operands)
        return found

    def _readers(self, known: Sequence[Value]) -> dict[Value, list[Node]]:
        """The nodes of the way back that read each value."""
        readers: dict[Value, list[Node]] = {}
        for node in self._alive(known):
            for operand in node.operands:
                readers.setdefault(operand, []).append(node)
        return readers

    def _little(self, param: Value, readers: Mapping[Value, list[Node]]) -> list[Value] | None:
        """What the trip computes of an array and the way back reads in its place, if that is all
        of fewer axes."""
        found: dict[Value, None] = {}
        pending, seen = [param], {param}
        while pending:
            value = pending.pop()
            if value in self.results:
                return None
            for node in readers.get(value, ()):
                if node not in self._forward:
                    return None
                for made in tensors_of(node.results):
                    if made.tensor.rank < param.tensor.rank:
                        found[made] = None
                    elif made not in seen:
                        seen.add(made)
                        pending.append(made)
        little = [value for value in found if value in readers or value in self.results]
        whole = product(param.tensor.shape)
        sizes = [product(value.tensor.shape) for value in little]
        known = [size for size in sizes if isinstance(size, int)]
        few = not isinstance(whole, int) or len(known) < len(sizes) or sum(known) < whole
        return little if few else None
