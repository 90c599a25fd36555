"""Python numbers known only at run time: weak scalars.

A bool, int, float or complex argument is a `TracedNumber`, and so is ``float(x)`` of a traced
value. Arithmetic among them (and plain numbers and sizes) follows Python and stays weak; with
arrays they promote as Python numbers do.

Invariants: the value is rank 0 of the dtype bool, i64, f64 or c128.
Not here: promotion with arrays (numpy/ufuncs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Location, Value
from tracemill.compiler.types import BOOL, C128, F64, I64, DType

from .affine import Affine, account
from .concrete import concrete
from .integer import TracedSize
from .lifting import lift
from .numbers_needed import number_error
from .state import Trace, current, fail

KINDS: dict[type, DType] = {bool: BOOL, int: I64, float: F64, complex: C128}
_RANK = {bool: 0, int: 1, float: 2, complex: 3}
# operator -> (op, kinds it is computed in at least, kind of the result if not the operands')
_ARITHMETIC: dict[str, tuple[str, type, type | None]] = {
    "add": ("add", int, None),
    "sub": ("sub", int, None),
    "mul": ("mul", int, None),
    "truediv": ("div", float, None),
    "floordiv": ("floor_divide", int, None),
    "mod": ("remainder", int, None),
    "pow": ("power", int, None),
    "and": ("bitwise_and", bool, None),
    "or": ("bitwise_or", bool, None),
    "xor": ("bitwise_xor", bool, None),
    "lshift": ("left_shift", int, None),
    "rshift": ("right_shift", int, None),
    "lt": ("less", bool, bool),
    "le": ("less_equal", bool, bool),
    "gt": ("greater", bool, bool),
    "ge": ("greater_equal", bool, bool),
    "eq": ("equal", bool, bool),
    "ne": ("not_equal", bool, bool),
}
_DIVISIONS = ("truediv", "floordiv", "mod")


class TracedNumber:
    """A Python number of kind `kind` (bool, int, float or complex)."""

    __slots__ = ("affine", "kind", "tracing", "value")
    __array_priority__ = 1000.0

    def __init__(
        self, trace: Trace, value: Value, kind: type, affine: Affine | None = None
    ) -> None:
        self.tracing = trace
        self.value = value
        self.kind = kind
        self.affine = affine

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return self.kind

    @property
    def real(self) -> Any:
        """The real part."""
        if self.kind is complex:
            return TracedNumber(self.tracing, self.tracing.emit("real", self.value), float)
        return self

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        if self.kind is complex:
            return TracedNumber(self.tracing, self.tracing.emit("imag", self.value), float)
        return 0.0 if self.kind is float else 0

    def conjugate(self) -> Any:
        """The complex conjugate."""
        if self.kind is complex:
            return TracedNumber(self.tracing, self.tracing.emit("conj", self.value), complex)
        return self

    def item(self) -> TracedNumber:
        """Itself."""
        return self

    def converted(self, kind: type) -> TracedNumber:
        """As ``int(x)``, ``float(x)``, ``bool(x)`` and ``complex(x)`` convert."""
        if kind is self.kind:
            return self
        if kind in (int, float) and self.kind is complex:
            raise TypeError(
                f"{kind.__name__}() argument must be a string or a real number, not 'complex'"
            )
        return TracedNumber(self.tracing, self.tracing.cast(self.value, KINDS[kind]), kind)

    def __bool__(self) -> bool:
        return bool(self._number("bool"))

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        if _RANK[self.kind] > 1:
            raise TypeError(f"'{self.kind.__name__}' object cannot be interpreted as an integer")
        return int(self._number("index"))

    def __hash__(self) -> int:
        return hash(self._number("hash").item())

    def __round__(self, digits: Any = None) -> Any:
        if self.kind is not float:
            return self
        if digits is None:
            rounded = self.tracing.emit("rint", self.value)
            return TracedNumber(self.tracing, self.tracing.cast(rounded, I64), int)
        raise fail(
            "TM111",
            "Python's round() of a number that is known only when the function runs cannot keep "
            "digits: it rounds the number's decimal form",
            hint="np.round(x, digits) can, and rounds as NumPy does",
        )

    def __trunc__(self) -> Any:
        return self.converted(int)

    def __floor__(self) -> Any:
        return self._rounded("floor")

    def __ceil__(self) -> Any:
        return self._rounded("ceil")

    def __neg__(self) -> Any:
        return self._unary("neg")

    def __pos__(self) -> Any:
        return self.converted(int) if self.kind is bool else self

    def __abs__(self) -> Any:
        if self.kind is complex:
            return TracedNumber(self.tracing, self.tracing.emit("abs", self.value), float)
        return self._unary("abs")

    def __invert__(self) -> Any:
        return self._unary("invert")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        self.tracing.check_alive(self.made)
        return self.tracing.dispatch.ufunc(ufunc, method, args, keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return self.tracing.dispatch.function(function, args, keywords)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise number_error(self, "array")

    def __format__(self, spec: str) -> str:
        return repr(self) if not spec else format(self._number("format").item(), spec)

    def __copy__(self) -> TracedNumber:
        return self

    def __deepcopy__(self, memo: Any) -> TracedNumber:
        return self

    @property
    def made(self) -> Location | None:
        """Where in the user's program this was computed."""
        return None if self.value.node is None else self.value.node.location

    def __repr__(self) -> str:
        ended = "" if self.tracing.alive else ", its trace has ended"
        return f"<traced {self.kind.__name__} %{self.value.name}{ended}>"

    def _number(self, wanted: str) -> Any:
        self.tracing.check_alive(self.made)
        found = concrete(self.tracing, self.value, f"{wanted}() of it was taken")
        if found is None:
            raise number_error(self, wanted)
        return found

    def _rounded(self, op: str) -> Any:
        if self.kind is not float:
            return self
        value = self.tracing.emit(op, self.value)
        return TracedNumber(self.tracing, self.tracing.cast(value, I64), int)

    def _unary(self, op: str) -> Any:
        number = self.converted(int) if self.kind is bool else self
        return TracedNumber(self.tracing, self.tracing.emit(op, number.value), number.kind)


