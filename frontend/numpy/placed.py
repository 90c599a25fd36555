"""Places of what is not zero, as many as there is room for.

Invariants: places are in C order; more of them than there is room for fail the call.
Not here: the functions users call (locating.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, I64

from ..tracing.state import Trace
from .words import full, reshape, sequence, slice_axis


def places(trace: Trace, value: Value, room: Size) -> tuple[Value, Value]:
    """`room` places in the flat array, zeros at last, and which of them there are."""
    count = product(value.tensor.shape)
    mask = trace.cast(reshape(trace, value, (count,)), BOOL)
    there = trace.cast(mask, I64)
    total = trace.emit("sum", there, axes=(0,))
    fits = trace.emit("less_equal", total, trace.size_value(room))
    trace.emit("check", fits, code="TM259")
    before = trace.emit("sub", trace.emit("cumsum", there, axis=0), there)
    last = trace.size_value(room)  # a place behind all others, for what is zero or has no room
    target = trace.emit("minimum", trace.emit("select", mask, before, last), last)
    none = full(trace, (room + 1,), 0, I64)
    found = trace.emit("scatter", none, sequence(trace, count), target, axes=(0,))[0]
    chosen = trace.emit("less", sequence(trace, room), total)
    return slice_axis(trace, found, 0, 0, room), chosen


def coordinates(trace: Trace, found: Value, shape: Sequence[Size]) -> list[Value]:
    """The index along each axis of places in the flat array of `shape`."""
    parts: list[Value] = []
    rest = found
    for axis in reversed(range(len(shape))):
        if axis == 0:
            parts.append(rest)
            break
        size = trace.emit("maximum", trace.size_value(shape[axis]), trace.literal(1, I64))
        parts.append(trace.emit("remainder", rest, size))
        rest = trace.emit("floor_divide", rest, size)
    return parts[::-1]
