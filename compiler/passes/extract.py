"""The part of a graph that some of its values need, with other values given from outside.

Invariants: a fed value is a parameter of the result and nothing that only it needed is left; a
parameter that is not needed is gone.
Not here: names that users write (the frontend finds the values).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Graph, Node, Value
from ..ir.rewriter import Rewriter
from ..ir.traversal import only_order


def extract(
    graph: Graph, fetches: Sequence[Value], feeds: Sequence[Value]
) -> tuple[Graph, tuple[Value, ...]]:
    """The graph that computes `fetches` from `feeds`, parameters and variables.

    Also the values of the old graph that its parameters stand for, in order.
    """
    fed = set(feeds)
    alive = _alive(graph, fetches, fed)
    rewriter = Rewriter(graph)
    rewriter.builder.params = []
    sources: list[Value] = []
    used = {v for node in alive for v in node.operands} | set(fetches)
    for value in (*graph.params, *(v for v in feeds if v.node is not None)):
        if value in used:
            sources.append(value)
            rewriter.values[value] = param = Value(value.name, value.type)
            rewriter.builder.params.append(param)
    for node in graph.nodes:
        if node in alive:
            rewriter.keep(node)
        elif not fed.intersection(node.results):
            rewriter.drop(node)
    results = [rewriter.values.get(v, v) for v in fetches]
    return rewriter.builder.finish(results, ()), tuple(sources)


def _alive(graph: Graph, fetches: Sequence[Value], fed: set[Value]) -> set[Node]:
    """Nodes needed by the fetches when fed values need nothing.

    A write waits for earlier reads and writes of its variable only for the order (`only_order`).
    """
    found: set[Node] = set()
    pending = [v for v in fetches if v not in fed]
    while pending:
        node = pending.pop().node
        if node is None or node in found:
            continue
        found.add(node)
        waits = [v for v in node.after if v.node and not only_order(node, v.node)]
        pending.extend(v for v in (*node.operands, *waits) if v not in fed)
    return found
