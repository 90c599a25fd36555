"""A graph made again where another one is built.

Invariants: a node that is made again has its place and device; effects stay in their order.
Not here: making it with another meaning (transforms).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ops.definition import Structure
from .builder import Builder
from .graph import Graph, Value


def inline(builder: Builder, graph: Graph, operands: Sequence[Value]) -> tuple[Value, ...]:
    """Append the nodes of `graph`, its parameters being these values: its results, tokens too."""
    made = dict(zip(graph.params, operands, strict=True))
    for node in graph.nodes:
        own = [made[v] for v in node.operands]
        regions = node.regions
        if node.op.structure is Structure.CONTROL:  # in whose regions names are those of the graph
            regions = tuple([_region(builder, region, own) for region in regions])
        with builder.standing_at(node):
            again = builder.again(node, own, device=node.device, regions=regions)
        made.update(zip(node.results, again))
    return tuple([made[value] for value in graph.results])


def _region(builder: Builder, region: Graph, operands: Sequence[Value]) -> Graph:
    inner = builder.region(operands)
    return inner.finish(inline(inner, region, inner.params))
