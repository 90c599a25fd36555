"""What a pass is, and how passes are run.

A pass is a frozen dataclass with a name, options, and `run` from graph to graph of the same
meaning. It never changes its argument; where it finds nothing to do it returns it. Regions of
control flow are graphs that it runs on first (`within`).

Invariants: the graph is verified before the first and after every pass; a broken one is reported
with the name of the pass that made it.
Not here: which passes, in which order (`PIPELINE`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..ir.graph import Graph, Node
from ..ir.rewriter import Rewriter
from ..ir.verifier import Verified, verify
from ..ops.definition import Structure


class Pass(Protocol):
    """Graph in, graph of the same meaning out."""

    @property
    def name(self) -> str:
        """The name on the command line and in reports."""

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; `graph` itself where there is nothing to do."""


def within(graph: Graph, run: Callable[[Graph], Graph]) -> Graph:
    """`graph` with `run` applied to the regions of its control flow."""
    changed: dict[Node, tuple[Graph, ...]] = {}
    for node in graph.nodes:
        if node.op.structure is Structure.FLOW:
            regions = tuple([run(region) for region in node.regions])
            if any(new is not old for new, old in zip(regions, node.regions)):
                changed[node] = regions
    if not changed:
        return graph
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node in changed:
            rewriter.keep_with(node, changed[node])
        else:
            rewriter.keep(node)
    return rewriter.finish()


def run_passes(
    graph: Graph,
    passes: Sequence[Pass],
    observe: Callable[[str, Graph], None] | None = None,
) -> Verified:
    """Run `passes` in order. Raises GraphError for the argument, BrokenGraph for a pass's.

    observe: sees the name of each pass and what it made.
    """
    ticket = verify(graph)
    for step in passes:
        made = step.run(ticket.graph)
        if made is not ticket.graph:
            ticket = verify(made, step.name)
        if observe is not None:
            observe(step.name, made)
    return ticket
