"""Equal nodes become one.

Two nodes are equal if op, operands (in any order for a commutative op), attributes, device, and
what they wait for are the same, bit for bit. Reads are equal between the same writes.

Invariants: nodes with effects, regions or transfers are never merged; the first name stays.
Not here: values that are equal for deeper reasons.
"""

from __future__ import annotations

from collections.abc import Hashable

from ..ir.attrs import attrs_key
from ..ir.graph import Graph, Node, Value
from ..ir.rewriter import Rewriter
from ..ops.definition import Structure
from ..records import dataclass
from ..types import TokenType
from .base import within

_APART = frozenset((Structure.EFFECT, Structure.TRANSFER, Structure.LIBRARY))


@dataclass(frozen=True, slots=True)
class Dedupe:
    """Common subexpressions, computed once."""

    name: str = "dedupe"

    def run(self, graph: Graph) -> Graph:
        """The graph in which no two mergeable nodes are equal."""
        graph = within(graph, self.run)
        rewriter = Rewriter(graph)
        known: dict[Hashable, tuple[Value, ...]] = {}
        for node in graph.nodes:
            key = _key(node, rewriter.values)
            found = None if key is None else known.get(key)
            if found is not None:
                rewriter.replace(node, found)
                continue
            rewriter.keep(node)
            if key is not None:
                values = rewriter.values
                known[key] = tuple([values.get(v, v) for v in node.results])
        return rewriter.finish()


def _key(node: Node, values: dict[Value, Value]) -> Hashable | None:
    """Equal for nodes that are one, None for a node that stays apart."""
    structure = node.op.structure
    if structure in _APART or node.regions:
        return None
    if structure is Structure.STATE and isinstance(node.results[0].type, TokenType):
        return None
    operands: Hashable = tuple([values.get(v, v) for v in node.operands])
    if node.op.facts.commutative and len(node.operands) == 2:
        operands = frozenset([values.get(v, v) for v in node.operands])
    after = frozenset([values.get(v, v) for v in node.after])
    return node.op, operands, attrs_key(node.attrs), node.device, after, node.variable
