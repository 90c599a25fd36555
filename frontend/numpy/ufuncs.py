"""NumPy's ufuncs on traced operands: promotion, broadcasting, out=, where=, dtype=.

Not here: reductions (`.reduce` is handed to reductions.py), matrix products (gufuncs).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, F32, F64, I64, U64, DType

from ..tracing.capture import capture
from ..tracing.concrete import known
from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import TracedArray, TracedScalar, result
from .memory_order import in_asked_order
from .operands import array_of, integer_limits, value_of, weak_value
from .promotion import COMPARISONS, Loop, loop_for
from .shared_outputs import final_contents
from .words import broadcast_to, full

_WEAK = frozenset((int, float, complex))
_BOOL = np.dtype(bool)


def call(
    ufunc: np.ufunc,
    args: tuple[Any, ...],
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    casting: str = "same_kind",
    sig: Any = None,
    signature: Any = None,
    order: str = "K",
    subok: bool = True,
) -> Any:
    """``ufunc(*args, ...)``."""
    trace = running()
    if len(args) > ufunc.nin:
        args, out = args[: ufunc.nin], args[ufunc.nin :]
    if len(args) < ufunc.nin:
        raise TypeError(
            f"{ufunc.__name__}() takes from {ufunc.nin} to {ufunc.nargs} positional arguments "
            f"but {len(args)} were given"
        )
    keys, items, has_views = _operands(trace, args)
    loop = loop_for(ufunc, keys, _signature(ufunc, dtype, sig or signature), casting)
    values = _values(trace, loop, items)
    if isinstance(values, bool):
        made: Any = _constant_answer(items, values)
    else:
        if loop.op == "power" and loop.operands[0].is_integer:
            check_exponent(trace, values[0], values[1])
        if loop.op == "power" and loop.operands[0] in (F32, F64) and _is_half(items[1]):
            made = trace.emit("sqrt", values[0])  # what NumPy's loop does for this exponent
        else:
            made = trace.emit(loop.op, *values)
    if out is None and where is True and type(made) is Value:
        wrapped = result(trace, made)
        return in_asked_order(wrapped, order, args) if has_views or order != "K" else wrapped
    results = made if isinstance(made, tuple) else (made,)
    outs = out if isinstance(out, tuple) else (out,) * (1 if out is None else len(results))
    outs = outs if len(outs) == len(results) else (None,) * len(results)
    if len(outs) == 2:
        results = final_contents(trace, loop.op, results, outs, args, where)
    delivered = tuple(
        deliver(trace, value, target, where, casting, ufunc.__name__)
        for value, target in zip(results, outs)
    )
    if has_views or order != "K":
        for item, target in zip(delivered, outs):
            if target is None:
                in_asked_order(item, order, args)
    return delivered if len(delivered) > 1 else delivered[0]


def deliver(trace: Trace, value: Value, out: Any, where: Any, casting: Any, name: str) -> Any:
    """Hand a result to the caller: as it is, or written into `out`, where `where` holds."""
    if where is not True:
        mask = trace.cast(value_of(where), BOOL)
        shape = trace.emit("select", mask, value, value).tensor.shape
        previous = value_of(out) if out is not None else full(trace, shape, 0, value.tensor.dtype)
        value = trace.emit("select", mask, value, trace.cast(previous, value.tensor.dtype))
    if out is None:
        return result(trace, value)
    target = out_array(out)
    wanted = target.tensor_type
    if not np.can_cast(value.tensor.dtype.numpy, wanted.dtype.numpy, casting):
        raise fail(
            "TM248",
            f"np.{name} cannot store its {value.tensor.dtype.name} result in an array of "
            f"{wanted.dtype.name} with casting {casting!r}",
            hint=f"convert the result: a = ... .astype(np.{wanted.dtype.numpy.name})",
        )
    value = broadcast_to(trace, trace.cast(value, wanted.dtype), wanted.shape, "output")
    target.write(value)
    return target


def out_array(out: Any) -> TracedArray:
    """The array to be written for an ``out=`` argument."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if type(out) is TracedArray:
        found: TracedArray = out
        return found
    if isinstance(out, np.ndarray):
        return capture(running(), out)
    raise TypeError("return arrays must be of ArrayType")


def outer(ufunc: np.ufunc, a: Any, b: Any, **keywords: Any) -> Any:
    """``ufunc.outer(a, b)``."""
    trace = running()
    left, right = value_of(a), array_of(b)  # arrays first, so that Python numbers are not weak
    shape = (*left.tensor.shape, *(1,) * right.ndim)
    return call(ufunc, (result(trace, trace.emit("reshape", left, shape=shape)), right), **keywords)


