"""Python's operators on traced arrays and scalars: each is a call of a ufunc.

Not here: what the ufunc does (the dispatch table), numbers (number.py), sizes (integer.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracemill.compiler.types import F64

_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift, "divmod": np.divmod,
}  # fmt: skip
_COMPARISON = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
# By the name of the special method; a reflected one has its operands the other way round.
UFUNCS = {
    **{f"__{name}__": ufunc for name, ufunc in {**_BINARY, **_COMPARISON}.items()},
    **{f"__r{name}__": ufunc for name, ufunc in _BINARY.items()},
}
REFLECTED = frozenset(f"__r{name}__" for name in _BINARY)
_FOREIGN = frozenset((str, bytes, dict, set, type(None)))


def _alive(traced: Any) -> Any:
    """Its trace, known to be running. Raises TraceError."""
    tracing = traced.tracing
    if not tracing.alive:
        tracing.check_alive(traced.made)
    return tracing


def _forward(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if type(other) in _FOREIGN:
            return NotImplemented
        return _alive(self).dispatch.ufunc(ufunc, "__call__", (self, other), {})

    return operator


def _reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        if type(other) in _FOREIGN:
            return NotImplemented
        return _alive(self).dispatch.ufunc(ufunc, "__call__", (other, self), {})

    return operator


def _in_place(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        return _alive(self).dispatch.ufunc(ufunc, "__call__", (self, other), {"out": (self,)})

    return operator


def _unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def operator(self: Any) -> Any:
        return _alive(self).dispatch.ufunc(ufunc, "__call__", (self,), {})

    return operator


# attributes by which other code asks an array for its memory
MEMORY_PROTOCOLS = frozenset(
    ("__array_interface__", "__array_struct__", "__dlpack__", "__dlpack_device__", "__buffer__")
)


def _power(self: Any, other: Any, modulus: Any = None) -> Any:
    """NumPy's operator computes some powers of float arrays by other functions."""
    if modulus is not None:
        return NotImplemented
    if self.dtype.kind in "fc" and issubclass(type(self), InPlaceOperators):
        function: np.ufunc | None = None
        if type(other) is int:
            function = {2: np.square, -1: np.reciprocal}.get(other)
        elif type(other) is float and other == 0.5:
            function = np.sqrt
        if function is not None:
            return _alive(self).dispatch.ufunc(function, "__call__", (self,), {})
    if type(other) is float and other == 0.5 and self.dtype.kind == "f":
        # the operator of NumPy's scalars is the power itself, np.power of 0.5 is not
        other = _alive(self).dispatch.python_number(self.tracing.literal(other, F64))
    return _forward(np.power)(self, other)


def _compare(ufunc: np.ufunc, name: str) -> Callable[[Any, Any], Any]:
    forward = _forward(ufunc)

    def operator(self: Any, other: Any) -> Any:
        if type(other) in _FOREIGN or isinstance(other, str):
            if name not in ("eq", "ne"):
                return NotImplemented
            unequal = name == "ne"
            if issubclass(type(self), InPlaceOperators):
                return np.full_like(self, unequal, bool)[()]
            return np.bool_(unequal) if isinstance(other, str | bytes) else unequal
        return forward(self, other)

    return operator


class Operators:
    """``+``, ``<``, ``abs`` and all others, forward and reflected."""

    __slots__ = ()


class InPlaceOperators:
    """``+=`` and its like."""

    __slots__ = ()


def _install() -> None:
    for name, ufunc in _BINARY.items():
        setattr(Operators, f"__{name}__", _forward(ufunc))
        setattr(Operators, f"__r{name}__", _reflected(ufunc))
        if name != "divmod":
            setattr(InPlaceOperators, f"__i{name}__", _in_place(ufunc))
    for name, ufunc in _COMPARISON.items():
        setattr(Operators, f"__{name}__", _compare(ufunc, name))
    for name, ufunc in _UNARY.items():
        setattr(Operators, f"__{name}__", _unary(ufunc))
    setattr(Operators, "__pow__", _power)  # noqa: B010  as all others


_install()
