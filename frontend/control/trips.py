"""What a loop of the graph counts through: a range, or the rows of an array.

Not here: the loop (rolled.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.dims import Size, maximum
from ..compiler.records import dataclass, replace
from ..numpy.operands import is_traced
from ..tracing.affine import affine_of, change_with_trips, most_between
from ..tracing.integer import TracedSize, user_size
from ..tracing.number import TracedNumber
from ..tracing.state import Trace
from ..tracing.tensor import TracedArray


@dataclass(frozen=True, slots=True)
class Trips:
    """count: how many; below 1 there are none. item: of a trip, by its number. plain: the same
    for Python, whose number of trips is fixed by that. is_sequence: it can be reversed."""

    count: Any
    item: Callable[[Any], Any]
    plain: Callable[[], Iterable[Any]]
    is_sequence: bool = True

    def count_with(self, number: TracedNumber) -> None:
        """Tell the number of a trip what it lies between."""
        count = affine_of(self.count)
        high = None if count is None else count.high
        change_with_trips(number, 0, None if high is None else high - 1)


def trips_of(function: Any, args: Sequence[Any]) -> Any:
    """A call of ``range``, ``enumerate``, ``zip`` or ``reversed``: by its trips, or Python's own
    where its items are no numbers or rows. Raises what it raises."""
    if function is range:
        return _of_range(*args)
    first = args[:1] if function is enumerate else args
    inner = [arg if type(arg) is Trips else of_items(arg) for arg in first]

    def whole() -> Any:
        return function(*[arg.plain() if type(arg) is Trips else arg for arg in args])

    if not inner or any(trips is None for trips in inner):
        return whole()
    found = _JOINED[function]([trips for trips in inner if trips is not None], *args[len(first) :])
    return whole() if found is None else replace(found, plain=whole)


def of_items(items: Any, first: int = 0) -> Trips | None:
    """What is left of a range or of an array's rows from a place on; None for anything else."""
    if isinstance(items, range):
        left = items[first:]
        return Trips(len(left), lambda i: grown(left.start, i, left.step), lambda: left)
    if type(items) is not TracedArray or not items.ndim:
        return None
    length = user_size(items.tracing, items.tensor_type.shape[0])
    return Trips(length - first, lambda i: items[grown(first, i, 1)], lambda: items)


def _of_range(*args: Any) -> Any:
    if not 1 <= len(args) <= 3 or not all(map(_is_integer, args)):
        return range(*args)
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else 1
    if type(step) is not int or not step:
        return range(*args)
    distance = stop - start if step > 0 else start - stop
    count = distance if abs(step) == 1 else (distance + (abs(step) - 1)) // abs(step)
    return Trips(_number(count), lambda i: grown(start, i, step), lambda: range(*args))


def _enumerated(inner: Sequence[Trips], start: Any = 0, *more: Any) -> Trips | None:
    if more or not _is_integer(start):
        return None
    (items,) = inner
    return replace(items, item=lambda i: (grown(start, i, 1), items.item(i)), is_sequence=False)


def _zipped(inner: Sequence[Trips]) -> Trips | None:
    """The shortest ends all; None where only the run tells which it is."""
    counts = [trips.count for trips in inner]
    if len(counts) > 1 and any(type(count) is TracedNumber for count in counts):
        return None
    items = [trips.item for trips in inner]
    return replace(
        inner[0],
        count=min(counts),
        item=lambda i: tuple([item(i) for item in items]),
        is_sequence=False,
    )


def _reversed(inner: Sequence[Trips]) -> Trips | None:
    if len(inner) != 1 or not inner[0].is_sequence:
        return None
    (items,) = inner
    return replace(items, item=lambda i: items.item(items.count - 1 - i))


_JOINED: Mapping[Any, Callable[..., Trips | None]] = {
    enumerate: _enumerated, zip: _zipped, reversed: _reversed,
}  # fmt: skip


def most_trips(trace: Trace, lower: Any, upper: Any) -> Mapping[str, Size]:
    """The attribute of a counting loop that says how many trips it makes at most, where that is
    known and is not their number."""
    most = most_between(lower, upper)
    if most is None or not any(type(bound) is TracedNumber for bound in (lower, upper)):
        return {}
    return {"most": maximum(0, trace.sizes.normal(most))}


def grown(start: Any, trip: Any, step: int) -> Any:
    """start + trip * step, of integers."""
    more = trip if step == 1 else trip * step
    return more if type(start) is int and start == 0 else start + more


def _is_integer(item: Any) -> bool:
    if is_traced(item):
        return isinstance(item, int | np.integer) and not isinstance(item, bool)
    return type(item) is int or isinstance(item, np.integer)


def _number(count: Any) -> Any:
    """A count as a Python integer."""
    if type(count) in (int, TracedSize, TracedNumber):
        return count
    return count.tracing.dispatch.python_number(count.value).converted(int)
