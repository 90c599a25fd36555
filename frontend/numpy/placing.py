"""Elements of an array written by their flat places: put, place, putmask, fill_diagonal.

Values that are too few begin again from the first one.

Invariants: places count in C order, whatever the layout.
Not here: subscripts, copyto, put_along_axis (indexing.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, I64

from ..tracing.state import Trace, fail, running
from ..tracing.tensor import TracedArray
from .creation import stored
from .operands import value_of
from .ufuncs import out_array
from .words import reshape, sequence, spread


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """np.put"""
    trace = running()
    array = _target(a)
    index = trace.cast(value_of(ind), I64)
    index = reshape(trace, index, (product(index.tensor.shape),))
    extent, count = product(array.tensor_type.shape), index.tensor.shape[0]
    if mode == "wrap":
        index = trace.emit("remainder", index, trace.size_value(extent))
    elif mode == "clip":
        last = trace.emit("minimum", index, trace.size_value(extent - 1))
        index = trace.emit("maximum", last, trace.literal(0, I64))
    elif mode != "raise":
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    values = _values(trace, array, v)
    if values is None:
        return
    item = _repeated(trace, values, sequence(trace, count))
    flat = reshape(trace, array.value, (extent,))
    _write(trace, array, trace.emit("scatter", flat, item, index, axes=(0,))[0])


def place(arr: Any, mask: Any, vals: Any) -> None:
    """np.place: the n-th element that the mask has takes the n-th value."""
    trace = running()
    array = _target(arr)
    _need_safe(array, vals)
    chosen = _mask(trace, array, mask, "place")
    values = _values(trace, array, vals)
    if values is None:
        raise ValueError("Cannot insert from an empty array!")
    number = trace.emit("cumsum", trace.cast(chosen, I64), axis=0)
    number = trace.emit("maximum", trace.emit("sub", number, trace.literal(1, I64)),
                        trace.literal(0, I64))  # fmt: skip
    _select(trace, array, chosen, _repeated(trace, values, number))


def putmask(a: Any, mask: Any, values: Any) -> None:
    """np.putmask: the element at place n takes the n-th value."""
    trace = running()
    array = _target(a)
    _need_safe(array, values)
    chosen = _mask(trace, array, mask, "putmask")
    given = _values(trace, array, values)
    if given is not None:
        count = chosen.tensor.shape[0]
        _select(trace, array, chosen, _repeated(trace, given, sequence(trace, count)))


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """np.fill_diagonal"""
    trace = running()
    array = _target(a)
    shape = array.tensor_type.shape
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    end: Size | None = None
    if len(shape) == 2:
        step = shape[1] + 1
        end = None if wrap else shape[1] * shape[1]
    elif all(trace.sizes.equal(shape[0], n, "the axes of a diagonal") for n in shape[1:]):
        step = 1
        for axis in range(1, len(shape)):
            step = step + product(array.tensor_type.shape[:axis])
    else:
        raise ValueError("All dimensions of input must be of equal length")
    values = _values(trace, array, val)
    if values is None:
        return
    at = sequence(trace, product(array.tensor_type.shape))
    apart = trace.size_value(trace.sizes.normal(step))
    on = trace.emit("equal", trace.emit("remainder", at, apart), trace.literal(0, I64))
    if end is not None:
        on = trace.emit("logical_and", on, trace.emit("less", at, trace.size_value(end)))
    _select(trace, array, on, _repeated(trace, values, trace.emit("floor_divide", at, apart)))


def _target(a: Any) -> TracedArray:
    array = out_array(a)
    array.require_writeable()
    return array


def _need_safe(array: TracedArray, items: Any) -> None:
    """Refuse an array whose numbers the written one may not hold; lists and numbers are converted
    one by one."""
    given = items.dtype if type(items) is TracedArray or isinstance(items, np.ndarray) else None
    if given is not None and not np.can_cast(given, array.dtype, "safe"):
        raise fail(
            "TM248",
            f"Cannot cast array data from {given!r} to {array.dtype!r} according to the rule "
            "'safe'",
        )


def _mask(trace: Trace, array: TracedArray, mask: Any, name: str) -> Value:
    """The mask in one row. Raises ValueError where it is not for this array."""
    found = trace.cast(value_of(mask), BOOL)
    mine, whole, why = found.tensor.shape, array.tensor_type.shape, "a mask is for its array"
    alike = len(mine) == len(whole) and all(
        trace.sizes.equal(m, n, why) for m, n in zip(mine, whole)
    )
    if not alike and not trace.sizes.same_count(product(mine), product(whole), why):
        raise ValueError(f"{name}: mask and data must be the same size")
    return reshape(trace, found, (product(array.tensor_type.shape),))


def _values(trace: Trace, array: TracedArray, items: Any) -> Value | None:
    """Values of the array's type in one row; None where there are none."""
    found = stored(trace, items, array.tensor_type.dtype)
    count = product(found.tensor.shape)
    if not trace.sizes.at_least(count, 1, "there is a value to write"):
        return None
    return reshape(trace, found, (trace.sizes.normal(count),))


def _repeated(trace: Trace, values: Value, number: Value) -> Value:
    """The values of these numbers, which begin again behind the last one."""
    count = values.tensor.shape[0]
    if count == 1:
        return spread(trace, values, number.tensor.shape)
    number = trace.emit("remainder", number, trace.size_value(count))
    made: Value = trace.emit("gather", values, number, axes=(0,))[0]
    return made


def _select(trace: Trace, array: TracedArray, chosen: Value, values: Value) -> None:
    """Write the values where they are chosen, all in one row."""
    flat = reshape(trace, array.value, (product(array.tensor_type.shape),))
    _write(trace, array, trace.emit("select", chosen, values, flat))


def _write(trace: Trace, array: TracedArray, flat: Value) -> None:
    array.write(reshape(trace, flat, array.tensor_type.shape))


FUNCTIONS: dict[Any, Any] = {
    np.put: put, np.place: place, np.putmask: putmask, np.fill_diagonal: fill_diagonal,
}  # fmt: skip
