"""Program order of effects: what a node must wait for.

The laws, per variable: a read waits for the last write; a write waits for every read since the
last write, or for that write where nothing read it. Prints wait for the print before.

Invariants: nodes are noted in program order.
Not here: adding the tokens to nodes (builder), complaining where they are missing (verifier).
"""

from __future__ import annotations

from ..ops.definition import OpDef, Structure
from ..types import TokenType
from .graph import Node, Value


def is_shown(op: OpDef) -> bool:
    """True for effects that must be seen in program order (a check only fails or passes)."""
    return op.structure is Structure.EFFECT and not op.facts.can_fail


class Order:
    """The reads and writes noted so far."""

    __slots__ = ("reads", "shown", "writes")

    def __init__(self) -> None:
        self.reads: dict[str, list[Value]] = {}
        self.writes: dict[str, Value] = {}
        self.shown: Value | None = None

    def before(self, op: OpDef, variable: str | None, writes: bool) -> tuple[Value, ...]:
        """What a node of `op` that comes next must wait for."""
        if variable is not None:
            reads = self.reads.get(variable)
            if writes and reads:
                return tuple(reads)
            last = self.writes.get(variable)
            return () if last is None else (last,)
        if self.shown is not None and is_shown(op):
            return (self.shown,)
        return ()

    def note(self, node: Node) -> None:
        """Take `node` as having run."""
        if node.variable is not None:
            result = node.results[0]
            if isinstance(result.type, TokenType):
                self.writes[node.variable] = result
                self.reads.pop(node.variable, None)
            else:
                self.reads.setdefault(node.variable, []).append(result)
        elif is_shown(node.op):
            self.shown = node.results[0]
