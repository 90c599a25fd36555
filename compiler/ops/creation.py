"""Values from nothing: literals and counting.

Invariants: a constant's array is read-only and C-contiguous, its dtype and shape are its type.
Not here: zeros, full, arange, eye: compositions of these with broadcast_to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import I64, TensorType, Type, dtype_of
from .attributes import count, exactly, sizes
from .definition import Attrs, Facts, OpDef, SignatureError, Structure


def _constant_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 0)
    (value,) = exactly(attrs, "value")
    if not isinstance(value, np.ndarray):
        raise SignatureError("TM203", f"needs an array as value, got {value!r}")
    dtype = dtype_of(value.dtype)
    if dtype is None:
        raise SignatureError("TM210", f"has no element type for NumPy's {value.dtype}")
    return (TensorType(dtype, value.shape),)


def _iota_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 0)
    (size,) = exactly(attrs, "size")
    return (TensorType(I64, sizes((size,), "size")),)


def _no_gradient(emit: Any, node: Any, cotangents: Any) -> tuple[Any, ...]:
    return ()


constant = OpDef(
    name="constant",
    signature=_constant_type,
    reference=lambda value: value,
    gradient=_no_gradient,
    structure=Structure.CREATION,
    doc="The array `value`, known while compiling.",
)

iota = OpDef(
    name="iota",
    signature=_iota_type,
    reference=lambda size: np.arange(size, dtype=np.int64),
    structure=Structure.CREATION,
    facts=Facts(differentiable=False),
    doc="The integers 0, 1, ..., size - 1 as a vector of i64.",
)

CREATION: tuple[OpDef, ...] = (constant, iota)
