"""What a trace took for granted, as data: when all of it holds, its graph may run again.

Invariants: immutable; a guard carries the reason (a sentence for the user) and the user's line.
Sizes are over the symbols of the argument shapes as the caller chose them, also where the trace
has since replaced some of them in its types.
Not here: when guards are checked and in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import Dim, Size, dim_text
from tracemill.compiler.ir.graph import Location
from tracemill.compiler.records import dataclass

from .access import Access

RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
}


@dataclass(frozen=True, slots=True)
class SizeGuard:
    """``left relation right`` between sizes of arguments; relation is ``== != >= <``."""

    left: Size
    relation: str
    right: Size
    reason: str
    location: Location | None = None

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Test it for the sizes of a call."""
        left, right = (s.evaluate(sizes) if isinstance(s, Dim) else s for s in self._sides())
        return RELATIONS[self.relation](left, right)

    @property
    def text(self) -> str:
        """Such as ``n >= 2``."""
        return f"{dim_text(self.left)} {self.relation} {dim_text(self.right)}"

    def _sides(self) -> tuple[Size, Size]:
        return self.left, self.right


@dataclass(frozen=True, slots=True)
class ScalarGuard:
    """The scalar argument of flat index `leaf` has this value (and Python type)."""

    leaf: int
    expected: Any
    reason: str
    location: Location | None = None

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Test it for the flat arguments of a call."""
        return same_constant(leaves[self.leaf], self.expected)

    @property
    def text(self) -> str:
        """Such as ``argument 1 == 3``."""
        return f"argument {self.leaf} == {self.expected!r}"


@dataclass(frozen=True, slots=True)
class StridesGuard:
    """The array argument `leaf` lies in memory as it did.

    order: its axes in the order in which it is contiguous; where that is None, `expected` are
    its exact strides in elements.
    """

    leaf: int
    order: tuple[int, ...] | None
    expected: tuple[int, ...]
    reason: str
    location: Location | None = None

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Test it for the flat arguments of a call."""
        array = leaves[self.leaf]
        if self.order is not None:
            return bool(array.transpose(self.order).flags.c_contiguous)
        return tuple(s // array.itemsize for s in array.strides) == self.expected

    @property
    def text(self) -> str:
        """Such as ``argument 0 has strides (1, 4)``."""
        if self.order is not None:
            return f"argument {self.leaf} is contiguous in the order of axes {self.order}"
        return f"argument {self.leaf} has strides {self.expected}"


@dataclass(frozen=True, slots=True)
class AxesGuard:
    """The axes of the array argument `leaf` follow each other in memory as they did.

    expected: `step_ranks` of it in the example call.
    """

    leaf: int
    expected: tuple[int, ...]
    reason: str
    location: Location | None = None

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Test it for the flat arguments of a call."""
        array = leaves[self.leaf]
        return step_ranks(array.shape, array.strides) == self.expected

    @property
    def text(self) -> str:
        """Such as ``the axes of argument 0 have steps of ranks (0, 1)``."""
        return f"the axes of argument {self.leaf} have steps of ranks {self.expected}"


def step_ranks(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Which axis moves in smaller steps than which: the rank of each step, the smallest first; -1
    for axes of size 1 and steps of 0, which have no say in where a new array's axes lie."""
    steps = [0 if size == 1 else abs(stride) for size, stride in zip(shape, strides)]
    ranks = sorted({step for step in steps if step})
    return tuple([ranks.index(step) if step else -1 for step in steps])


@dataclass(frozen=True, slots=True)
class CaptureGuard:
    """Something the function reads from outside is what it was.

    read: gets it again, given the flat arguments. check: compares it; one of `is_identical`,
    `is_same` (a constant of equal type and value), `has_length`, or another test. path: its
    name, such as ``global scale of module train`` or ``self.lr``.
    """

    path: str
    read: Access
    check: Callable[[Any, Any], bool]
    expected: Any
    reason: str
    location: Location | None = None

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Test it for the flat arguments of a call; False when it cannot be read any more."""
        try:
            return self.check(self.read(leaves), self.expected)
        except (LookupError, AttributeError, ValueError, TypeError):
            return False

    @property
    def text(self) -> str:
        """Such as ``global scale is 3.0``."""
        return f"{self.path} is {self.expected!r}"


Guard = SizeGuard | ScalarGuard | StridesGuard | AxesGuard | CaptureGuard


def is_identical(now: Any, expected: Any) -> bool:
    """The very object."""
    return now is expected


def is_same(now: Any, expected: Any) -> bool:
    """The object, or a constant equal to it."""
    return now is expected or same_constant(now, expected)


def has_length(now: Any, expected: Any) -> bool:
    """A list or tuple of this (type, length)."""
    return type(now) is expected[0] and len(now) == expected[1]


def has_content(now: Any, expected: Any) -> bool:
    """An array of the same type, shape and elements."""
    return (
        isinstance(now, np.ndarray)
        and now.dtype == expected.dtype
        and np.array_equal(now, expected)
    )


def same_constant(value: Any, expected: Any) -> bool:
    """Equal in type and value; floats bit for bit, so that -0.0 and NaN are told apart."""
    if type(value) is not type(expected):
        return False
    if hasattr(type(expected), "__array__") and not isinstance(expected, np.generic):
        return False
    if isinstance(expected, float | complex | np.inexact):
        return bool(np.asarray(value).tobytes() == np.asarray(expected).tobytes())
    return bool(value == expected)
