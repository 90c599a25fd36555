"""Values that cross devices or processes.

Invariants: one `send` and one `recv` share a key; the receiver states the type it expects.
Not here: pairing them (partitioning), moving bytes (the runtime).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import TOKEN, DType, TensorType, Type
from .attributes import count, exactly, only_tensor, sizes
from .definition import Attrs, Facts, OpDef, SignatureError, Structure


def _send_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    only_tensor(operands)
    _texts(exactly(attrs, "key", "to"))
    return (TOKEN,)


def _recv_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 0)
    dtype, shape, *texts = exactly(attrs, "dtype", "shape", "key", "source")
    _texts(texts)
    if not isinstance(dtype, DType):
        raise SignatureError("TM203", f"needs a dtype, got {dtype!r}")
    return (TensorType(dtype, sizes(shape, "shape")),)


def _texts(values: Sequence[object]) -> None:
    for value in values:
        if not isinstance(value, str):
            raise SignatureError("TM203", f"needs names as key and place, got {value!r}")


send = OpDef(
    name="send",
    signature=_send_type,
    reference=lambda value, key, to: value,
    structure=Structure.TRANSFER,
    facts=Facts(differentiable=False),
    doc="Hand a value to the `recv` of the same key on the device `to`.",
)

recv = OpDef(
    name="recv",
    signature=_recv_type,
    reference=lambda value, dtype, shape, key, source: value,
    structure=Structure.TRANSFER,
    facts=Facts(differentiable=False),
    doc="The value that the `send` of the same key, on the device `source`, handed over.",
)

TRANSFER: tuple[OpDef, ...] = (send, recv)
