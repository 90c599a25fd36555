"""Branches that cost less to compute than to choose: both are written out.

Not here: branches of arrays, or that can fail.
"""

from __future__ import annotations

from ..compiler.ir.graph import Value
from ..compiler.ops.definition import Structure
from ..compiler.types import TensorType
from ..tracing.regions import Region
from ..tracing.state import Trace

_MOST = 12  # nodes
_PLAIN = (Structure.ELEMENTWISE, Structure.CREATION, Structure.MOVEMENT)


def is_cheap(region: Region) -> bool:
    """True for a few operations on numbers, without effects."""
    nodes = region.graph.nodes
    return (
        len(nodes) <= _MOST
        and all(
            node.op.structure in _PLAIN and not node.regions and all(map(_is_one, node.results))
            for node in nodes
        )
        and all(_is_one(value) and not value.tensor.shape for value in region.graph.results)
    )


def _is_one(value: Value) -> bool:
    """True for one element."""
    return isinstance(value.type, TensorType) and all(size == 1 for size in value.type.shape)


def written_out(trace: Trace, region: Region) -> list[Value]:
    """The results of a region, computed in the trace around it."""
    graph = region.graph
    made = dict(zip(graph.params[region.given :], region.captured, strict=True))
    for node in graph.nodes:
        operands = [made[operand] for operand in node.operands]
        found = trace.builder.emit(node.op.name, operands, dict(node.attrs))
        made[node.results[0]] = found
    return [made[value] for value in graph.results]