def _operands(trace: Trace, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Any], bool]:
    """Promotion keys, and graph values (or Python numbers, still to be given a dtype)."""
    keys: list[Any] = []
    items: list[Any] = []
    has_views = False
    for item in args:
        kind = type(item)
        if kind is TracedArray or kind is TracedScalar:
            value = item.value if item.tracing is trace else value_of(item)
            keys.append(value.tensor.dtype.numpy)
            items.append(value)
            if kind is TracedArray and not item.is_plain:
                has_views = True
        elif kind in _WEAK:
            keys.append(kind)
            items.append(item)
        elif kind is TracedNumber:
            keys.append(_BOOL if item.kind is bool else item.kind)
            items.append(item)
        elif kind is TracedSize:
            keys.append(int)
            items.append(TracedNumber(trace, trace.size_value(item.now()), int))
        elif kind is bool:
            keys.append(_BOOL)
            items.append(item)
        else:
            value = value_of(item)
            keys.append(value.tensor.dtype.numpy)
            items.append(value)
    return tuple(keys), items, has_views


def _values(trace: Trace, loop: Loop, items: list[Any]) -> Any:
    """Operands of the loop's dtypes; a bool where a comparison's answer is the same everywhere."""
    values: list[Any] = []
    wanted = loop.operands
    if loop.op in COMPARISONS and wanted[0].is_integer:
        if any(type(item) is TracedNumber for item in items):
            # a run-time int may be outside the array's type: compare the integers themselves
            wanted = tuple(
                [U64 if d is U64 and type(i) is Value else I64 for i, d in zip(items, wanted)]
            )
    for item, dtype in zip(items, wanted):
        if type(item) is Value:
            values.append(trace.cast(item, dtype))
        elif type(item) is TracedNumber:
            values.append(weak_value(trace, item, dtype))
        else:
            if type(item) is int and loop.op in COMPARISONS and dtype.is_integer:
                answer = _out_of_range(loop.op, item, dtype, first=not values)
                if answer is not None:
                    return answer
            values.append(trace.literal(item, dtype))
    return values


def _out_of_range(op: str, number: int, dtype: DType, first: bool) -> bool | None:
    """The answer of an integer comparison with a number its type cannot hold."""
    limits = integer_limits(dtype)
    if limits.min <= number <= limits.max:
        return None
    above = bool(number > limits.max) != first
    return {
        "equal": False,
        "not_equal": True,
        "less": above,
        "less_equal": above,
        "greater": not above,
        "greater_equal": not above,
    }[op]


def _constant_answer(items: list[Any], answer: bool) -> Value:
    trace = running()
    shapes = [item.tensor.shape for item in items if type(item) is Value]
    return full(trace, shapes[0] if shapes else (), answer, BOOL)


def _is_half(exponent: Any) -> bool:
    return type(exponent) is float and exponent == 0.5


def _is_empty(trace: Trace, value: Value) -> bool:
    """Whether the value has no elements in this call, and so in all that use the trace."""
    reason = "there is nothing in an empty array to be refused"
    return any(trace.sizes.equal(size, 0, reason) for size in value.tensor.shape)


def check_exponent(trace: Trace, base: Value, exponent: Value) -> None:
    """Refuse negative exponents of integers, now or in the call."""
    dtype = exponent.tensor.dtype
    if dtype.kind == "u":
        return
    found = known(trace, exponent)
    if found is None:
        ok = trace.emit("greater_equal", exponent, trace.literal(0, dtype))
        trace.emit("check", ok, code="TM249")
    elif (found < 0).any() and not _is_empty(trace, base):
        raise fail("TM249", "Integers to negative integer powers are not allowed.",
                   hint="use a float base, such as a.astype(float) ** -2")  # fmt: skip


def _signature(ufunc: np.ufunc, dtype: Any, signature: Any) -> Any:
    if signature is not None:
        if isinstance(signature, str):
            left, _, right = signature.partition("->")
            codes = tuple(left + right) if right else (None,) * ufunc.nin + tuple(left)
            return tuple(None if c is None else np.dtype(c) for c in codes)
        return tuple(None if c is None else np.dtype(c) for c in signature)
    if dtype is None:
        return None
    return (None,) * ufunc.nin + (require_dtype(dtype).numpy,) * ufunc.nout
