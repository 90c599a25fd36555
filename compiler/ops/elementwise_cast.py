"""Change of type and choice between values: cast, bitcast, select.

A float that does not fit an integer type gives what NumPy gives on x86-64, on every back end
(integer_conversion.py).
Not here: promotion (the frontend writes casts).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import BF16, BOOL, F16, DType, TensorType, Type, holds
from .definition import Attrs, OpDef, SignatureError
from .integer_conversion import float_to_integer
from .record import literal, record, where_zero
from .scalar import Scalar, bitcast, convert, select
from .signature import broadcast_shapes, dtype_attribute, no_attributes, tensor_operands
from .tangents import linear

Ct = Sequence[Any]


def _cast_signature(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    (operand,) = tensor_operands(operands, 1)
    return (operand.with_dtype(dtype_attribute(attrs)),)


def cast_array(x: Any, dtype: DType) -> Any:
    """NumPy's astype with the documented result for floats that do not fit an integer type."""
    array = np.asarray(x)
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    if array.dtype.kind in "fV" and dtype.is_integer:
        return float_to_integer(array.astype(np.float64), dtype)
    return array.astype(dtype.numpy)


def _cast_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    source: DType = node.operands[0].type.dtype
    if source.kind not in "fc" or node.results[0].type.dtype.kind not in "fc":
        return [None]
    ct = cts[0]
    if ct.type.dtype.is_complex and not source.is_complex:
        ct = emit.real(ct)
    return [ct if ct.type.dtype is source else emit.cast(ct, dtype=source)]


def _cast_tangent(emit: Any, node: Any, tangents: Ct) -> Ct:
    dtype = node.results[0].type.dtype
    return [emit.cast(tangents[0], dtype=dtype) if dtype.kind in "fc" else None]


def _cast_canonical(emit: Any, operands: Sequence[Any], attrs: Attrs) -> Any:
    """No cast to the own type; none by way of a type that holds every value of the source."""
    (x,), dtype = operands, attrs["dtype"]
    if x.type.dtype == dtype:
        return x
    if x.node is None or x.node.op.name != "cast":
        return None
    (source,) = x.node.operands
    # NumPy rounds an integer twice on its way to a half: that way must stay as it is written.
    twice = dtype in (F16, BF16) and not source.type.dtype.is_float
    if twice or not holds(x.type.dtype, source.type.dtype):
        return None
    return emit.cast(source, dtype=dtype)


def _select_canonical(emit: Any, operands: Sequence[Any], attrs: Attrs) -> Any:
    """No choice between a value and itself, nor by a condition that is known."""
    condition, a, b = operands
    chosen = a if a is b else None
    if condition.node is not None and "value" in condition.node.attrs:
        known = condition.node.attrs["value"]
        chosen = a if known.all() else chosen if known.any() else b
    if chosen is None:
        return None
    shape = broadcast_shapes([v.type.shape for v in operands])
    return chosen if chosen.type.shape == shape else None


def _bitcast_signature(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    (operand,) = tensor_operands(operands, 1)
    dtype = dtype_attribute(attrs)
    source = operand.dtype
    if source.bits != dtype.bits or source.is_complex or dtype.is_complex:
        raise SignatureError("TM202", f"needs two types of one width, got {source} and {dtype}")
    return (operand.with_dtype(dtype),)


def _select_signature(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    condition, a, b = tensor_operands(operands, 3)
    no_attributes(attrs)
    if condition.dtype is not BOOL:
        raise SignatureError("TM202", f"needs a bool condition, got {condition.dtype}")
    if a.dtype is not b.dtype:
        raise SignatureError("TM202", f"needs branches of one dtype, got {a.dtype} and {b.dtype}")
    return (TensorType(a.dtype, broadcast_shapes([condition.shape, a.shape, b.shape])),)


def _select_body(condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
    if a.dtype is BOOL:
        return (condition & a) | (~condition & b)
    return select(condition, a, b)


def _select_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    condition = node.operands[0]
    zero = literal(emit, cts[0], 0)
    return [None, where_zero(emit, condition, cts[0]), emit.select(condition, zero, cts[0])]


OPS: tuple[OpDef, ...] = (
    record("cast", cast_array, lambda x, dtype: convert(x, dtype),
           "The operand in another type, as astype. A float that does not fit gives the least "
           "value of i32 and i64, the low bits of that conversion to narrower integers; a complex "
           "number loses its imaginary part.",
           signature=_cast_signature, gradient=_cast_gradient, tangent=_cast_tangent,
           canonical=_cast_canonical,
           exact_halves=True),
    record("bitcast", lambda x, dtype: np.ascontiguousarray(x).view(dtype.numpy).reshape(x.shape),
           lambda x, dtype: bitcast(x, dtype), "The bits of the operand read as another type.",
           signature=_bitcast_signature, exact_halves=True),
    record("select", np.where, _select_body,
           "The second operand where the first, a bool, holds, else the third.",
           signature=_select_signature, gradient=_select_gradient, tangent=linear(1, 2),
           canonical=_select_canonical, exact_halves=True),
)  # fmt: skip
