"""Arrays that are cut along axes: movement, indexing, and what is assigned to them.

Not here: arithmetic (cut_functions.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import I64

from ..tracing.number import TracedNumber
from ..tracing.state import Trace, running
from ..tracing.tensor import fresh, result
from . import indexing, reductions
from .axes import normal_axes
from .conversion import astype as converted_array
from .cut import Axes, Cut, Ends, of_whole
from .cut_functions import assigned_to
from .operands import value_of


def flip(m: Any, axis: Any = None) -> Any:
    """np.flip"""
    for at in normal_axes(axis, m.ndim):
        m = m.flipped(at)
    return m


def astype(a: Cut, dtype: Any, **_: Any) -> Any:
    """ndarray.astype"""
    made = converted_array(fresh(a.tracing, a.whole), dtype)
    return Cut(a.tracing, made.value, a.axes)


def ravel(a: Cut, order: str = "C") -> Any:
    """ndarray.ravel: a vector is itself."""
    return a if a.ndim == 1 else a.array().ravel(order)


def flatten(a: Cut, order: str = "C") -> Any:
    """ndarray.flatten: a vector is copied."""
    return a.copy() if a.ndim == 1 else a.array().flatten(order)


def cumsum(a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """np.cumsum along an axis, of vectors by default."""
    if axis is None and a.ndim > 1:
        return a.array().cumsum(dtype=dtype)
    (at,) = normal_axes(0 if axis is None else axis, a.ndim)
    made = reductions.cumsum(result(a.tracing, a.zeroed()), axis=at, dtype=dtype)
    return Cut(a.tracing, made.value, a.axes)


def getitem(a: Cut, key: Any) -> Any:
    """Integers, slices and None along axes; cut axes take ``:``, ``::-1``, integers, and slices
    that begin at or behind their first element."""
    found = _key_of_whole(a, key)
    if found is None:
        return a.array()[key]
    a, rest, axes = found
    return a.through(lambda array: indexing.getitem(array, rest), axes)


def setitem(a: Cut, key: Any, item: Any) -> None:
    """The same keys, of a slice of an array's memory or of a copy."""
    found = None if a.view is None else _key_of_whole(a, key)
    if found is None:
        raise a.size_error()
    a, rest, axes = found
    assert a.view is not None
    if not any(axes):
        indexing.setitem(a.view, rest, item)
        return
    part: Cut = a.through(lambda array: indexing.getitem(array, rest), axes)
    assert part.view is not None
    part.view.write(assigned_to(part, item.here() if type(item) is Cut else item))


def _key_of_whole(a: Cut, key: Any) -> tuple[Cut, tuple[Any, ...], Axes] | None:
    """The array, maybe reversed, what a key of it is for its whole, and how what that takes is
    cut. None for keys of other kinds."""
    items = list(key) if isinstance(key, tuple) else [key]
    at = next((i for i, item in enumerate(items) if item is Ellipsis), None)
    if at is not None:
        used = sum(item is not None for item in items) - 1
        items[at : at + 1] = [slice(None)] * (a.ndim - used)
    items += [slice(None)] * (a.ndim - sum(item is not None for item in items))
    rest: list[Any] = []
    axes: list[Ends | None] = []
    axis = 0
    for item in items:
        if item is None:
            rest.append(None)
            axes.append(None)
            continue
        if not isinstance(item, slice | int | np.integer):
            return None
        if axis < a.ndim and a.axes[axis] is not None:
            a, item, ends = _along_cut(a, axis, item)
            if isinstance(item, slice):
                axes.append(ends)
        elif isinstance(item, slice):
            axes.append(None)
        rest.append(item)
        axis += 1
    return a, tuple(rest), tuple(axes)


def _along_cut(a: Cut, axis: int, item: Any) -> tuple[Cut, Any, Ends | None]:
    """The array, the key for its whole, and the ends of what that takes."""
    trace, ends = a.tracing, a.axes[axis]
    assert ends is not None
    if not isinstance(item, slice):
        return a, _place(trace, a, axis, item), None
    start, stop, step = item.start, item.stop, item.step
    if start is None and stop is None and step == -1:
        a = a.flipped(axis)
        return a, slice(None), a.axes[axis]
    if step not in (None, 1) or not _is_from_the_front(start) or not _is_from_the_front(stop, True):
        raise a.size_error()
    begin, end = _span(trace, a, axis)
    first = begin if start is None else trace.emit("add", begin, value_of(start))
    if stop is None:
        last = end
    elif type(stop) is int and stop < 0:
        last = trace.emit("add", end, value_of(stop))
    else:
        last = trace.emit("minimum", trace.emit("add", begin, value_of(stop)), end)
    unchanged = start is None and stop is None
    return a, slice(None), ends if unchanged else Ends(first, last)


def _span(trace: Trace, a: Cut, axis: int) -> tuple[Value, Value]:
    """Where the elements along a cut axis begin and end, inside of the axis."""
    ends = a.axes[axis]
    assert ends is not None
    first, last = trace.size_value(0), trace.size_value(a.extent(axis))
    begin = first if ends.start is None else trace.emit("maximum", ends.start, first)
    end = last if ends.stop is None else trace.emit("minimum", ends.stop, last)
    return begin, end


def _is_from_the_front(bound: Any, may_be_back: bool = False) -> bool:
    return bound is None or (type(bound) is int and (bound >= 0 or may_be_back))


def _place(trace: Trace, a: Cut, axis: int, index: Any) -> TracedNumber:
    """An integer along a cut axis as a place of the whole; outside of it the run fails."""
    begin, end = _span(trace, a, axis)
    given = trace.cast(value_of(index), I64)
    negative = trace.emit("less", given, trace.size_value(0))
    place = trace.emit("add", trace.emit("select", negative, end, begin), given)
    inside = trace.emit(
        "logical_and", trace.emit("greater_equal", place, begin), trace.emit("less", place, end)
    )
    trace.emit("check", inside, code="TM230")
    return TracedNumber(trace, place, int)


def taken_by(array: Any, places: Cut) -> Any:
    """``array[places]`` where the index array is a cut vector of integers."""
    trace = running()
    whole = indexing.getitem(array, fresh(trace, places.zeroed()))
    rank = value_of(whole).tensor.rank
    return of_whole(trace, value_of(whole), (*places.axes, *[None] * (rank - places.ndim)))
