"""From what user code passes to graph values: traced values, numbers, sizes, arrays, lists.

Invariants: a NumPy array that was not made in the trace is captured, a hidden input of the
graph; a value of an enclosing trace is lifted, an input too; a value of an ended trace is
refused.
Not here: promotion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, C128, F64, I64, DType

from ..tracing.affine import affine_of
from ..tracing.capture import capture
from ..tracing.integer import TracedSize
from ..tracing.lifting import lift
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import TracedArray, TracedScalar, fresh
from ..tracing.undefined import Undefined

MISSING: Any = np._NoValue  # what NumPy's signatures have for "not given"
_WEAK: dict[type, DType] = {bool: BOOL, int: I64, float: F64, complex: C128}
_TRACED = (TracedArray, TracedScalar, TracedNumber, TracedSize)


def is_traced(item: Any) -> bool:
    """True for anything whose data is not known while tracing."""
    return type(item) in _TRACED


def any_traced(item: Any) -> bool:
    """True if `item` is traced or is a list or tuple that holds something traced."""
    if isinstance(item, list | tuple):
        return any(any_traced(part) for part in item)
    return type(item) in _TRACED


def value_of(item: Any) -> Value:
    """The graph value of any array-like; Python numbers get NumPy's default dtypes."""
    trace = running()
    kind = type(item)
    if kind is TracedArray or kind is TracedScalar:
        return item.value if item.tracing is trace else lift(trace, item)
    if kind is TracedNumber:
        return item.value if item.tracing is trace else lift(trace, item)
    if kind is TracedSize:
        return trace.size_value(item.now())
    if kind in _WEAK:
        return trace.literal(item, default_dtype(item))
    if isinstance(item, np.generic):
        require_dtype(item.dtype)
        return trace.builder.constant(item)
    if isinstance(item, np.ndarray):
        return value_of(capture(trace, item))
    if isinstance(item, list | tuple):
        return nested(item)
    if hasattr(kind, "traced"):  # a variable: reading it is an op
        read: Value = item.traced(trace).value
        return read
    raise not_an_array(item)


def array_of(item: Any) -> TracedArray | TracedScalar:
    """The traced array (keeping views and scalars) for any array-like."""
    kind = type(item)
    if kind is TracedArray or kind is TracedScalar:
        trace = running()
        if item.tracing is not trace:
            if kind is TracedArray and trace.is_inside(item.tracing):
                seen: TracedArray = item.seen_by(trace)
                return seen
            return fresh(trace, lift(trace, item))
        found: TracedArray | TracedScalar = item
        return found
    if isinstance(item, np.ndarray):
        return array_of(capture(running(), item))
    return fresh(running(), value_of(item))


def default_dtype(number: Any) -> DType:
    """The dtype NumPy gives a Python number on its own."""
    if type(number) is int and not -(2**63) <= number < 2**63:
        return require_dtype(np.asarray(number).dtype)
    return _WEAK[type(number)]


def nested(item: list[Any] | tuple[Any, ...], dtype: DType | None = None) -> Value:
    """The array that ``np.array`` makes of a nested list."""
    trace = running()
    if not any_traced(item) and not _holds_arrays(item):
        array = np.array(item)
        found = dtype or require_dtype(array.dtype)
        return trace.builder.constant(array.astype(found.numpy))
    parts = [nested(part) if isinstance(part, list | tuple) else value_of(part) for part in item]
    if dtype is None:
        dtype = require_dtype(np.result_type(*[_own_type(part) for part in flat(item)]))
    shape = parts[0].tensor.shape
    rows = []
    for part in parts:
        if part.tensor.rank != len(shape) or not all(
            trace.sizes.equal(a, b, "parts of one array have equal shapes")
            for a, b in zip(part.tensor.shape, shape)
        ):
            raise fail(
                "TM209",
                f"array() needs parts of one shape, got {part.type!r} beside {parts[0].type!r}",
            )
        part = trace.cast(part, dtype)
        rows.append(trace.emit("reshape", part, shape=(1, *part.tensor.shape)))
    value: Value = trace.emit("concatenate", *rows, axis=0)
    return value


def flat(item: Any) -> list[Any]:
    """The leaves of a nested list, from left to right."""
    if isinstance(item, list | tuple):
        return [leaf for part in item for leaf in flat(part)]
    return [item]


