"""Functions that only transforms treat as one become their nodes.

Invariants: what a transparent op with regions means is its first region, on its operands.
Not here: which ops those are (their records say so).
"""

from __future__ import annotations

from ..ir.graph import Graph, Node, Value
from ..ir.inlining import inline
from ..ir.rewriter import Rewriter
from ..ir.traversal import all_nodes
from ..records import dataclass, replace
from ..types import TensorType
from .base import within


@dataclass(frozen=True, slots=True)
class Inline:
    """Put the nodes of regions that are transparent in the place of theirs."""

    name: str = "inline"

    def run(self, graph: Graph) -> Graph:
        """The graph without transparent regions."""
        if not any(_is_transparent(node) for node in all_nodes(graph)):
            return graph
        graph = within(graph, self.run)
        rewriter = Rewriter(graph)
        tokens: list[Value] = []
        for node in graph.nodes:
            if not _is_transparent(node):
                rewriter.keep(node)
                continue
            operands = [rewriter.values.get(v, v) for v in node.operands]
            made = inline(rewriter.builder, node.regions[0], operands)
            tensors = [value for value in made if isinstance(value.type, TensorType)]
            own = made[len(tensors) :]
            tokens += own
            rewriter.replace(node, (*tensors, *own[-1:]))
        finished = rewriter.finish()
        kept = set(finished.results)
        more = [token for token in tokens if token not in kept]
        return replace(finished, results=(*finished.results, *more)) if more else finished


def _is_transparent(node: Node) -> bool:
    return bool(node.regions) and node.op.facts.transparent
