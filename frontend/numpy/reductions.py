"""Folding axes: sum to all, argmax, mean, var, running totals, and ``ufunc.reduce``.

Invariants: accumulator dtypes are NumPy's; var is the two-pass algorithm of NumPy.
Not here: contraction (linear.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, F16, F32, I64

from ..loading import load
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import result
from .axes import all_axes, kept_shape, one_axis
from .memory_order import after_reduction, ordered
from .operands import MISSING, value_of
from .promotion import fold_dtypes
from .ufuncs import deliver, out_array
from .words import broadcast_to, full, in_a_row, reshape

# ufunc whose reduce it is -> (op, identity; None where there is none)
FOLDS: dict[np.ufunc, tuple[str, Any]] = {
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
    initial: Any = MISSING,
    where: Any = True,
) -> Any:
    """``ufunc.reduce``."""
    trace = running()
    known = FOLDS.get(ufunc)
    if known is None:
        folds = load("numpy.folds")
        return folds.reduce(ufunc, a, axis, dtype, out, keepdims, initial, where)
    op, identity = known
    value = value_of(a)
    axes = all_axes(axis, value.tensor.rank, scalar_ok=True)
    value = _accumulated(trace, ufunc, value, dtype, out)
    if value.tensor.dtype is BOOL:
        op = _OF_BOOLS[op]
    shape = value.tensor.shape
    if where is not True:
        value = masked(trace, op, value, where, identity, initial)
        shape = value.tensor.shape
    start = identity if initial is MISSING else initial
    made = folded(trace, op, value, axes, start, ufunc.__name__)
    if initial is not MISSING and initial is not None:
        first = trace.cast(value_of(initial), made.tensor.dtype)
        made = trace.emit(_COMBINE[op], made, first)
    if keepdims is not MISSING and keepdims:
        made = reshape(trace, made, kept_shape(shape, axes))
    kept = keepdims is not MISSING and bool(keepdims)
    return (
        after_reduction(result(trace, made), a if where is True else None, axes, kept)
        if out is None
        else deliver(trace, made, out, True, "unsafe", "reduce")
    )


_COMBINE = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum",
            "any": "logical_or", "all": "logical_and"}  # fmt: skip
_OF_BOOLS = {"sum": "any", "max": "any", "prod": "all", "min": "all", "any": "any", "all": "all"}


def _accumulated(trace: Trace, ufunc: np.ufunc, value: Value, dtype: Any, out: Any) -> Value:
    """The operand in the dtype NumPy accumulates in."""
    given = None if out is None else out_array(out).tensor_type.dtype.numpy
    asked = None if dtype is None else require_dtype(dtype).numpy
    found, _ = fold_dtypes(ufunc, value.tensor.dtype.numpy, given, asked)
    return trace.cast(value, found)


def masked(trace: Trace, op: str, value: Value, where: Any, identity: Any, initial: Any) -> Value:
    """Elements outside the mask replaced by what does not change the result."""
    if identity is None and initial is MISSING:
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


def folded(
    trace: Trace, op: str, value: Value, axes: tuple[int, ...], start: Any, name: str
) -> Value:
    shape = value.tensor.shape
    count = product(tuple(shape[axis] for axis in axes))
    needs_one = start is None or op in ("max", "min")
    if needs_one and axes and trace.sizes.equal(count, 0, f"{name} needs elements"):
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
    if dtype is BOOL:
        op = _OF_BOOLS[op]
    made: Value = trace.emit(op, value, axes=axes)
    return made


def _reducer(ufunc: np.ufunc) -> Any:
    def reducer(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = MISSING, where: Any = True,
    ) -> Any:  # fmt: skip
        where = True if where is MISSING else where
        keepdims = False if keepdims is MISSING else keepdims
        return fold(ufunc, a, axis, dtype, out, keepdims, initial, where)

    return reducer


def _extreme(ufunc: np.ufunc) -> Any:
    def reducer(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
        initial: Any = MISSING, where: Any = True,
    ) -> Any:  # fmt: skip
        where = True if where is MISSING else where
        keepdims = False if keepdims is MISSING else keepdims
        return fold(ufunc, a, axis, None, out, keepdims, initial, where)

    return reducer


def _truth(ufunc: np.ufunc) -> Any:
    def reducer(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
    ) -> Any:
        where = True if where is MISSING else where
        keepdims = False if keepdims is MISSING else keepdims
        return fold(ufunc, a, axis, None, out, keepdims, MISSING, where)

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
        if keepdims is not MISSING and keepdims:
            made = reshape(
                trace, made, kept_shape(shape, range(len(shape)) if axis is None else (place,))
            )
        if out is not None:
            return deliver(trace, made, out, True, "same_kind", op)
        return result(trace, made)

    reducer.__name__ = op
    return reducer


def _scan(op: str) -> Any:
    ufunc = {"cumsum": np.add, "cumprod": np.multiply}[op]

    def scan(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        trace = running()
        value = _accumulated(trace, ufunc, value_of(a), dtype, out)
        value, place = in_a_row(trace, value, axis)
        of_bools = {"cumsum": "cummax", "cumprod": "cummin"}
        made = trace.emit(of_bools[op] if value.tensor.dtype is BOOL else op, value, axis=place)
        if out is not None:
            return deliver(trace, made, out, True, "unsafe", op)
        return result(trace, made) if axis is None else ordered(result(trace, made), [a])

    return scan


def cumulative(op: str) -> Any:
    """np.cumulative_sum and np.cumulative_prod."""
    scan = _scan(op)

    def function(
        x: Any,
        /,
        *,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        include_initial: bool = False,
    ) -> Any:
        value = value_of(x)
        if axis is None:
            if value.tensor.rank > 1:
                raise ValueError(
                    "For arrays which have more than one dimension ``axis`` argument is required."
                )
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


FUNCTIONS: dict[Any, Any] = {
    np.sum: sum_, np.prod: prod, np.max: amax, np.min: amin, np.amax: amax, np.amin: amin,
    np.any: any_, np.all: all_, np.argmax: argmax, np.argmin: argmin, np.cumsum: cumsum,
    np.cumprod: cumprod, np.ptp: ptp, np.count_nonzero: count_nonzero,
    np.cumulative_sum: cumulative("cumsum"), np.cumulative_prod: cumulative("cumprod"),
}  # fmt: skip

METHODS: dict[str, Any] = {
    "sum": sum_, "prod": prod, "max": amax, "min": amin, "any": any_, "all": all_,
    "argmax": argmax, "argmin": argmin, "cumsum": cumsum, "cumprod": cumprod,
}  # fmt: skip
