"""The integer that user code gets for a size: exact arithmetic, decisions by hint.

``x.shape[0]`` is a `TracedSize` where the size is not known while compiling. Arithmetic on
sizes stays symbolic; a comparison is decided as in the example call and guarded; what needs the
very number (``range``, list subscripts) fixes it, with a guard.

Not here: arithmetic that leaves the integers (number.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tracemill.compiler.dims import Dim, Size, dim_text, maximum, minimum

if TYPE_CHECKING:
    from .state import Trace


class TracedSize:
    """A size. Behaves as an int wherever it can without being one."""

    __slots__ = ("size", "tracing")
    __array_priority__ = 1000.0

    def __init__(self, trace: Trace, size: Dim) -> None:
        self.tracing = trace
        self.size = size

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return int

    def now(self) -> Size:
        """The size over the symbols that remain."""
        return self.tracing.sizes.normal(self.size)

    def __index__(self) -> int:
        return self.tracing.sizes.specialise(
            self.size, f"Python code needs {self.size!r} as a number"
        )

    __int__ = __index__

    def __hash__(self) -> int:
        return hash(self.__index__())

    def __float__(self) -> float:
        return float(self.__index__())

    def __bool__(self) -> bool:
        return not self.tracing.sizes.answer_equal(
            self.size, 0, "Python code asks whether it is zero"
        )

    def __add__(self, other: Any) -> Any:
        return self._apply(other, lambda a, b: a + b, "__add__")

    def __radd__(self, other: Any) -> Any:
        return self._apply(other, lambda a, b: b + a, "__radd__")

    def __sub__(self, other: Any) -> Any:
        return self._apply(other, lambda a, b: a - b, "__sub__")

    def __rsub__(self, other: Any) -> Any:
        return self._apply(other, lambda a, b: b - a, "__rsub__")

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, list | tuple | str):
            return other * self.__index__()
        return self._apply(other, lambda a, b: a * b, "__mul__")

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        return self._apply(other, self._quotient, "__floordiv__")

    def __rfloordiv__(self, other: Any) -> Any:
        return self._apply(other, lambda a, b: self._quotient(b, a), "__rfloordiv__")

    def __mod__(self, other: Any) -> Any:
        return self._apply(other, self._remainder, "__mod__")

    def __rmod__(self, other: Any) -> Any:
        return self._apply(other, lambda a, b: self._remainder(b, a), "__rmod__")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            return NotImplemented
        if type(other) is int and 0 <= other <= 8:
            total: Size = 1
            for _ in range(other):
                total = total * self.now()
            return user_size(self.tracing, total)
        return self._leave("__pow__", other)

    def __rpow__(self, other: Any) -> Any:
        return self._leave("__rpow__", other)

    def __truediv__(self, other: Any) -> Any:
        return self._leave("__truediv__", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._leave("__rtruediv__", other)

    def __lshift__(self, other: Any) -> Any:
        return self * 2**other if type(other) is int else self._leave("__lshift__", other)

    def __rshift__(self, other: Any) -> Any:
        return self // 2**other if type(other) is int else self._leave("__rshift__", other)

    def __and__(self, other: Any) -> Any:
        """Low bits are a remainder, all bits above them a multiple."""
        if type(other) is int:
            unit = other + 1 if other >= 0 else -other
            if unit & (unit - 1) == 0:
                return self % unit if other >= 0 else self // unit * unit
        return self._leave("__and__", other)

    def __or__(self, other: Any) -> Any:
        return self._leave("__or__", other)

    def __xor__(self, other: Any) -> Any:
        return self._leave("__xor__", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return -1 - self

    def __neg__(self) -> Any:
        return user_size(self.tracing, -self.now())

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __round__(self, digits: Any = None) -> Any:
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __eq__(self, other: object) -> Any:
        return self._compare(other, lambda s, a, b, why: s.answer_equal(a, b, why), "__eq__")

    def __ne__(self, other: object) -> Any:
        return self._compare(other, lambda s, a, b, why: not s.answer_equal(a, b, why), "__ne__")

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, lambda s, a, b, why: not s.at_least(a, b, why), "__lt__")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, lambda s, a, b, why: s.at_least(b, a, why), "__le__")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, lambda s, a, b, why: not s.at_least(b, a, why), "__gt__")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, lambda s, a, b, why: s.at_least(a, b, why), "__ge__")

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        return self.tracing.dispatch.ufunc(ufunc, method, args, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return self.tracing.dispatch.function(function, args, keywords)

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        return self.number().__array__()

    def __repr__(self) -> str:
        if not self.tracing.alive:  # a debugger, or a message about a value that leaked
            return dim_text(self.now())
        return repr(self.__index__())

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec)

    def __copy__(self) -> TracedSize:
        return self

    def __deepcopy__(self, memo: Any) -> TracedSize:
        return self

    def number(self) -> Any:
        """The size as a run-time number of the graph."""
        return self.tracing.dispatch.number(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__index__(), name)

    def _apply(self, other: Any, function: Callable[[Size, Size], Size], name: str) -> Any:
        kind = type(other)
        if kind is int or kind is bool:
            return user_size(self.tracing, function(self.now(), int(other)))
        if kind is TracedSize:
            return user_size(self.tracing, function(self.now(), other.now()))
        return self._leave(name, other)

    def _quotient(self, a: Size, b: Size) -> Size:
        return self._known(a) // 0 if self._is_zero(b) else a // b

    def _remainder(self, a: Size, b: Size) -> Size:
        return self._known(a) % 0 if self._is_zero(b) else a % b

    def _known(self, size: Size) -> int:
        """For the exception of Python's own, in its words."""
        return self.tracing.sizes.hint(size)

    def _is_zero(self, divisor: Size) -> bool:
        return self.tracing.sizes.answer_equal(divisor, 0, "Python code divides by this size")

    def _compare(self, other: Any, decide: Callable[..., bool], name: str) -> Any:
        kind = type(other)
        if kind is int or kind is bool:
            right: Size = int(other)
        elif kind is TracedSize:
            right = other.now()
        else:
            return self._leave(name, other)
        return decide(self.tracing.sizes, self.now(), right, "Python code compares these sizes")

    def _leave(self, name: str, other: Any) -> Any:
        """Arithmetic with something else: the size becomes a run-time number."""
        if isinstance(other, str | bytes | list | tuple | dict | type(None)):
            return NotImplemented
        method = getattr(self.number(), name, None)
        return NotImplemented if method is None else method(other)


def user_size(trace: Trace, size: Size) -> Any:
    """An int, or a `TracedSize` where the size is symbolic."""
    return TracedSize(trace, size) if isinstance(size, Dim) else size


def plain_size(size: Any) -> Size:
    """The size that an integer of user code stands for. Raises TypeError."""
    if type(size) is TracedSize:
        return size.now()
    return operator.index(size)


def largest(trace: Trace, a: Size, b: Size) -> Any:
    """max(a, b) as a user's integer."""
    return user_size(trace, maximum(a, b))


def smallest(trace: Trace, a: Size, b: Size) -> Any:
    """min(a, b) as a user's integer."""
    return user_size(trace, minimum(a, b))
