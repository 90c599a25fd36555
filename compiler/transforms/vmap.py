"""Many lanes at once: a graph made again on values that have a row for each lane.

A value that all lanes share is computed once; one that differs between them is an array whose
first axis is that of lanes. How many lanes there are is a size, so it may stay open.

Where lanes go different ways, both ways are gone by all (vmap_flow.py), and `Lanes.active` says
which of them count: checks, and places that are read and written, do not fail for the others.

Invariants: an op on values that no lane has of its own is made as it was; each node has the place
and device of the one that it was made of.
Not here: the rules (with their ops; their words in ops/batching.py), branches and loops
(vmap_flow.py), random numbers, of which each lane draws its own (frontend/random).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import error
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.batching import Each, Lanes
from ..ops.definition import Structure
from .applied import Applied
from .reach import tensors_of
from .vmap_flow import flow_lanes


def batched(builder: Builder, graph: Graph, operands: Sequence[Each], lanes: Lanes) -> list[Each]:
    """Append `graph`, applied to rows of values of `builder`: its tensors.

    Raises UnsupportedError for an op that has no meaning for several lanes.
    """
    made = dict(zip(graph.params, operands, strict=True))
    for node in graph.nodes:
        with builder.standing_at(node):
            results = _step(builder, node, [made[v] for v in node.operands], lanes)
        made.update(zip(node.results, results))
    return [made[value] for value in tensors_of(graph.results)]


def _step(builder: Builder, node: Node, operands: Sequence[Each], lanes: Lanes) -> Sequence[Each]:
    own = any(each.own for each in operands)
    if node.op.structure is Structure.FLOW and (own or lanes.active is not None):
        return flow_lanes(builder, node, operands, lanes, batched)
    values: tuple[Value, ...] = tuple([each.value for each in operands])
    if not own and (lanes.active is None or not node.op.facts.can_fail):
        again = builder.again(node, values, device=node.device, regions=node.regions)
        return [Each(value, False) for value in again]
    if node.op.batching is None:
        raise error(
            "TM123", f"{node.op.name} has no meaning for several lanes", place=node.location
        )
    applied = Applied.of(node, values, node.results)
    found: Sequence[Each] = node.op.batching(builder, applied, operands, lanes)
    return found
