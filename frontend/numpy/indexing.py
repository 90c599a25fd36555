"""Subscripts read and written: ``x[key]``, ``x[key] = value``, take, put and their relatives.

Not here: how keys are understood (keys.py), arrays of unknown size (selection.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, I64

from ..tracing.concrete import known
from ..tracing.gathered import Element
from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import TracedArray, TracedScalar, fresh, result
from ..tracing.views import Reshape
from .axes import one_axis
from .creation import converted, refuse_unfit, stored
from .cut import Cut
from .keys import Subscript, element_first, understand
from .memory_order import after_gather, ordered
from .movement import view_of
from .operands import array_of, value_of, weak_type
from .run_time_slices import RunTimeSlice, split, taken
from .selection import Selection, assigned
from .ufuncs import deliver, out_array
from .words import broadcast_shapes, broadcast_to, in_a_row, reshape


def getitem(array: Any, key: Any) -> Any:
    """``array[key]``."""
    trace = running()
    if type(array) is TracedScalar and key == ():
        return array
    if array.tracing is not trace:  # of a function around this one: its content
        array = array_of(array)
    found = view_of(array)
    if type(key) is Cut and key.ndim == 1:
        return key.taking(array)
    key, slices = split(key)
    if not slices:
        element, key = element_first(trace, key)
        found = found if element is None else found.view_by(element)
    subscript = understand(trace, found.tensor_type.shape, key)
    for step in subscript.steps:
        found = found.view_by(step)
    if slices:
        if subscript.indices:
            found = found.view_by(_element(subscript))
        return taken(found, slices).content
    if subscript.mask is not None:
        return Selection(trace, found.value, subscript.mask, subscript.axis)
    if subscript.indices:
        if not any(index.tensor.rank for index in subscript.indices):
            found = found.view_by(_element(subscript))
        else:
            made = fresh(trace, _gather(trace, found.value, subscript))
            return after_gather(made, found, subscript.axis, len(subscript.indices))
    elif not subscript.steps and not subscript.scalar:
        return found.view_by(Reshape(found.tensor_type.shape))  # x[...]: the same memory
    return TracedScalar(trace, found.value) if subscript.scalar else found


def _element(subscript: Subscript) -> Element:
    count = len(subscript.indices)
    axes = tuple(range(subscript.axis, subscript.axis + count))
    return Element(axes, subscript.indices)


def _gather(trace: Trace, value: Value, subscript: Subscript) -> Value:
    axes = tuple(range(subscript.axis, subscript.axis + len(subscript.indices)))
    made: Value = trace.emit("gather", value, *subscript.indices, axes=axes)[0]
    return made


def setitem(array: Any, key: Any, item: Any) -> None:
    """``array[key] = item``."""
    trace = running()
    if type(array) is not TracedArray:
        raise TypeError(f"'{array.__class__.__name__}' object does not support item assignment")
    array.require_writeable()
    key, slices = split(key)
    if slices:
        _assign(getitem(array.seen_by(trace), key), slices, item)
        return
    element, rest = element_first(trace, key)
    if element is not None:
        setitem(array.seen_by(trace).view_by(element), rest, item)
        return
    subscript = understand(trace, array.tensor_type.shape, key)
    target = array.seen_by(trace)
    for step in subscript.steps:
        target = target.view_by(step)
    if subscript.mask is not None:
        target.write(_masked(trace, target, subscript, item))
        return
    if not subscript.indices and _is_same_view(target, item):
        return  # what x[a:b] += y ends with: it is written already
    dtype = target.tensor_type.dtype
    if not any(index.tensor.rank for index in subscript.indices):  # NumPy makes one element of it
        refuse_unfit(trace, item, dtype)
    value = _assigned_value(trace, item, dtype)
    if not subscript.indices:
        target.write(broadcast_to(trace, value, target.tensor_type.shape, "input array"))
        return
    count = len(subscript.indices)
    axes = tuple(range(subscript.axis, subscript.axis + count))
    shape = target.tensor_type.shape
    spread = broadcast_shapes(trace, [index.tensor.shape for index in subscript.indices])
    wanted = (*shape[: subscript.axis], *spread, *shape[subscript.axis + count :])
    value = broadcast_to(trace, value, wanted, "input array")
    target.write(trace.emit("scatter", target.value, value, *subscript.indices, axes=axes)[0])


def _assign(array: Any, slices: Sequence[RunTimeSlice], item: Any) -> None:
    """Write to slices whose bounds are known only when the function runs."""
    part = taken(array, slices)
    if not any(part.axes):
        setitem(part.view, (), item)
        return
    if type(item) is Cut and item.view is not None and _is_same_view(part.view, item.view):
        return  # what x[:k] += y ends with: it is written already
    trace = running()
    content = Cut(trace, part.view.value, part.axes)
    value = trace.dispatch.cut.assigned_to(content, item.here() if type(item) is Cut else item)
    part.view.write(value)


def _is_same_view(target: TracedArray, item: Any) -> bool:
    return (
        type(item) is TracedArray
        and array_of(item).base_memory is target.base_memory
        and item.steps == target.steps
    )


def _assigned_value(trace: Trace, item: Any, dtype: Any) -> Value:
    if type(item) is Selection:
        raise item.size_error()
    return stored(trace, item, dtype)


def _masked(trace: Trace, target: TracedArray, subscript: Subscript, item: Any) -> Value:
    """The target with `item` where the mask holds."""
    mask = subscript.mask
    assert mask is not None
    dtype = target.tensor_type.dtype
    chosen = Selection(trace, target.value, mask, subscript.axis)
    if type(item) is Selection:
        whole = assigned(item, target.value, mask)
        if whole is None:
            raise fail(
                "TM112",
                "an array selected by one mask is assigned through another",
                hint="use the same mask on both sides, or np.where on the whole arrays",
            )
        value = trace.cast(whole, dtype)
    else:
        value = _assigned_value(trace, item, dtype)
        behind = target.ndim - subscript.axis - mask.tensor.rank
        if (
            value.tensor.rank == behind + 1
            and value.tensor.shape[0] == 1
            or (value.tensor.rank > behind and all(n == 1 for n in value.tensor.shape))
        ):
            value = reshape(trace, value, value.tensor.shape[value.tensor.rank - behind :])
        if value.tensor.rank > behind:
            raise fail(
                "TM112",
                f"{value.type!r} is assigned to elements selected by a mask; how many they are "
                "is known only at run time",
                hint="assign a number, or select with the same mask: a[mask] = b[mask]",
            )
    made: Value = trace.emit("select", chosen.full_mask(), value, target.value)
    return made


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """np.take"""
    trace = running()
    value, place = in_a_row(trace, value_of(a), axis)
    index = value_of(indices) if np.ndim(indices) or not isinstance(indices, list) else None
    if index is None or (index.tensor.dtype.kind == "f" and 0 in index.tensor.shape):
        index = value_of(np.zeros(np.shape(indices), np.int64))
    if index.tensor.dtype.kind not in "biu":
        raise fail("TM202", f"np.take needs integer indices, got {index.tensor.dtype.name}")
    index = trace.cast(index, I64)
    extent = value.tensor.shape[place]
    if mode == "wrap":
        index = trace.emit("remainder", index, trace.size_value(extent))
    elif mode == "clip":
        low, high = trace.size_value(0), trace.size_value(extent - 1)
        index = trace.emit("minimum", trace.emit("maximum", index, low), high)
    else:
        _refuse_known(trace, index, extent, place)
    made = trace.emit("gather", value, index, axes=(place,))[0]
    return (
        result(trace, made) if out is None else deliver(trace, made, out, True, "same_kind", "take")
    )


def _refuse_known(trace: Trace, index: Value, extent: Any, axis: int) -> None:
    if isinstance(extent, int):
        found = known(trace, index)
        if extent == 0 and index.tensor.shape != (0,) and 0 not in index.tensor.shape:
            raise fail("TM230", "cannot do a non-empty take from an empty axes.")
        if found is not None and found.size:
            bad = found[(found < -extent) | (found >= extent)]
            if bad.size:
                raise fail(
                    "TM230",
                    f"index {bad.flat[0]} is out of bounds for axis {axis} with size {extent}",
                )


def _along(trace: Trace, value: Value, indices: Any, axis: Any) -> tuple[Value, tuple[Value, ...]]:
    """Index arrays, one per axis, that broadcast to where an element comes from."""
    index = value_of(indices)
    if axis is None:
        value = reshape(trace, value, (product(value.tensor.shape),))
        axis = 0
    if index.tensor.rank != value.tensor.rank:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    if index.tensor.dtype.kind not in "iu":
        raise fail("TM230", "`indices` must be an integer array")
    place = one_axis(axis, value.tensor.rank)
    rank = value.tensor.rank
    places = []
    for i, n in enumerate(value.tensor.shape):
        if i == place:
            places.append(trace.cast(index, I64))
        else:
            steps = trace.emit("iota", size=n)
            places.append(reshape(trace, steps, [n if k == i else 1 for k in range(rank)]))
    return value, tuple(places)


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """np.take_along_axis"""
    trace = running()
    value, places = _along(trace, value_of(arr), indices, axis)
    made = trace.emit("gather", value, *places, axes=tuple(range(value.tensor.rank)))[0]
    return fresh(trace, made)


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """np.put_along_axis"""
    trace = running()
    array = out_array(arr)
    value, places = _along(trace, array.value, indices, axis)
    shape = broadcast_shapes(trace, [p.tensor.shape for p in places])
    item = broadcast_to(trace, stored(trace, values, array.tensor_type.dtype), shape)
    made = trace.emit("scatter", value, item, *places, axes=tuple(range(value.tensor.rank)))[0]
    array.write(reshape(trace, made, array.tensor_type.shape))


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """np.copyto"""
    trace = running()
    target = out_array(dst)
    wanted = target.tensor_type
    if type(src) in (int, float, complex, bool, TracedNumber, TracedSize):
        kind = weak_type(src)  # which decides: the number is weak
        have = np.result_type(wanted.dtype.numpy, kind)
    else:
        src = fresh(trace, value_of(src))
        have = src.dtype
    if not np.can_cast(have, wanted.dtype.numpy, casting):
        raise fail(
            "TM248",
            f"Cannot cast array data from {have!r} to {wanted.dtype.numpy!r} according to the "
            f"rule '{casting}'",
        )
    value = converted(trace, src, wanted.dtype)
    value = broadcast_to(trace, value, wanted.shape, "input array")
    if where is not True:
        mask = broadcast_to(trace, trace.cast(value_of(where), BOOL), wanted.shape)
        value = trace.emit("select", mask, value, target.value)
    target.write(value)


def fill(a: Any, value: Any) -> None:
    """ndarray.fill"""
    setitem(a, ..., value)


def nonzero(a: Any) -> Any:
    """np.nonzero of what is known while tracing."""
    trace = running()
    found = known(trace, value_of(a))
    if found is None:
        raise fail(
            "TM112",
            "the number of non-zero elements is known only at run time",
            hint="tm.nonzero(x, size=n) gives back n places and fills up; or use "
            "np.where(mask, a, b), a mask as index, or a reduction with where=mask",
        )
    return tuple(fresh(trace, trace.builder.constant(part)) for part in np.nonzero(found))


def item(a: Any, *args: Any) -> Any:
    """ndarray.item: a run-time Python number."""
    trace = running()
    value = value_of(a)
    if args:
        key = args[0] if len(args) == 1 else args
        if not isinstance(key, tuple) and value.tensor.rank != 1:
            value = reshape(trace, value, (product(value.tensor.shape),))
        value = getitem(fresh(trace, value), key).value
    count = product(value.tensor.shape)
    if not trace.sizes.equal(count, 1, "item() is of one element"):
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return trace.dispatch.python_number(reshape(trace, value, ()))


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """np.where"""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("either both or neither of x and y should be given")
    trace = running()
    from_dtype = trace.dispatch.common_dtype(x, y)
    mask = trace.cast(value_of(condition), BOOL)
    values = [_typed(trace, part, from_dtype) for part in (x, y)]
    return ordered(fresh(trace, trace.emit("select", mask, *values)), (condition, x, y))


def _typed(trace: Trace, item: Any, dtype: Any) -> Value:
    if type(item) is int and dtype.is_integer:  # becomes an array first, so it wraps
        item = int(np.asarray(item).astype(dtype.numpy))
    if type(item) in (int, float, complex, bool):
        return trace.literal(item, dtype)
    return trace.cast(value_of(item), dtype)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """np.select"""
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not len(condlist):
        raise ValueError("select with an empty condition list is not possible")
    trace = running()
    dtype = trace.dispatch.common_dtype(*choicelist, default)
    made = _typed(trace, default, dtype)
    for condition, choice in zip(reversed(condlist), reversed(choicelist)):
        mask = value_of(condition)
        if mask.tensor.dtype is not BOOL:
            raise TypeError("invalid entry 0 in condlist: should be boolean ndarray")
        made = trace.emit("select", mask, _typed(trace, choice, dtype), made)
    return fresh(trace, made)


FUNCTIONS: dict[Any, Any] = {
    np.take: take, np.take_along_axis: take_along_axis, np.put_along_axis: put_along_axis,
    np.copyto: copyto, np.nonzero: nonzero, np.where: where, np.select: select,
}  # fmt: skip

METHODS: dict[str, Any] = {
    "take": take, "fill": fill, "item": item, "nonzero": nonzero,
    "__getitem__": getitem, "__setitem__": setitem,
}  # fmt: skip
