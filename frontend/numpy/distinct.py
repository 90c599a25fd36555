"""What is there once: np.unique with a result of a given size.

Invariants: of equal elements the first counts, in its order; NaN are one element.
Not here: sorting (sorting.py), np.unique itself (known_only.py), the function users call for a
given size (ordering.py).
"""

from __future__ import annotations

from typing import Any

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import I64

from ..tracing.state import Trace
from .operands import value_of
from .sorting import places_along, take_places
from .words import flip, full, reshape, slice_axis, spread


def distinct(trace: Trace, value: Value, size: Size, fill: Any) -> tuple[Value, ...]:
    """The `size` first of the distinct elements in order, filled up; where each was first, which
    of them each element is, and how often each is there. More than `size` fail the call."""
    count = product(value.tensor.shape)
    flat = reshape(trace, value, (count,))
    dtype = flat.tensor.dtype
    none = full(trace, (size,), 0, I64)
    if not trace.sizes.at_least(count, 1, "there are elements"):
        number = trace.cast(value_of(0 if fill is None else fill), dtype)
        return spread(trace, number, (size,)), none, full(trace, (count,), 0, I64), none
    order = places_along(trace, flat, 0)
    ordered = take_places(trace, flat, order)
    number = _numbers(trace, ordered, count)
    _check_room(trace, number, count, size)
    place = trace.emit("minimum", number, trace.size_value(size - 1))
    if fill is None:
        start = spread(trace, slice_axis(trace, ordered, 0, 0, 1), (size,))
    else:
        start = spread(trace, trace.cast(value_of(fill), dtype), (size,))
    back = flip(trace, place, (0,))
    values = trace.emit("scatter", start, flip(trace, ordered, (0,)), back, axes=(0,))[0]
    first = trace.emit("scatter", none, flip(trace, order, (0,)), back, axes=(0,))[0]
    which = trace.emit("scatter", full(trace, (count,), 0, I64), number, order, axes=(0,))[0]
    ones = full(trace, (count,), 1, I64)
    often = trace.emit("scatter_add", none, ones, place, axes=(0,))[0]
    return values, first, reshape(trace, which, value.tensor.shape), often


def _numbers(trace: Trace, ordered: Value, count: Size) -> Value:
    """For each element of a sorted row, how many distinct ones come before it."""
    before, after = (slice_axis(trace, ordered, 0, start, count - 1) for start in (0, 1))
    new = trace.emit("not_equal", before, after)
    if ordered.tensor.dtype.kind in "fc":
        both = trace.emit("logical_and", trace.emit("isnan", before), trace.emit("isnan", after))
        new = trace.emit("logical_and", new, trace.emit("logical_not", both))
    steps = trace.emit("concatenate", full(trace, (1,), 0, I64), trace.cast(new, I64), axis=0)
    made: Value = trace.emit("cumsum", steps, axis=0)
    return made


def _check_room(trace: Trace, number: Value, count: Size, size: Size) -> None:
    last = reshape(trace, slice_axis(trace, number, 0, count - 1, 1), ())
    trace.emit("check", trace.emit("less", last, trace.size_value(size)), code="TM259")
