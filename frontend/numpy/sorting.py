"""Rows in order along any axis: sort, argsort, lexsort, partition.

All orders are stable, whatever `kind` says, so places of equal elements are NumPy's for
``kind="stable"``. A partition is a sort: it fulfils what NumPy promises of one.

Invariants: the sorted axis is the last when the op is emitted. Complex numbers are ordered by their
parts, those with a NaN last, as NumPy has them.
Not here: the order itself (ops/sorting.py), what is looked up in sorted arrays (searching.py),
medians (order_statistics.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import U8

from ..tracing.integer import plain_size
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import TracedArray, fresh
from .axes import one_axis
from .memory_order import in_order
from .operands import value_of
from .ufuncs import out_array
from .words import reshape, transpose

_KINDS = ("quicksort", "mergesort", "heapsort", "stable")


def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """np.sort"""
    trace = running()
    value, place = _axis_of(trace, value_of(a), axis)
    _check_kind(kind, order, stable)
    return in_order(fresh(trace, sorted_along(trace, value, place)), "K", a)


def argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    """np.argsort"""
    trace = running()
    value, place = _row_of(trace, value_of(a), axis)
    _check_kind(kind, order, stable)
    return fresh(trace, places_along(trace, value, place))


def sort_method(
    a: TracedArray, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    """ndarray.sort: in place."""
    array = out_array(a)
    array.require_writeable()
    place = one_axis(axis, array.ndim)
    _check_kind(kind, order, stable)
    array.write(sorted_along(running(), array.value, place))


def partition(
    a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Any:
    """np.partition"""
    trace = running()
    value, place = _axis_of(trace, value_of(a), axis)
    _check_kth(trace, value, place, kth, kind, order)
    return in_order(fresh(trace, sorted_along(trace, value, place)), "K", a)


def argpartition(
    a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> Any:
    """np.argpartition"""
    trace = running()
    value, place = _row_of(trace, value_of(a), axis)
    _check_kth(trace, value, place, kth, kind, order)
    return fresh(trace, places_along(trace, value, place))


def partition_method(
    a: TracedArray, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None
) -> None:
    """ndarray.partition: in place."""
    array = out_array(a)
    array.require_writeable()
    place = one_axis(axis, array.ndim)
    _check_kth(running(), array.value, place, kth, kind, order)
    array.write(sorted_along(running(), array.value, place))


def lexsort(keys: Any, axis: Any = -1) -> Any:
    """np.lexsort: by the last key first; equal elements by the key before."""
    trace = running()
    if isinstance(keys, list | tuple):
        values = [value_of(key) for key in keys]
    else:
        whole = value_of(keys)
        if whole.tensor.rank == 0:
            raise TypeError("need sequence of keys with len > 0 in lexsort")
        values = [value_of(part) for part in fresh(trace, whole)]
    if not values:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    rank = values[0].tensor.rank
    for value in values[1:]:
        if value.tensor.rank != rank or not all(
            trace.sizes.equal(a, b, "keys of lexsort have equal shapes")
            for a, b in zip(value.tensor.shape, values[0].tensor.shape)
        ):
            raise ValueError("all keys need to be the same shape")
    place = one_axis(axis, rank or 1)
    if rank == 0:
        return fresh(trace, trace.size_value(0))
    return fresh(trace, _turned(trace, places_by(trace, [
        _last(trace, value, place) for value in values
    ]), place))  # fmt: skip


def sort_complex(a: Any) -> Any:
    """np.sort_complex"""
    made = sort(a)
    if made.dtype.kind == "c":
        return made
    return made.astype(np.complex64 if made.dtype.char in "bhBH" else np.complex128)


# -- on graph values


def sorted_along(trace: Trace, value: Value, axis: int) -> Value:
    """The elements of each row along an axis, in order."""
    rows = _last(trace, value, axis)
    if rows.tensor.dtype.is_complex:
        made = take_places(trace, rows, _complex_places(trace, rows))
    else:
        made = trace.emit("sort", rows)
    return _turned(trace, made, axis)


def places_along(trace: Trace, value: Value, axis: int) -> Value:
    """Where they were."""
    rows = _last(trace, value, axis)
    if rows.tensor.dtype.is_complex:
        return _turned(trace, _complex_places(trace, rows), axis)
    narrow = rows.tensor.dtype.itemsize < 8  # a place is half of a key
    if narrow and trace.sizes.at_least(rows.tensor.shape[-1], 1 << 32, "places have 32 bits"):
        raise fail("TM250", "argsort of 2**32 elements of less than 8 bytes and more is too large")
    return _turned(trace, trace.emit("argsort", rows), axis)


def take_places(trace: Trace, rows: Value, places: Value) -> Value:
    """The elements of each row at the places of that row."""
    shape = places.tensor.shape
    rank = len(shape)
    index = []
    for axis in range(rank - 1):
        steps = trace.emit("iota", size=shape[axis])
        index.append(reshape(trace, steps, [shape[axis] if a == axis else 1 for a in range(rank)]))
    made: Value = trace.emit("gather", rows, *index, places, axes=tuple(range(rank)))[0]
    return made


def places_by(trace: Trace, keys: list[Value]) -> Value:
    """Places that put rows in order by the last key, equal ones by the key before, and so on."""
    found: Value | None = None
    for key in keys:
        if key.tensor.dtype.is_complex:
            raise fail("TM202", "lexsort of complex keys is not supported")
        if found is None:
            found = trace.emit("argsort", key)
            continue
        step = trace.emit("argsort", take_places(trace, key, found))
        found = take_places(trace, found, step)
    assert found is not None
    return found


def _complex_places(trace: Trace, rows: Value) -> Value:
    """By real part, then by imaginary part; numbers with a NaN in them after all others, those
    whose real part is one last."""
    real, imag = trace.emit("real", rows), trace.emit("imag", rows)
    beside = trace.emit(
        "logical_and",
        trace.emit("isnan", imag),
        trace.emit("logical_not", trace.emit("isnan", real)),
    )
    last = trace.emit("logical_or", beside, trace.emit("isnan", real))
    return places_by(trace, [imag, real, trace.cast(last, U8)])


def _axis_of(trace: Trace, value: Value, axis: Any) -> tuple[Value, int]:
    """The array and the axis; everything as one row for None."""
    if axis is None:
        return reshape(trace, value, (product(value.tensor.shape),)), 0
    return value, one_axis(axis, value.tensor.rank)


def _row_of(trace: Trace, value: Value, axis: Any) -> tuple[Value, int]:
    """The same for places, of which NumPy gives one row for a number."""
    number = value.tensor.rank == 0
    return _axis_of(trace, reshape(trace, value, (1,)) if number else value, axis)


def _last(trace: Trace, value: Value, axis: int) -> Value:
    rank = value.tensor.rank
    if axis == rank - 1:
        return value
    return transpose(trace, value, [*(a for a in range(rank) if a != axis), axis])


def _turned(trace: Trace, value: Value, axis: int) -> Value:
    """The last axis back where it was."""
    rank = value.tensor.rank
    if axis == rank - 1:
        return value
    order = list(range(rank - 1))
    order.insert(axis, rank - 1)
    return transpose(trace, value, order)


def _check_kind(kind: Any, order: Any, stable: Any) -> None:
    if stable is not None and kind is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time.")
    if kind is not None and str(kind).lower() not in _KINDS and str(kind).lower()[:1] not in "qhsm":
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")


def _check_kth(trace: Trace, value: Value, place: int, kth: Any, kind: Any, order: Any) -> None:
    if kind != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    size = value.tensor.shape[place]
    for item in kth if isinstance(kth, list | tuple | np.ndarray) else (kth,):
        k = plain_size(item)
        from_start = trace.sizes.at_least(k, 0, "partition counts from the start or the end")
        if not trace.sizes.at_least(
            size, k + 1 if from_start else -k, "partition needs the element"
        ):
            empty = "partition of no elements does nothing"
            if not all(trace.sizes.at_least(n, 1, empty) for n in value.tensor.shape):
                return
            hint = trace.sizes.hint
            raise ValueError(f"kth(={hint(k)}) out of bounds ({hint(size)})")


FUNCTIONS = {
    np.sort: sort,
    np.argsort: argsort,
    np.partition: partition,
    np.argpartition: argpartition,
    np.lexsort: lexsort,
    np.sort_complex: sort_complex,
}
METHODS = {
    "sort": sort_method,
    "argsort": argsort,
    "partition": partition_method,
    "argpartition": argpartition,
}