def weak_type(item: Any) -> Any:
    """What np.result_type is to be told of an operand: a dtype, or a Python number."""
    kind = type(item)
    if kind is TracedNumber:
        return np.dtype(bool) if item.kind is bool else item.kind(0)
    if kind is TracedSize:
        return 0
    if kind in _WEAK:
        return item if kind is not int else (0 if -(2**63) <= item < 2**63 else item)
    if isinstance(item, list | tuple):
        return (
            np.result_type(*[_own_type(part) for part in flat(item)]) if item else np.dtype(float)
        )
    dtype = getattr(item, "dtype", None)
    if dtype is None:
        raise not_an_array(item)
    return dtype


def _own_type(item: Any) -> np.dtype[Any]:
    """The dtype of a part of a list or of ``np.asarray``, where Python numbers are not weak."""
    found = weak_type(item)
    return found if isinstance(found, np.dtype) else np.asarray(found).dtype


def not_an_array(item: Any) -> Exception:
    """The error for something NumPy would make an object array of."""
    kind = type(item)
    if kind is Undefined:
        item.refuse()
    return fail(
        "TM105",
        f"{kind.__name__} objects cannot be part of a compiled computation, got {item!r:.80}",
        hint="arrays, NumPy scalars, Python numbers and lists of these can",
    )


def common_dtype(*items: Any) -> DType:
    """NumPy's promotion of array-likes, Python numbers weak."""
    return require_dtype(np.result_type(*[weak_type(item) for item in items]))


def dtype_as_arrays(*items: Any) -> DType:
    """Promotion where NumPy makes arrays of its arguments first: Python numbers are not weak."""
    return require_dtype(np.result_type(*[_own_type(item) for item in items]))


def as_number(item: TracedSize) -> TracedNumber:
    """A size as a run-time int."""
    trace: Trace = item.tracing
    return TracedNumber(trace, trace.size_value(item.now()), int, affine_of(item))


def integer_limits(dtype: DType) -> Any:
    """np.iinfo"""
    return np.iinfo(dtype.numpy)


def _holds_arrays(item: Any) -> bool:
    if isinstance(item, list | tuple):
        return any(_holds_arrays(part) for part in item)
    return isinstance(item, np.ndarray)


def weak_value(trace: Trace, item: TracedNumber | TracedSize, dtype: DType) -> Value:
    """A run-time Python number as `dtype`; an int that does not fit fails the call."""
    number = item.number() if type(item) is TracedSize else item
    value = number.value if number.tracing is trace else value_of(number)
    if number.kind is int and dtype.is_integer and not _lies_within(item, integer_limits(dtype)):
        return fitting(trace, value, dtype)
    return trace.cast(value, dtype)


def check_whole(trace: Trace, value: Value, dtype: DType) -> None:
    """Check that a float of the run, cut off, is an integer of `dtype`, as Python makes one."""
    limits = integer_limits(dtype)
    trace.emit("check", trace.emit("equal", value, value), code="TM264")  # NaN is not itself
    wide = trace.cast(value, F64)
    if dtype is I64:  # floats next to its first number are far from it
        fits = trace.emit("greater_equal", wide, trace.literal(float(limits.min), F64))
    else:
        fits = trace.emit("greater", wide, trace.literal(float(limits.min) - 1, F64))
    below = trace.emit("less", wide, trace.literal(float(int(limits.max) + 1), F64))
    fits = trace.emit("logical_and", fits, below)
    trace.emit("check", fits, code="TM246", dtype=dtype)


def fitting(trace: Trace, value: Value, dtype: DType) -> Value:
    """A run-time integer as `dtype`, checked that it fits."""
    if dtype.bits < 64 or dtype.kind == "u":
        limits = integer_limits(dtype)
        low = trace.literal(int(limits.min), value.tensor.dtype)
        fits = trace.emit("greater_equal", value, low)
        if dtype.bits < 64:
            high = trace.literal(int(limits.max), value.tensor.dtype)
            fits = trace.emit("logical_and", fits, trace.emit("less_equal", value, high))
        trace.emit("check", fits, code="TM246", dtype=dtype)
    return trace.cast(value, dtype)


def _lies_within(item: TracedNumber | TracedSize, limits: Any) -> bool:
    """Whether what is known of an integer is enough to say that it fits."""
    found = affine_of(item)
    low, high = (None, None) if found is None else (found.low, found.high)
    if not isinstance(low, int) or not isinstance(high, int):
        return False
    return bool(limits.min <= low and high <= limits.max)
