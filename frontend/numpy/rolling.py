"""Elements moved round their axes: roll.

Invariants: several shifts of one axis are one shift, their sum; a shift known while tracing is two
slices, any other one a gather.
Not here: joining and splitting (joining.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Dim, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import I64

from ..tracing.concrete import known
from ..tracing.integer import TracedSize, plain_size
from ..tracing.state import Trace, running
from ..tracing.tensor import fresh, result
from .axes import one_axis
from .memory_order import ordered
from .operands import array_of, is_traced, value_of
from .words import reshape, slice_axis


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """np.roll"""
    trace = running()
    value = value_of(a)
    if axis is None:
        flat = reshape(trace, value, (product(value.tensor.shape),))
        for by in _by_axis(trace, shift, [0]).values():
            flat = _roll_axis(trace, flat, by, 0)
        return fresh(trace, reshape(trace, flat, value.tensor.shape))
    listed = axis if hasattr(axis, "__iter__") and np.ndim(axis) else (axis,)
    axes = [one_axis(one, value.tensor.rank) for one in listed]
    for place, by in _by_axis(trace, shift, axes).items():
        value = _roll_axis(trace, value, by, place)
    return ordered(fresh(trace, value), [a])


def _by_axis(trace: Trace, shift: Any, axes: list[int]) -> dict[int, Any]:
    """The sum of an axis's shifts, which are broadcast with the axes."""
    shifts = _shifts(trace, shift, len(axes) == 1)
    if len(axes) != len(shifts) and 1 not in (len(axes), len(shifts)):
        raise ValueError("shape mismatch: objects cannot be broadcast to a single shape")
    count = max(len(axes), len(shifts)) if axes and shifts else 0
    totals: dict[int, Any] = {}
    for i in range(count):
        place, by = axes[i % len(axes)], shifts[i % len(shifts)]
        totals[place] = totals[place] + by if place in totals else by
    return totals


def _shifts(trace: Trace, shift: Any, add: bool) -> list[Any]:
    """Each shift: an int, a size or a traced integer. add: only their sum counts, so there may be
    any number of them."""
    if isinstance(shift, list | tuple):
        if any(np.ndim(part) for part in shift):
            raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
        return [_whole(trace, part) for part in shift]
    if np.ndim(shift) == 0:
        return [_whole(trace, shift)]
    array: Any = array_of(shift)
    if array.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    if add:
        return [_whole(trace, np.sum(array.real.astype(np.int64)))]
    return [_whole(trace, array[i]) for i in range(int(array.shape[0]))]


def _whole(trace: Trace, by: Any) -> Any:
    if type(by) is TracedSize:
        return by
    if is_traced(by) or isinstance(by, np.ndarray):
        value = value_of(by)
        found = known(trace, value)
        if found is None:
            return result(trace, trace.cast(value_of(np.real(fresh(trace, value))), I64))
        by = found.item()
    return int(by.real)


def _roll_axis(trace: Trace, value: Value, shift: Any, axis: int) -> Value:
    extent = value.tensor.shape[axis]
    if extent == 0 or extent == 1:
        return value
    if is_traced(shift) and type(shift) is not TracedSize:
        return _roll_by_value(trace, value, value_of(shift), axis)
    by = plain_size(shift)
    if by == 0:
        return value
    if isinstance(extent, Dim) and trace.sizes.equal(extent, 0, "an axis is rolled"):
        return value
    forward = trace.sizes.at_least(by, 0, "the direction of a roll")
    distance = by if forward else -by
    if trace.sizes.at_least(distance, extent, "a roll is shorter than its axis"):
        distance = distance % extent
    rest = extent - distance
    first = rest if forward else distance
    head = slice_axis(trace, value, axis, 0, first)
    tail = slice_axis(trace, value, axis, first, extent - first)
    made: Value = trace.emit("concatenate", tail, head, axis=axis)
    return made


def _roll_by_value(trace: Trace, value: Value, shift: Value, axis: int) -> Value:
    extent = value.tensor.shape[axis]
    index = trace.emit("sub", trace.emit("iota", size=extent), shift)
    index = trace.emit("remainder", index, trace.size_value(extent))
    made: Value = trace.emit("gather", value, index, axes=(axis,))[0]
    return made


FUNCTIONS: dict[Any, Any] = {np.roll: roll}