def arithmetic(name: str, left: Any, right: Any) -> Any:
    """A Python operator on two weak numbers; NotImplemented for anything else."""
    op, least, result = _ARITHMETIC[name]
    first, second = weak_kind(left), weak_kind(right)
    if first is None or second is None:
        return NotImplemented
    own: Trace = left.tracing if type(left) is TracedNumber else right.tracing
    trace = current() or own
    kind = max(first, second, least, key=_RANK.__getitem__)
    if name == "pow" and kind is int:
        kind = _power_kind(right)
    dtype = KINDS[kind]
    first_value, second_value = _value_of(trace, left, dtype), _value_of(trace, right, dtype)
    if name in _DIVISIONS:
        _check_divisor(trace, right, second_value)
    elif name == "pow" and _is_negative(right):
        _check_divisor(trace, left, first_value)
    if name == "pow" and kind is float:
        _check_power(trace, left, right, first_value, second_value)
    made = trace.emit(op, first_value, second_value)
    found = TracedNumber(trace, made, result or kind)
    if kind is int and result is None:
        account(found, name, left, right)
    return found


def _is_negative(exponent: Any) -> bool:
    """Whether an exponent is known to be below zero."""
    return type(exponent) in (int, float) and exponent < 0


def _check_divisor(trace: Trace, divisor: Any, value: Value) -> None:
    """Fail the call where Python raises ZeroDivisionError."""
    if type(divisor) is TracedSize:
        if divisor:  # guarded
            return
    elif type(divisor) in KINDS and divisor != 0:
        return
    zero = trace.literal(0, value.tensor.dtype)
    trace.emit("check", trace.emit("not_equal", value, zero), code="TM252")


def _check_power(trace: Trace, base: Any, exponent: Any, x: Value, p: Value) -> None:
    """Fail the call where Python's power of floats is complex, or divides by zero."""
    if type(base) in KINDS and base > 0:
        return
    zero = trace.literal(0, F64)
    if type(exponent) is TracedNumber:
        fine = trace.emit("logical_or", trace.emit("greater_equal", p, zero),
                          trace.emit("not_equal", x, zero))  # fmt: skip
        trace.emit("check", fine, code="TM252")
    if exponent.kind is float if type(exponent) is TracedNumber else not _is_whole(exponent):
        whole = trace.emit("equal", trace.emit("floor", p), p)
        # NaN and infinities are real numbers to Python here
        ordinary = trace.emit("logical_and", trace.emit("isfinite", x), trace.emit("isfinite", p))
        wrong = trace.emit("logical_and", ordinary, trace.emit("less", x, zero))
        fine = trace.emit("logical_or", whole, trace.emit("logical_not", wrong))
        trace.emit("check", fine, code="TM253")


def _is_whole(exponent: Any) -> bool:
    return type(exponent) is not float or exponent.is_integer()


def _power_kind(exponent: Any) -> type:
    """int, or float where the exponent is negative, which a run-time one is fixed to tell."""
    return float if int(exponent) < 0 else int


def weak_kind(number: Any) -> type | None:
    """The Python type of a number, known or traced, or size; None for anything else."""
    kind = type(number)
    if kind is TracedNumber:
        found: type = number.kind
        return found
    if kind is TracedSize:
        return int
    return kind if kind in KINDS else None


def _value_of(trace: Trace, number: Any, dtype: DType) -> Value:
    if type(number) is TracedNumber:
        number.tracing.check_alive(number.made)
        return trace.cast(number.value if number.tracing is trace else lift(trace, number), dtype)
    if type(number) is TracedSize:
        return trace.cast(trace.size_value(number.now()), dtype)
    return trace.literal(number, dtype)


def _operator(name: str, ufunc: np.ufunc, reflected: bool) -> Callable[[Any, Any], Any]:
    def operator(self: Any, other: Any) -> Any:
        pair = (other, self) if reflected else (self, other)
        found = arithmetic(name, *pair)
        if found is not NotImplemented:
            return found
        if isinstance(other, np.ndarray | np.generic):
            return self.tracing.dispatch.ufunc(ufunc, "__call__", pair, {})
        return NotImplemented

    return operator


_UFUNCS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "lshift": np.left_shift, "rshift": np.right_shift,
}  # fmt: skip
_COMPARISONS = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal,
}  # fmt: skip


def _install() -> None:
    for name, ufunc in _UFUNCS.items():
        setattr(TracedNumber, f"__{name}__", _operator(name, ufunc, False))
        setattr(TracedNumber, f"__r{name}__", _operator(name, ufunc, True))
    for name, ufunc in _COMPARISONS.items():
        setattr(TracedNumber, f"__{name}__", _operator(name, ufunc, False))


_install()
