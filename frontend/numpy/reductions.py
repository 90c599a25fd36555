"""Folding axes: sum to all, argmax, mean, var, running totals, and ``ufunc.reduce``.

Invariants: accumulator dtypes are NumPy's; var is the two-pass algorithm of NumPy.
Not here: contraction (linear.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, F16, F32, I64, U64, DType, real_part_of

from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import result
from .axes import all_axes, kept_shape, one_axis
from .operands import value_of
from .ufuncs import deliver
from .words import broadcast_to, full, reshape

_MISSING: Any = np._NoValue  # type: ignore[attr-defined]

# ufunc whose reduce it is -> (op, identity; None where there is none)
_FOLDS: dict[np.ufunc, tuple[str, Any]] = {
    np.add: ("sum", 0),
    np.multiply: ("prod", 1),
    np.maximum: ("max", None),
    np.minimum: ("min", None),
    np.logical_and: ("all", True),
    np.logical_or: ("any", False),
}


def fold(
    ufunc: np.ufunc,
    a: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _MISSING,
    where: Any = True,
) -> Any:
    """``ufunc.reduce``."""
    trace = running()
    known = _FOLDS.get(ufunc)
    if known is None:
        raise fail("TM110", f"np.{ufunc.__name__}.reduce is not supported")
    op, identity = known
    value = _accumulated(trace, op, value_of(a), dtype, out)
    shape = value.tensor.shape
    axes = all_axes(axis, len(shape), scalar_ok=True)
    if initial is None and identity is not None:
        initial = _MISSING
    if where is not True:
        value = _masked(trace, op, value, where, identity, initial)
        shape = value.tensor.shape
    start = identity if initial is _MISSING else initial
    made = _folded(trace, op, value, axes, start, ufunc.__name__)
    if initial is not _MISSING and initial is not None:
        first = trace.cast(value_of(initial), made.tensor.dtype)
        made = trace.emit(_COMBINE[op], made, first)
    if keepdims is not _MISSING and keepdims:
        made = reshape(trace, made, kept_shape(shape, axes))
    made = _as_asked(trace, made, op, dtype)
    return result(trace, made) if out is None else deliver(trace, made, out, True, "same_kind", "reduce")


_COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum",
            "any": "logical_or", "all": "logical_and"}  # fmt: skip


def _accumulated(trace: Trace, op: str, value: Value, dtype: Any, out: Any) -> Value:
    """The operand in the dtype NumPy accumulates in."""
    have = value.tensor.dtype
    if op in ("any", "all"):
        return trace.cast(value, BOOL)
    if dtype is not None:
        return trace.cast(value, require_dtype(dtype))
    if op in ("sum", "prod"):
        if have.kind in "bi" and have.bits < 64:
            return trace.cast(value, I64)
        if have.kind == "u" and have.bits < 64:
            return trace.cast(value, U64)
    return value


def _as_asked(trace: Trace, made: Value, op: str, dtype: Any) -> Value:
    if dtype is not None and op in ("any", "all"):
        return trace.cast(made, require_dtype(dtype))
    return made


def _masked(trace: Trace, op: str, value: Value, where: Any, identity: Any, initial: Any) -> Value:
    """Elements outside the mask replaced by what does not change the result."""
    if identity is None and initial is _MISSING:
        raise ValueError(
            f"reduction operation '{_COMBINE[op]}' does not have an identity, so to use a where "
            "mask one has to specify 'initial'"
        )
    dtype = value.tensor.dtype
    neutral = identity if identity is not None else initial
    mask = trace.cast(value_of(where), BOOL)
    other = trace.cast(value_of(neutral), dtype)
    made: Value = trace.emit("select", mask, value, other)
    return made


def _folded(
    trace: Trace, op: str, value: Value, axes: tuple[int, ...], start: Any, name: str
) -> Value:
    shape = value.tensor.shape
    count = product(tuple(shape[axis] for axis in axes))
    if op in ("max", "min") and axes and trace.sizes.equal(count, 0, f"{name} needs elements"):
        if start is None:
            raise fail(
                "TM241",
                f"zero-size array to reduction operation {name} which has no identity",
            )
        kept = tuple([n for i, n in enumerate(shape) if i not in axes])
        return broadcast_to(trace, trace.cast(value_of(start), value.tensor.dtype), kept)
    dtype = value.tensor.dtype
    if op == "sum" and dtype is F16:
        total = trace.emit("sum", trace.cast(value, F32), axes=axes)
        return trace.cast(total, F16)
    if op in ("max", "min") and dtype is BOOL:
        return _folded(trace, "any" if op == "max" else "all", value, axes, start, name)
    made: Value = trace.emit(op, value, axes=axes)
    return made


def _reducer(ufunc: np.ufunc) -> Any:
    def reducer(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = _MISSING, where: Any = True,
    ) -> Any:  # fmt: skip
        where = True if where is _MISSING else where
        keepdims = False if keepdims is _MISSING else keepdims
        return fold(ufunc, a, axis, dtype, out, keepdims, initial, where)

    return reducer


def _extreme(ufunc: np.ufunc) -> Any:
    def reducer(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = _MISSING, where: Any = True,
    ) -> Any:  # fmt: skip
        where = True if where is _MISSING else where
        keepdims = False if keepdims is _MISSING else keepdims
        return fold(ufunc, a, axis, None, out, keepdims, initial, where)

    return reducer


def _truth(ufunc: np.ufunc) -> Any:
    def reducer(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Any:
        where = True if where is _MISSING else where
        keepdims = False if keepdims is _MISSING else keepdims
        return fold(ufunc, a, axis, None, out, keepdims, _MISSING, where)

    return reducer


def _position(op: str) -> Any:
    def reducer(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        trace = running()
        value = value_of(a)
        shape = value.tensor.shape
        if value.tensor.rank == 0 or axis is None:
            if axis is not None:
                all_axes(axis, 0, scalar_ok=True)
            value = reshape(trace, value, (product(shape),))
            place = 0
        else:
            place = one_axis(axis, len(shape))
        if trace.sizes.equal(value.tensor.shape[place], 0, f"{op} needs elements"):
            raise fail("TM241", f"attempt to get {op} of an empty sequence")
        made = trace.emit(op, value, axes=(place,))
        if keepdims is not _MISSING and keepdims:
            made = reshape(trace, made, kept_shape(shape, range(len(shape)) if axis is None else (place,)))
        if out is not None:
            return deliver(trace, made, out, True, "same_kind", op)
        return result(trace, made)

    reducer.__name__ = op
    return reducer


def _scan(op: str) -> Any:
    fold_op = {"cumsum": "sum", "cumprod": "prod"}[op]

    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        trace = running()
        value = _accumulated(trace, fold_op, value_of(a), dtype, out)
        shape = value.tensor.shape
        if axis is None:
            value = reshape(trace, value, (product(shape),))
            place = 0
        else:
            place = one_axis(axis, len(shape))
        if value.tensor.dtype is BOOL:
            value = trace.cast(value, I64)
        made = trace.emit(op, value, axis=place)
        if out is not None:
            return deliver(trace, made, out, True, "same_kind", op)
        return result(trace, made)

    return scan


def cumulative(op: str) -> Any:
    """np.cumulative_sum and np.cumulative_prod."""
    scan = _scan(op)

    def function(x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False) -> Any:
        value = value_of(x)
        if axis is None:
            if value.tensor.rank > 1:
                raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
            axis = 0
        made = scan(x, axis, dtype, out)
        if not include_initial:
            return made
        trace = running()
        place = one_axis(axis, made.ndim)
        shape = kept_shape(made.tensor_type.shape, (place,))
        first = full(trace, shape, 0 if op == "cumsum" else 1, made.tensor_type.dtype)
        return result(trace, trace.emit("concatenate", first, made.value, axis=place))

    return function


def accumulate(ufunc: np.ufunc, a: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
    """``ufunc.accumulate``."""
    scan = {np.add: cumsum, np.multiply: cumprod}.get(ufunc)
    if scan is None:
        raise fail("TM110", f"np.{ufunc.__name__}.accumulate is not supported")
    return scan(a, axis, dtype, out)


def count_of(trace: Trace, shape: tuple[Size, ...], axes: tuple[int, ...], where: Any, dtype: DType) -> Value:
    """How many elements each result of a mean is over, as `dtype`."""
    if where is True:
        return trace.cast(trace.size_value(product(tuple(shape[a] for a in axes))), dtype)
    mask = broadcast_to(trace, trace.cast(value_of(where), BOOL), shape)
    made: Value = trace.emit("sum", trace.cast(mask, I64), axes=axes)
    return trace.cast(made, dtype)


def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """np.mean"""
    trace = running()
    value = value_of(a)
    where = True if where is _MISSING else where
    if value.tensor.rank == 0 and axis is not None:
        all_axes(axis, 0)
    made, given = _mean(trace, value, axis, dtype, where, keepdims is not _MISSING and bool(keepdims))
    made = trace.cast(made, given)
    return result(trace, made) if out is None else deliver(trace, made, out, True, "unsafe", "mean")


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
        wide = _masked(trace, "sum", wide, where, 0, _MISSING)
    total = _folded(trace, "sum", wide, axes, 0, "add")
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
            trace.emit("div", trace.cast(total, require_dtype(float)), trace.cast(count, require_dtype(float))),
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


def var(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *, where: Any = True, mean: Any = _MISSING, correction: Any = _MISSING) -> Any:
    """np.var"""
    trace = running()
    made, given = _var(trace, a, axis, dtype, ddof if correction is _MISSING else correction, keepdims, where, mean)
    made = trace.cast(made, given)
    return result(trace, made) if out is None else deliver(trace, made, out, True, "unsafe", "var")


def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *, where: Any = True, mean: Any = _MISSING, correction: Any = _MISSING) -> Any:
    """np.std"""
    trace = running()
    made, given = _var(trace, a, axis, dtype, ddof if correction is _MISSING else correction, keepdims, where, mean)
    made = trace.emit("sqrt", trace.cast(made, given))
    return result(trace, made) if out is None else deliver(trace, made, out, True, "unsafe", "std")


def _var(
    trace: Trace, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: Any, where: Any, mean: Any
) -> tuple[Value, DType]:
    value = value_of(a)
    where = True if where is _MISSING else where
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
    if mean is _MISSING:
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
        square = _masked(trace, "sum", square, where, 0, _MISSING)
    total = _folded(trace, "sum", square, axes, 0, "add")
    number = real_work(work)
    count = count_of(trace, shape, axes, where, number)
    if not (isinstance(ddof, int | float) and ddof == 0):
        less = trace.emit("sub", count, trace.cast(value_of(ddof), number))
        count = trace.emit("maximum", less, trace.literal(0, number))
    made = _divided(trace, total, count)
    if keepdims is not _MISSING and keepdims:
        made = reshape(trace, made, kept_shape(shape, axes))
    return made, given


sum_, prod = _reducer(np.add), _reducer(np.multiply)
amax, amin = _extreme(np.maximum), _extreme(np.minimum)
any_, all_ = _truth(np.logical_or), _truth(np.logical_and)
argmax, argmin = _position("argmax"), _position("argmin")
cumsum, cumprod = _scan("cumsum"), _scan("cumprod")


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """np.ptp"""
    made = np.subtract(amax(a, axis, None, keepdims), amin(a, axis, None, keepdims))
    return made if out is None else deliver(running(), value_of(made), out, True, "unsafe", "ptp")


def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """np.count_nonzero"""
    trace = running()
    mask = trace.cast(value_of(a), BOOL)
    return sum_(result(trace, trace.cast(mask, I64)), axis, keepdims=keepdims)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """np.average"""
    trace = running()
    keep = keepdims is not _MISSING and bool(keepdims)
    if weights is None:
        made = mean(a, axis, keepdims=keep)
        total: Any = count_of(
            trace, value_of(a).tensor.shape, all_axes(axis, value_of(a).tensor.rank), True,
            value_of(made).tensor.dtype,
        )  # fmt: skip
        return (made, result(trace, broadcast_to(trace, total, value_of(made).tensor.shape))) if returned else made
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
    product_ = np.multiply(result(trace, value), result(trace, weight), dtype=work)
    made = np.divide(sum_(product_, axis, keepdims=keep), scale)
    return (made, scale) if returned else made


FUNCTIONS = {
    np.sum: sum_, np.prod: prod, np.max: amax, np.min: amin, np.amax: amax, np.amin: amin,
    np.any: any_, np.all: all_, np.argmax: argmax, np.argmin: argmin, np.cumsum: cumsum,
    np.cumprod: cumprod, np.mean: mean, np.var: var, np.std: std, np.ptp: ptp,
    np.count_nonzero: count_nonzero, np.average: average,
    np.cumulative_sum: cumulative("cumsum"), np.cumulative_prod: cumulative("cumprod"),
}  # fmt: skip

METHODS = {
    "sum": sum_, "prod": prod, "max": amax, "min": amin, "any": any_, "all": all_,
    "argmax": argmax, "argmin": argmin, "cumsum": cumsum, "cumprod": cumprod, "mean": mean,
    "var": var, "std": std,
}  # fmt: skip
