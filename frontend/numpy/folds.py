"""``ufunc.reduce`` of all ufuncs that np.sum and its like do not stand for.

A fold is the last of the prefixes. Of bools and of what ignores NaN the order does not show: those
are reductions.

Invariants: elements are taken from the first to the last, as NumPy takes them.
Not here: sums, products, extremes, any and all (reductions.py).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tracemill.compiler.dims import product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, F16, F32, I64, DType

from ..tracing.state import Trace, fail, running
from ..tracing.tensor import result
from .axes import all_axes, kept_shape
from .memory_order import after_reduction
from .operands import MISSING, value_of
from .prefixes import folded_value, scanned
from .promotion import op_name
from .sorting import places_along, take_places
from .ufuncs import deliver
from .words import broadcast_shapes, broadcast_to, reshape, slice_axis, spread, transpose


def reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = MISSING,
    where: Any = True,
) -> Any:
    """``ufunc.reduce`` of ufuncs that np.sum and its like do not stand for."""
    trace = running()
    value = value_of(array)
    axes = all_axes(axis, value.tensor.rank, scalar_ok=True)
    value = folded_value(trace, ufunc, value, dtype, out, uniform=False)
    if len(axes) > 1 and not _is_reorderable(ufunc, value.tensor.dtype):
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may "
            "be specified"
        )
    mask = None
    if where is not True:
        if ufunc.identity is None and initial is MISSING or initial is None:
            raise ValueError(
                f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a "
                "where mask one has to specify 'initial'"
            )
        mask = trace.cast(value_of(where), BOOL)
        shape = broadcast_shapes(trace, [value.tensor.shape, mask.tensor.shape])
        value, mask = (broadcast_to(trace, v, shape) for v in (value, mask))
    shape = value.tensor.shape
    start = ufunc.identity if initial is MISSING else initial
    made = reduced(trace, ufunc, value, axes, start, mask)
    kept = keepdims is not MISSING and bool(keepdims)
    if kept:
        made = reshape(trace, made, kept_shape(shape, axes))
    if out is not None:
        return deliver(trace, made, out, True, "unsafe", ufunc.__name__)
    return after_reduction(result(trace, made), array if where is True else None, axes, kept)


@cache
def _is_reorderable(ufunc: np.ufunc, dtype: DType) -> bool:
    """Whether NumPy folds several axes at once by it."""
    try:
        ufunc.reduce(np.ones((1, 1), dtype.numpy), axis=(0, 1))
    except ValueError:
        return False
    return True


# Where NumPy's loops keep what they have of halves as a float32.
ROUNDED_ONCE = (np.add, np.subtract, np.multiply, np.divide)


def reduced(
    trace: Trace,
    ufunc: np.ufunc,
    value: Value,
    axes: tuple[int, ...],
    start: Any,
    mask: Value | None,
) -> Value:
    """Fold `axes`, from the element `start` where there is one, those that the mask has."""
    if value.tensor.dtype is F16 and ufunc in ROUNDED_ONCE:
        made = reduced(trace, ufunc, trace.cast(value, F32), axes, start, mask)
        return trace.cast(made, F16)
    rows = _rows(trace, value, axes)
    rank, count = rows.tensor.rank, rows.tensor.shape[-1]
    dtype = value.tensor.dtype
    if start is None:
        if not trace.sizes.at_least(count, 1, f"{ufunc.__name__} needs elements"):
            raise fail(
                "TM241",
                f"zero-size array to reduction operation {ufunc.__name__} which has no identity",
            )
        if not axes:
            return value
    at_once = _at_once(trace, ufunc, value, axes, start, mask)
    if at_once is not None:
        return at_once
    last: Value | None = None
    if mask is not None:  # the elements that count first, and the place of the last of them
        chosen = _rows(trace, mask, axes)
        order = places_along(trace, trace.emit("logical_not", chosen), rank - 1)
        rows = take_places(trace, rows, order)
        last = trace.emit("sum", trace.cast(chosen, I64), axes=(rank - 1,))
    if start is not None:
        first = trace.cast(value_of(_number(start, dtype)), dtype)
        column = spread(trace, first, (*rows.tensor.shape[:-1], 1))
        rows, count = trace.emit("concatenate", column, rows, axis=rank - 1), count + 1
    prefixes = scanned(trace, ufunc, rows, rank - 1)
    kept = rows.tensor.shape[:-1]
    if last is None:
        return reshape(trace, slice_axis(trace, prefixes, rank - 1, count - 1, 1), kept)
    at = reshape(trace, last, (*kept, 1))
    return reshape(trace, take_places(trace, prefixes, at), kept)


# Of bools, and of real numbers, the reductions that do not show in which order they go.
_OF_BOOLS: dict[np.ufunc, str] = {np.bitwise_or: "any", np.bitwise_and: "all"}
_OF_REALS: dict[np.ufunc, str] = {np.fmax: "max", np.fmin: "min"}


def _at_once(
    trace: Trace,
    ufunc: np.ufunc,
    value: Value,
    axes: tuple[int, ...],
    start: Any,
    mask: Value | None,
) -> Value | None:
    """The same by a reduction whose order is free, where there is one."""
    dtype = value.tensor.dtype
    made: Value
    if dtype is BOOL and ufunc in (np.logical_xor, np.bitwise_xor):
        odd = value if mask is None else trace.emit("logical_and", value, mask)
        count = trace.emit("sum", trace.cast(odd, I64), axes=axes)
        made = trace.cast(trace.emit("bitwise_and", count, trace.literal(1, I64)), BOOL)
    elif dtype is BOOL and ufunc in _OF_BOOLS:
        masked = value if mask is None else _where(trace, mask, value, ufunc.identity)
        made = trace.emit(_OF_BOOLS[ufunc], masked, axes=axes)
    elif ufunc in _OF_REALS and dtype.is_float and not _is_empty(trace, value):
        made = _extreme_number(trace, _OF_REALS[ufunc], value, axes, mask)
    else:
        return None
    if start is None or start is ufunc.identity:
        return made
    first = trace.cast(value_of(start), dtype)
    made = trace.emit(op_name(ufunc), made, first)
    return made


def _is_empty(trace: Trace, value: Value) -> bool:
    return not trace.sizes.at_least(product(value.tensor.shape), 1, "an extreme needs elements")


def _where(trace: Trace, mask: Value, value: Value, number: Any) -> Value:
    dtype = value.tensor.dtype
    other = trace.cast(value_of(_number(number, dtype)), dtype)
    made: Value = trace.emit("select", mask, value, other)
    return made


def _extreme_number(
    trace: Trace, extreme: str, value: Value, axes: tuple[int, ...], mask: Value | None
) -> Value:
    """The extreme of those that are numbers; NaN where none is."""
    is_number = trace.emit("logical_not", trace.emit("isnan", value))
    if mask is not None:
        is_number = trace.emit("logical_and", is_number, mask)
    least = -np.inf if extreme == "max" else np.inf
    found = trace.emit(extreme, _where(trace, is_number, value, least), axes=axes)
    some = trace.emit("any", is_number, axes=axes)
    return _where(trace, some, found, np.nan)


def _rows(trace: Trace, value: Value, axes: tuple[int, ...]) -> Value:
    """The folded axes as one, the last."""
    shape = value.tensor.shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    moved = transpose(trace, value, (*kept, *axes))
    sizes = [shape[axis] for axis in kept]
    return reshape(trace, moved, (*sizes, product(tuple([shape[axis] for axis in axes]))))


def _number(start: Any, dtype: DType) -> Any:
    """An identity such as -1 in the dtype, where it stands for all bits."""
    if type(start) is int and start == -1 and dtype.kind in "ub":
        return np.array(-1).astype(dtype.numpy)[()]
    return start
