"""Integers, index arrays and bounds of slices as places in an axis.

An index that leaves its axis is refused while tracing, as the line would raise in any call of
these sizes; but where the run may not come to the line, the run finds out.

Not here: keys of several items (keys.py), bounds that the run decides (run_time_slices.py).
"""

from __future__ import annotations

import operator
from typing import Any

from tracemill.compiler.dims import Size, floor_divide
from tracemill.compiler.errors import TraceError, number_text
from tracemill.compiler.ir.graph import Value

from ..tracing.concrete import known
from ..tracing.integer import TracedSize
from ..tracing.state import Trace, fail

FAR = 2**62  # beyond the end of any axis


def position(trace: Trace, extent: Size, item: Any, axis: int) -> Size | Value:
    """An integer index counted from the front; one that does not fit, as an index of the run where
    the run may not come here. Raises IndexError."""
    index: Size = item.now() if type(item) is TracedSize else item
    if isinstance(index, int) and not -FAR <= index < FAR:
        raise fail("TM230", f"index {number_text(index)} is out of bounds for axis {axis}")
    sizes = trace.sizes
    end = sizes.hint(extent)
    if not -end <= sizes.hint(index) < end and _may_not_come_here(trace):
        return trace.size_value(index)
    reason = "an index lies inside its axis"
    negative = not sizes.at_least(index, 0, reason)
    place = index + extent if negative else index
    inside = (
        sizes.at_least(place, 0, reason) if negative else sizes.at_least(extent, place + 1, reason)
    )
    if not inside:
        raise fail("TM230", f"index {item} is out of bounds for axis {axis} with size {end}")
    return sizes.normal(place)


def check_known(trace: Trace, index: Value, extent: Size, axis: int) -> None:
    """Refuse constant indices that are outside an axis of known size."""
    if not isinstance(extent, int):
        return
    found = known(trace, index)
    if found is None or not found.size:
        return
    bad = found[(found < -extent) | (found >= extent)]
    if bad.size and not _may_not_come_here(trace):
        index = bad.flat[0]
        raise fail("TM230", f"index {index} is out of bounds for axis {axis} with size {extent}")


def _may_not_come_here(trace: Trace) -> bool:
    """Whether what is traced now may not be run: a block of control flow, or what follows a check
    that raises an exception of the user's."""
    if trace.states is not None:
        return True
    checks = (token.node for token in trace.builder.tokens)
    return any(check is not None and "raises" in check.attrs for check in checks)


def _bound(given: Any) -> int:
    """A bound of a slice as a number, which decides a shape."""
    try:
        return operator.index(given)
    except TraceError:
        raise fail(
            "TM102",
            f"a slice needs the number of its bound {given!r} while the function is traced",
            "its value is known only when the compiled function runs",
            "x[i + np.arange(n)] takes n elements from a place that is known only then",
        ) from None


def slice_bounds(trace: Trace, extent: Size, item: slice) -> tuple[Size, Size, int]:
    """(start, size, step) of a slice of an axis."""
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise fail("TM243", "slice step cannot be zero")
    sizes = trace.sizes
    reason = "a slice lies inside its axis"
    low = 0 if step > 0 else -1
    high: Size = extent if step > 0 else extent - 1

    def bound(given: Any, default: Size) -> Size:
        if given is None:
            return default
        place: Size = given.now() if type(given) is TracedSize else _bound(given)
        if isinstance(place, int):
            place = min(max(place, -FAR), FAR)
        if place == extent:
            return high
        if not sizes.at_least(place, 0, reason):
            place = place + extent
            return place if sizes.at_least(place, max(low, 0), reason) else low
        return place if sizes.at_least(high, place, reason) else high

    start = bound(item.start, low if step > 0 else high)
    stop = bound(item.stop, high if step > 0 else low)
    start, stop = sizes.normal(start), sizes.normal(stop)
    distance = stop - start if step > 0 else start - stop
    if not sizes.at_least(distance, 0, reason) or distance == 0:
        return 0, 0, 1
    if distance != extent and sizes.hint(distance) == 0 and sizes.at_least(0, distance, reason):
        return 0, 0, 1
    distance = sizes.normal(distance)
    stride = abs(step)
    number = distance if stride == 1 else floor_divide(distance + (stride - 1), stride)
    return sizes.normal(start), number, step
