"""What a loop of the graph counts through: a range, or the rows of an array.

Not here: the loop (rolled.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..compiler.records import dataclass
from ..numpy.operands import is_traced
from ..tracing.integer import TracedSize, user_size
from ..tracing.number import TracedNumber
from ..tracing.tensor import TracedArray


@dataclass(frozen=True, slots=True)
class Trips:
    """count: how many; below 1 there are none. item: of a trip, by its number. plain: the same
    for Python, whose number of trips is fixed by that."""

    count: Any
    item: Callable[[Any], Any]
    plain: Callable[[], Iterable[Any]]

    @classmethod
    def of_range(cls, *args: Any) -> Any:
        """``range(*args)``, of numbers that may be known only at run time."""
        if not 1 <= len(args) <= 3 or not all(map(_is_integer, args)):
            return range(*args)
        start, stop = (0, args[0]) if len(args) == 1 else args[:2]
        step = args[2] if len(args) == 3 else 1
        if type(step) is not int or not step:
            return range(*args)
        distance = stop - start if step > 0 else start - stop
        count = distance if abs(step) == 1 else (distance + (abs(step) - 1)) // abs(step)
        return cls(_number(count), lambda i: start + i * step, lambda: range(*args))

    @classmethod
    def of_rest(cls, items: range | TracedArray, first: int) -> Trips:
        """What is left of a range or an array from a place on."""
        if isinstance(items, range):
            left = items[first:]
            return cls(len(left), lambda i: left.start + i * left.step, lambda: left)
        length = user_size(items.tracing, items.tensor_type.shape[0])
        return cls(length - first, lambda i: items[i + first], lambda: items)


def _is_integer(item: Any) -> bool:
    if is_traced(item):
        return isinstance(item, int | np.integer) and not isinstance(item, bool)
    return type(item) is int or isinstance(item, np.integer)


def _number(count: Any) -> Any:
    """A count as a Python integer."""
    if type(count) in (int, TracedSize, TracedNumber):
        return count
    return count.tracing.dispatch.python_number(count.value).converted(int)
