"""Arrays whose size is known only when the function runs: what they have in common.

A selection by a mask (selection.py), or an array that is cut along some axes (cut.py). Both keep a
whole array and say which of its elements are there; functions that know of that are methods.
Not here: which functions those are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Location, Value
from tracemill.compiler.types import BOOL

from ..tracing.state import Trace, fail
from ..tracing.tensor import Traced, fresh, result
from .operands import integer_limits


class Unsized(Traced):
    """See the module. whole: the elements that are there, among others."""

    __slots__ = ("whole",)
    __hash__ = None  # type: ignore[assignment]
    whole: Value

    def __init__(self, trace: Trace, whole: Value) -> None:
        self.tracing = trace
        self.whole = whole

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return np.ndarray

    @property
    def value(self) -> Value:
        raise self.size_error()

    def _last_value(self) -> Value:
        return self.whole

    @property
    def made(self) -> Location | None:
        """Where the whole array was computed."""
        return None if self.whole.node is None else self.whole.node.location

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return self.whole.tensor.dtype.numpy

    def size_error(self, culprit: Value | None = None) -> Exception:
        """The error for a use that needs the number of elements, at this line or `culprit`'s."""
        raise NotImplementedError

    def array(self) -> Any:
        """The same as an array, for a result. Raises UnsupportedError."""
        return fresh(self.tracing, self.value)

    def __setitem__(self, key: Any, item: Any) -> None:
        raise self.size_error()


def neutral_of(array: Unsized, extreme: str) -> Any:
    """The value no element loses against in a search for the `extreme`, "max" or "min"."""
    dtype = array.whole.tensor.dtype
    if dtype is BOOL:
        return extreme == "min"
    if dtype.is_integer:
        limits = integer_limits(dtype)
        number: Any = limits.min if extreme == "max" else limits.max
    else:
        number = -np.inf if extreme == "max" else np.inf
    return result(array.tracing, array.tracing.literal(number, dtype))


def refuse_masks(what: str) -> Exception:
    """The error for two arrays that do not have the same elements there."""
    return fail(
        "TM112",
        f"two arrays {what} are combined",
        hint="use one mask for both, or np.where on the whole arrays",
    )
