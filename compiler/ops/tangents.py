"""Forward rules of ops that are linear: the op itself, applied to tangents.

Invariants: a tangent that is None is zero; where all of them are, rules are not asked.
Not here: the rule of elementwise ops (record.py: pointwise), those of library ops
(library_tangents.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..types import TensorType
from .definition import Tangent
from .shaping import zeros_like

Rule = Sequence[Any]


def linear(*places: int) -> Tangent:
    """Of an op that is linear in the operands at these places together; in all, without any."""

    def rule(emit: Any, node: Any, tangents: Rule) -> Rule:
        operands = [
            operand
            if places and at not in places
            else zeros_like(emit, operand)
            if t is None
            else t
            for at, (operand, t) in enumerate(zip(node.operands, tangents))
        ]
        return _applied(emit, node, operands)

    return rule


def bilinear(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Of an op that is linear in each of its two operands."""
    (a, b), (of_a, of_b) = node.operands, tangents
    parts = [] if of_a is None else [_applied(emit, node, (of_a, b))[0]]
    parts += [] if of_b is None else [_applied(emit, node, (a, of_b))[0]]
    return [parts[0] if len(parts) == 1 else emit.add(*parts)]


def _applied(emit: Any, node: Any, operands: Rule) -> Rule:
    """The op on other operands; None for the tokens among its results."""
    made = getattr(emit, node.op.name)(*operands, **node.attrs)
    results = made if isinstance(made, tuple) else (made,)
    return [result if isinstance(result.type, TensorType) else None for result in results]
