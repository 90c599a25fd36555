"""Variables: what is read, what is assigned.

The first type a signature sees, and the first array a reference gets, is the variable's own.
The reference of a write returns the variable's new content.

Invariants: a read yields a value, a write a token; the variable is named by the node.
Not here: order (the builder waits for earlier reads and writes), stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import TOKEN, Type
from .attributes import count, exactly, tensor
from .definition import Attrs, Facts, OpDef, SignatureError, Structure


def _read_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 1)
    exactly(attrs)
    return (tensor(operands, 0),)


def _assign_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    exactly(attrs)
    variable, value = tensor(operands, 0), tensor(operands, 1, "value")
    count(operands, 2)
    if variable != value:
        differing = [(a, b) for a, b in zip(variable.shape, value.shape) if a != b]
        raise SignatureError(
            "TM245",
            f"needs a value of the variable's type {variable}, got {value}",
            sizes=differing[0] if variable.rank == value.rank and differing else None,
        )
    return (TOKEN,)


read = OpDef(
    name="read",
    signature=_read_type,
    reference=lambda current: current,
    gradient=lambda emit, node, cotangents: (),
    structure=Structure.STATE,
    doc="The content of a variable.",
)

assign = OpDef(
    name="assign",
    signature=_assign_type,
    reference=lambda current, value: value,
    structure=Structure.STATE,
    facts=Facts(differentiable=False),
    doc="Replace the content of a variable: later reads see it, others once the call is over.",
)

STATE: tuple[OpDef, ...] = (read, assign)
