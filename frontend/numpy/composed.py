"""Functions composed of others: clip, round, isclose, diff, meshgrid.

Not here: anything with an algorithm of its own.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tracemill.compiler.dims import product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BF16, BOOL, F32, I64, DType

from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import TracedArray, fresh, result
from .axes import one_axis
from .creation import asarray
from .memory_order import ordered
from .movement import view_of
from .operands import MISSING, common_dtype, fitting, integer_limits, is_traced, value_of
from .queries import iscomplexobj
from .ranges import arange
from .ufuncs import deliver
from .words import broadcast_shapes, broadcast_to, reshape, slice_axis

_MOST_DIGITS = 308  # 10.0 ** 309 is infinite to NumPy; Python refuses to compute it


def clip(
    a: Any,
    a_min: Any = MISSING,
    a_max: Any = MISSING,
    out: Any = None,
    *,
    min: Any = MISSING,
    max: Any = MISSING,
    dtype: Any = None,
    casting: str = "same_kind",
    where: Any = True,
) -> Any:
    """np.clip: bounds outside an integer type do not clip."""
    low = min if a_min is MISSING else a_min
    high = max if a_max is MISSING else a_max
    low, high = (None if b is MISSING else b for b in (low, high))
    trace = running()
    value = value_of(a)
    if value.tensor.dtype.is_integer:
        limits = integer_limits(value.tensor.dtype)
        if type(low) is int and low < limits.min:
            low = None if type(high) in (int, type(None)) or high is None else int(limits.min)
        if type(high) is int and high > limits.max:
            high = None if low is None or type(low) is int else int(limits.max)
    a = a if is_traced(a) and hasattr(a, "tensor_type") else result(trace, value)  # no weak number
    operands = [a, *(b for b in (low, high) if b is not None)]
    if len(operands) == 3:  # with both bounds it is a ufunc, whose first loop is float32's
        operands = [_no_bfloat16(trace, operand) for operand in operands]
    found = require_dtype(dtype) if dtype is not None else common_dtype(*operands)
    value = trace.cast(value, found)
    for bound, op in ((low, "maximum"), (high, "minimum")):
        if bound is not None:
            value = trace.emit(op, value, _bound(trace, bound, op, found))
    if out is not None or where is not True:
        return deliver(trace, value, out, where, casting, "clip")
    return ordered(result(trace, value), operands)


def _no_bfloat16(trace: Trace, operand: Any) -> Any:
    if type(operand) in (int, float, bool) or value_of(operand).tensor.dtype is not BF16:
        return operand
    return result(trace, trace.cast(value_of(operand), F32))


def _bound(trace: Trace, bound: Any, op: str, dtype: DType) -> Value:
    """A bound as `dtype`. An int of the run that no element can pass does not clip."""
    if type(bound) in (int, float, bool):
        return trace.literal(bound, dtype)
    number = value_of(bound)
    if type(bound) in (TracedNumber, TracedSize) and dtype.is_integer and dtype is not I64:
        limits, most = integer_limits(dtype), integer_limits(I64).max
        last = trace.literal(int(limits.min if op == "maximum" else min(limits.max, most)), I64)
        return fitting(trace, trace.emit(op, trace.cast(number, I64), last), dtype)
    return trace.cast(number, dtype)


def clip_method(a: Any, min: Any = None, max: Any = None, out: Any = None, **keywords: Any) -> Any:
    """ndarray.clip"""
    return clip(a, min, max, out, **keywords)


def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    """np.round"""
    digits = operator.index(decimals)
    trace = running()
    value = value_of(a)
    dtype = value.tensor.dtype
    if dtype is BOOL or dtype.is_integer:
        if digits < 0:
            raise fail("TM111", "np.round of integers to tens is not supported")
        made = result(
            trace, trace.cast(value, require_dtype(np.float16)) if dtype is BOOL else value
        )
    elif dtype.is_complex:
        made = _complex_round(a, digits)
    elif digits == 0:
        made = np.rint(a)
    else:
        scale = 10.0 ** abs(digits) if abs(digits) <= _MOST_DIGITS else np.inf
        steps = (np.multiply, np.true_divide) if digits > 0 else (np.true_divide, np.multiply)
        scaled = result(trace, trace.cast(value_of(steps[0](a, scale)), dtype))
        back = steps[1](np.rint(scaled), scale)  # NumPy keeps each step in the array's own dtype
        made = result(trace, trace.cast(value_of(back), dtype))
    if out is not None:
        return deliver(trace, value_of(made), out, True, "unsafe", "round")
    return ordered(made, [a])


def _complex_round(a: Any, digits: int) -> Any:
    trace = running()
    real, imag = round_(np.real(a), digits), round_(np.imag(a), digits)
    return result(trace, trace.emit("complex", value_of(real), value_of(imag)))


def fix(x: Any, out: Any = None) -> Any:
    """np.fix"""
    return np.trunc(x) if out is None else np.trunc(x, out=out)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """np.isclose"""
    b = float(b) if isinstance(b, int) else asarray(b, common_dtype(b, 1.0).numpy)
    near = np.less_equal(np.abs(np.subtract(a, b)), atol + rtol * np.abs(b))
    close = (near & np.isfinite(b)) | np.equal(a, b)
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """np.allclose"""
    return running().dispatch.python_number(value_of(np.all(isclose(a, b, rtol, atol, equal_nan))))


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """np.array_equal"""
    trace = running()
    first, second = value_of(a1), value_of(a2)
    same = first.tensor.rank == second.tensor.rank and all(
        trace.sizes.equal(m, n, "arrays are compared")
        for m, n in zip(first.tensor.shape, second.tensor.shape)
    )
    if not same:
        return False
    equal = np.equal(a1, a2)
    if equal_nan:
        equal = equal | (np.isnan(a1) & np.isnan(a2))
    return trace.dispatch.python_number(value_of(np.all(equal)))


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """np.nan_to_num of real arrays."""
    trace = running()
    value = value_of(x)
    dtype = value.tensor.dtype
    if dtype.is_complex:
        raise fail("TM111", "np.nan_to_num of complex arrays is not supported")
    if not dtype.is_float or dtype is BF16:  # to NumPy no inexact number
        return result(trace, value)
    limits: Any = np.finfo(dtype.numpy)
    rows = (
        (trace.emit("isnan", value), nan),
        (
            trace.emit("equal", value, trace.literal(np.inf, dtype)),
            limits.max if posinf is None else posinf,
        ),
        (
            trace.emit("equal", value, trace.literal(-np.inf, dtype)),
            limits.min if neginf is None else neginf,
        ),
    )
    made = value
    for mask, number in rows:
        made = trace.emit("select", mask, trace.cast(value_of(number), dtype), made)
    if not copy and type(x) is TracedArray:
        x.write(made)
        return x
    return ordered(result(trace, made), [x])


def isposinf(x: Any, out: Any = None) -> Any:
    """np.isposinf"""
    x = asarray(x)
    return np.logical_and(np.isinf(x), np.logical_not(np.signbit(x)), out)


def isneginf(x: Any, out: Any = None) -> Any:
    """np.isneginf"""
    x = asarray(x)
    return np.logical_and(np.isinf(x), np.signbit(x), out)


def sinc(x: Any) -> Any:
    """np.sinc"""
    y = np.multiply(np.pi, x)
    tiny = np.finfo(y.dtype).eps if y.dtype.kind == "f" else 1e-20
    y = np.where(y, y, tiny)
    return np.sin(y) / y


def angle(z: Any, deg: bool = False) -> Any:
    """np.angle"""
    z = asarray(z)
    made = np.arctan2(np.imag(z), np.real(z)) if iscomplexobj(z) else np.arctan2(0, z)
    return made * (180 / np.pi) if deg else made


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = MISSING, append: Any = MISSING) -> Any:
    """np.diff"""
    trace = running()
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    array = view_of(a)
    if array.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    place = one_axis(axis, array.ndim)
    parts = [p for p in (prepend, a, append) if p is not MISSING]
    if len(parts) > 1:
        like = tuple(n if i != place else 1 for i, n in enumerate(array.tensor_type.shape))
        numbers = [
            broadcast_to(trace, value_of(p), like) if np.ndim(p) == 0 else None for p in parts
        ]
        parts = [p if n is None else fresh(trace, n) for p, n in zip(parts, numbers)]
        array = view_of(np.concatenate(parts, axis=place))
    value = array.value
    op = "not_equal" if value.tensor.dtype is BOOL else "sub"
    for _ in range(n):
        count = value.tensor.shape[place]
        rest = count - 1 if trace.sizes.at_least(count, 1, "diff needs an element") else 0
        if rest == 0:
            value = slice_axis(trace, value, place, 0, 0)
            continue
        value = trace.emit(
            op, slice_axis(trace, value, place, 1, rest), slice_axis(trace, value, place, 0, rest)
        )
    return ordered(fresh(trace, value), [array])


def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """np.vander"""
    if np.ndim(x) != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = np.shape(x)[0] if N is None else N
    if count < 0:
        raise fail("TM242", "negative dimensions are not allowed")
    powers = arange(count) if increasing else arange(count)[::-1]
    dtype = np.promote_types(np.asarray(x).dtype if not is_traced(x) else x.dtype, int)
    return np.power(np.reshape(x, (-1, 1)).astype(dtype), powers)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """np.meshgrid"""
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    trace = running()
    values = [value_of(x) for x in xi]
    order = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        order[:2] = [1, 0]
    made = []
    for axis, value in zip(order, values):
        count = product(value.tensor.shape)
        made.append(reshape(trace, value, [count if i == axis else 1 for i in range(len(values))]))
    if not sparse and made:
        common = broadcast_shapes(trace, [m.tensor.shape for m in made])
        made = [trace.emit("broadcast_to", m, shape=common) for m in made]
    return tuple(fresh(trace, m) for m in made)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """np.ediff1d: in the dtype of the array, which the ends must fit."""
    row = np.ravel(ary)
    parts = [np.subtract(row[1:], row[:-1])]  # of bools there is none, unlike np.diff
    for name, end in (("to_begin", to_begin), ("to_end", to_end)):
        if end is None:
            continue
        given = value_of(end).tensor.dtype.numpy
        if not np.can_cast(given, row.dtype, casting="same_kind"):
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
            )
        end = np.ravel(end).astype(row.dtype)
        parts = [end, *parts] if name == "to_begin" else [*parts, end]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


FUNCTIONS: dict[Any, Any] = {
    np.clip: clip, np.round: round_, np.around: round_, np.fix: fix, np.isclose: isclose,
    np.allclose: allclose, np.array_equal: array_equal, np.nan_to_num: nan_to_num,
    np.isposinf: isposinf, np.isneginf: isneginf, np.sinc: sinc, np.angle: angle, np.diff: diff,
    np.vander: vander, np.meshgrid: meshgrid, np.ediff1d: ediff1d,
}  # fmt: skip

METHODS: dict[str, Any] = {"clip": clip_method, "round": round_}
