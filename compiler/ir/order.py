"""Program order of effects: what a node must wait for.

The laws, per variable: a read waits for the last write; a write waits for every read since the
last write, or for that write where nothing read it. Prints wait for the print before; control
flow with effects inside counts as a print.

Invariants: nodes are noted in program order.
Not here: adding the tokens to nodes (builder), complaining where they are missing (verifier).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ops.definition import OpDef, Structure
from ..types import TokenType, Type
from .graph import Node, Value


def is_shown(op: OpDef) -> bool:
    """True for effects that must be seen in program order (a check only fails or passes)."""
    return op.structure is Structure.EFFECT and not op.facts.can_fail


def shown_by(node: Node) -> Value | None:
    """The token that later prints wait for; None where nothing may be shown."""
    if not node.results:
        return None
    last = node.results[-1]
    return last if _may_show(node.op, last.type) else None


def _may_show(op: OpDef, last: Type) -> bool:
    if op.structure is Structure.FLOW:
        return isinstance(last, TokenType)
    return is_shown(op)


class Order:
    """The reads and writes noted so far."""

    __slots__ = ("reads", "shown", "writes")

    def __init__(self) -> None:
        self.reads: dict[str, list[Value]] = {}
        self.writes: dict[str, Value] = {}
        self.shown: Value | None = None

    def before(self, op: OpDef, variable: str | None, types: Sequence[Type]) -> tuple[Value, ...]:
        """What a node of `op` with results of `types` that comes next must wait for."""
        if variable is not None:
            reads = self.reads.get(variable)
            if reads and isinstance(types[0], TokenType):
                return tuple(reads)
            last = self.writes.get(variable)
            return () if last is None else (last,)
        if self.shown is not None and types and _may_show(op, types[-1]):
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
        else:
            self.shown = shown_by(node) or self.shown
