"""Drop what no result needs.

A write is needed if its token is returned or a needed read follows it; a later write of the same
variable only has to come after it. So a write that is overwritten unread goes, unless the graph
returns its token.

Invariants: results, parameters and variables stay.
Not here: simplifying what stays.
"""

from __future__ import annotations

from ..ir.graph import Graph
from ..ir.rewriter import Rewriter
from ..ir.traversal import needed
from ..records import dataclass
from .base import within


@dataclass(frozen=True, slots=True)
class Prune:
    """Keep only what the results need."""

    name: str = "prune"

    def run(self, graph: Graph) -> Graph:
        """The graph without dead nodes."""
        graph = within(graph, self.run)
        alive = needed(graph)
        if len(alive) == len(graph.nodes):
            return graph
        rewriter = Rewriter(graph)
        for node in graph.nodes:
            if node in alive:
                rewriter.keep(node)
            else:
                rewriter.drop(node)
        return rewriter.finish()
