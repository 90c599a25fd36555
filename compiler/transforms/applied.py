"""A node of one graph, applied to values of another: what rules are asked about while a graph is
made again with another meaning.

Invariants: has what rules ask a node for; its results may be values that some other op made, where
the canonical form of the node was another.
Not here: the graphs (jvp.py, vmap.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.graph import Location, Node, Value
from ..ops.definition import OpDef
from ..records import dataclass


@dataclass(frozen=True, slots=True)
class Applied:
    """See the module."""

    op: OpDef
    operands: tuple[Value, ...]
    attrs: Mapping[str, Any]
    results: tuple[Value, ...]
    location: Location | None

    @classmethod
    def of(cls, node: Node, operands: tuple[Value, ...], results: tuple[Value, ...]) -> Applied:
        """`node` on these operands, which gave these results."""
        return cls(node.op, operands, node.attrs, results, node.location)
