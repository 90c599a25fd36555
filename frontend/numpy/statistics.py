"""Means and spreads: mean, var, std, average.

Invariants: var is NumPy's two-pass algorithm; dtypes in between are NumPy's.
Not here: sums (reductions.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, F16, F32, I64, DType, real_part_of

from ..tracing.concrete import require
from ..tracing.state import Trace, require_dtype, running
from ..tracing.tensor import TracedArray, result
from .axes import all_axes, kept_shape, one_axis
from .memory_order import after_reduction
from .operands import MISSING, value_of
from .reductions import folded, masked, sum_
from .ufuncs import deliver
from .words import broadcast_to, reshape


def count_of(
    trace: Trace, shape: tuple[Size, ...], axes: tuple[int, ...], where: Any, dtype: DType
) -> Value:
    """How many elements each result of a mean is over, as `dtype`."""
    if where is True:
        return trace.cast(trace.size_value(product(tuple(shape[a] for a in axes))), dtype)
    mask = broadcast_to(trace, trace.cast(value_of(where), BOOL), shape)
    made: Value = trace.emit("sum", trace.cast(mask, I64), axes=axes)
    return trace.cast(made, dtype)


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    *,
    where: Any = True,
) -> Any:
    """np.mean"""
    trace = running()
    value = value_of(a)
    where = True if where is MISSING else where
    if value.tensor.rank == 0 and axis is not None:
        all_axes(axis, 0)
    made, given = _mean(
        trace, value, axis, dtype, where, keepdims is not MISSING and bool(keepdims)
    )
    made = trace.cast(made, given)
    if out is not None:
        return deliver(trace, made, out, True, "unsafe", "mean")
    return _as_operand(result(trace, made), a, axis, keepdims)


def _as_operand(made: Any, a: Any, axis: Any, keepdims: Any) -> Any:
    """The result of a reduction of `a`, laid out as NumPy does it."""
    if axis is None or type(made) is not TracedArray:
        return made
    kept = keepdims is not MISSING and bool(keepdims)
    return after_reduction(made, a, all_axes(axis, value_of(a).tensor.rank), kept)


def _mean(
    trace: Trace, value: Value, axis: Any, dtype: Any, where: Any, keepdims: bool
) -> tuple[Value, DType]:
    """The mean in the dtype it is computed in, and the dtype it is given back in."""
    have = value.tensor.dtype
    if dtype is not None:
        work = given = require_dtype(dtype)
    elif have.kind in "biu":
        work = given = require_dtype(float)
    elif have is F16:
        work, given = F32, F16
    else:
        work = given = have
    shape = value.tensor.shape
    axes = all_axes(axis, len(shape))
    wide = trace.cast(value, work)
    if where is not True:
        wide = masked(trace, "sum", wide, where, 0, MISSING)
    total = folded(trace, "sum", wide, axes, 0, "add")
    made = _divided(trace, total, count_of(trace, shape, axes, where, real_work(work)))
    if keepdims:
        made = reshape(trace, made, kept_shape(shape, axes))
    return made, given


def real_work(dtype: DType) -> DType:
    """The real dtype of a division by a count."""
    return real_part_of(dtype) if dtype.is_complex else dtype


def _divided(trace: Trace, total: Value, count: Value) -> Value:
    dtype = total.tensor.dtype
    if dtype.is_integer:
        return trace.cast(
            trace.emit(
                "div",
                trace.cast(total, require_dtype(float)),
                trace.cast(count, require_dtype(float)),
            ),
            dtype,
        )
    if dtype.is_complex:
        part = real_part_of(dtype)
        real = trace.emit("div", trace.emit("real", total), trace.cast(count, part))
        imag = trace.emit("div", trace.emit("imag", total), trace.cast(count, part))
        value: Value = trace.emit("complex", real, imag)
        return value
    value = trace.emit("div", total, trace.cast(count, dtype))
    return value


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = MISSING,
    correction: Any = MISSING,
) -> Any:
    """np.var"""
    trace = running()
    made, given = _var(
        trace, a, axis, dtype, ddof if correction is MISSING else correction, keepdims, where, mean
    )
    made = trace.cast(made, given)
    if out is not None:
        return deliver(trace, made, out, True, "unsafe", "var")
    return _as_operand(result(trace, made), a, axis, keepdims)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = MISSING,
    correction: Any = MISSING,
) -> Any:
    """np.std"""
    trace = running()
    made, given = _var(
        trace, a, axis, dtype, ddof if correction is MISSING else correction, keepdims, where, mean
    )
    made = trace.emit("sqrt", trace.cast(made, given))
    if out is not None:
        return deliver(trace, made, out, True, "unsafe", "std")
    return _as_operand(result(trace, made), a, axis, keepdims)


def _var(
    trace: Trace, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any
) -> tuple[Value, DType]:
    value = value_of(a)
    where = True if where is MISSING else where
    have = value.tensor.dtype
    if dtype is not None:
        work = given = require_dtype(dtype)
    elif have.kind in "biu":
        work = given = require_dtype(float)
    else:
        work, given = (F32, F16) if have is F16 else (have, real_part_of(have))
    if dtype is not None:
        given = real_part_of(work)
    shape = value.tensor.shape
    axes = all_axes(axis, len(shape))
    if mean is MISSING:
        middle, _ = _mean(trace, trace.cast(value, work), axis, work.numpy, where, True)
    else:
        middle = trace.cast(value_of(mean), work)
    offset = trace.emit("sub", trace.cast(value, work), middle)
    if work.is_complex:
        real, imag = trace.emit("real", offset), trace.emit("imag", offset)
        square = trace.emit("add", trace.emit("mul", real, real), trace.emit("mul", imag, imag))
    else:
        square = trace.emit("mul", offset, offset)
    if where is not True:
        square = masked(trace, "sum", square, where, 0, MISSING)
    total = folded(trace, "sum", square, axes, 0, "add")
    number = real_work(work)
    count = count_of(trace, shape, axes, where, number)
    if not (isinstance(ddof, int | float) and ddof == 0):
        less = trace.emit("sub", count, trace.cast(value_of(ddof), number))
        count = trace.emit("maximum", less, trace.literal(0, number))
    made = _divided(trace, total, count)
    if keepdims is not MISSING and keepdims:
        made = reshape(trace, made, kept_shape(shape, axes))
    return made, given


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    """np.average"""
    trace = running()
    keep = keepdims is not MISSING and bool(keepdims)
    if weights is None:
        made = mean(a, axis, keepdims=keep)
        total: Any = count_of(
            trace, value_of(a).tensor.shape, all_axes(axis, value_of(a).tensor.rank), True,
            value_of(made).tensor.dtype,
        )  # fmt: skip
        return (
            (made, result(trace, broadcast_to(trace, total, value_of(made).tensor.shape)))
            if returned
            else made
        )
    value, weight = value_of(a), value_of(weights)
    kinds = [value.tensor.dtype.numpy, weight.tensor.dtype.numpy]
    work = np.result_type(*kinds, *(["f8"] if value.tensor.dtype.kind in "biu" else []))
    if weight.tensor.rank != value.tensor.rank:
        if axis is None:
            raise TypeError("Axis must be specified when shapes of a and weights differ.")
        place = one_axis(axis, value.tensor.rank)
        shape = tuple([n if i == place else 1 for i, n in enumerate(value.tensor.shape)])
        weight = reshape(trace, weight, shape)
    spread = broadcast_to(trace, weight, value.tensor.shape)
    scale = sum_(result(trace, spread), axis, dtype=work, keepdims=keep)
    some = value_of(scale != 0)
    axes = tuple(range(some.tensor.rank))
    every = trace.emit("all", some, axes=axes) if axes else some
    require(trace, every, "TM262", "Weights sum to zero, can't be normalized")
    product_ = np.multiply(result(trace, value), result(trace, weight), dtype=work)
    made = np.divide(sum_(product_, axis, keepdims=keep), scale)
    return (made, scale) if returned else made


FUNCTIONS: dict[Any, Any] = {np.mean: mean, np.var: var, np.std: std, np.average: average}
METHODS: dict[str, Any] = {"mean": mean, "var": var, "std": std}
