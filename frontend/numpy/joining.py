"""Several arrays into one, one into several, and repetition: concatenate, split, tile, repeat.

Not here: views (movement.py), pad (padding.py), roll (rolling.py).
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, floor_divide
from tracemill.compiler.ir.graph import Value

from ..tracing.concrete import known
from ..tracing.integer import TracedSize
from ..tracing.state import fail, require_dtype, running
from ..tracing.tensor import TracedArray, fresh
from ..tracing.views import Slice
from .axes import one_axis, size_argument
from .memory_order import ordered
from .movement import atleast_1d, atleast_2d, atleast_3d, expand_dims, moveaxis, view_of
from .operands import array_of, common_dtype, value_of
from .ufuncs import deliver
from .words import in_a_row, reshape


def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """np.concatenate"""
    trace = running()
    items = list(arrays)
    if not items:
        raise ValueError("need at least one array to concatenate")
    found = require_dtype(dtype) if dtype is not None else common_dtype(*items)
    values = [trace.cast(value_of(item), found) for item in items]
    if axis is None:
        values = [reshape(trace, v, (_count(v),)) for v in values]
        axis = 0
    if any(v.tensor.rank == 0 for v in values):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    place = one_axis(axis, values[0].tensor.rank)
    for i, value in enumerate(values):
        if value.tensor.rank != values[0].tensor.rank:
            raise fail(
                "TM208",
                "all the input array dimensions except for the concatenation axis must match "
                f"exactly, but array 0 has {values[0].tensor.rank} dimension(s) and array {i} "
                f"has {value.tensor.rank}",
            )
    made = trace.emit("concatenate", *values, axis=place)
    return (
        ordered(fresh(trace, made), items)
        if out is None
        else deliver(trace, made, out, True, casting, "concatenate")
    )


def _count(value: Value) -> Size:
    total: Size = 1
    for size in value.tensor.shape:
        total = total * size
    return total


def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    """np.stack"""
    items = [view_of(a) for a in arrays]
    if not items:
        raise ValueError("need at least one array to stack")
    trace = running()
    for item in items[1:]:
        same = item.ndim == items[0].ndim and all(
            trace.sizes.equal(a, b, "stack joins arrays of one shape")
            for a, b in zip(item.tensor_type.shape, items[0].tensor_type.shape)
        )
        if not same:
            raise fail(
                "TM209",
                "all input arrays must have the same shape, got "
                f"{items[0].tensor_type!r} and {item.tensor_type!r}",
            )
    place = one_axis(axis, items[0].ndim + 1)
    return concatenate(
        [expand_dims(a, place) for a in items], place, out, dtype=dtype, casting=casting
    )


def _at_least(arrays: Any, function: Any) -> list[Any]:
    made = function(*arrays)
    return list(made) if isinstance(made, tuple) else [made]


def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """np.vstack"""
    return concatenate(_at_least(tup, atleast_2d), 0, dtype=dtype, casting=casting)


def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """np.hstack"""
    items = _at_least(tup, atleast_1d)
    axis = 0 if items and items[0].ndim == 1 else 1
    return concatenate(items, axis, dtype=dtype, casting=casting)


def dstack(tup: Any) -> Any:
    """np.dstack"""
    return concatenate(_at_least(tup, atleast_3d), 2)


def column_stack(tup: Any) -> Any:
    """np.column_stack"""
    items = [view_of(a) for a in tup]
    return concatenate([a.reshape(-1, 1) if a.ndim < 2 else a for a in items], 1)


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """np.append"""
    return concatenate((array_of(arr), array_of(values)), axis)


def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """np.array_split"""
    array = view_of(ary)
    place = one_axis(axis, array.ndim)
    extent = array.tensor_type.shape[place]
    if hasattr(indices_or_sections, "__len__"):
        cuts = [0, *indices_or_sections, None]
        pairs = itertools.pairwise(cuts)
        return [array[_along(place, slice(a, b))] for a, b in pairs]
    sections = operator.index(indices_or_sections)
    if sections <= 0:
        raise ValueError("number sections must be larger than 0.")
    sizes = array.tracing.sizes
    if sizes.divides(sections, extent, "array_split can make equal parts"):
        return _equal_pieces(array, place, sections)
    extent = sizes.normal(extent)
    parts = [floor_divide(extent + (sections - 1 - i), sections) for i in range(sections - 1)]
    return _pieces(array, place, [*parts, extent - sum(parts)])


def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """np.split"""
    if hasattr(indices_or_sections, "__len__"):
        return array_split(ary, indices_or_sections, axis)
    array = view_of(ary)
    place = one_axis(axis, array.ndim)
    sections = operator.index(indices_or_sections)
    if sections <= 0:
        raise ValueError("number sections must be larger than 0.")
    extent = array.tensor_type.shape[place]
    trace = array.tracing
    if not trace.sizes.divides(sections, extent, "split makes equal parts"):
        raise ValueError("array split does not result in an equal division")
    return _equal_pieces(array, place, sections)


def _equal_pieces(array: TracedArray, axis: int, sections: int) -> list[Any]:
    extent = array.tracing.sizes.normal(array.tensor_type.shape[axis])
    return _pieces(array, axis, [floor_divide(extent, sections)] * sections)


def _pieces(array: TracedArray, axis: int, sizes: Sequence[Size]) -> list[Any]:
    pieces = []
    start: Size = 0
    shape = array.tensor_type.shape
    for size in sizes:
        region = _region(shape, axis, start, size)
        pieces.append(array.view_by(region))
        start = start + size
    return pieces


def _region(shape: tuple[Size, ...], axis: int, start: Size, size: Size) -> Slice:
    return Slice(
        tuple([start if i == axis else 0 for i in range(len(shape))]),
        tuple([size if i == axis else n for i, n in enumerate(shape)]),
        (1,) * len(shape),
    )


def _along(axis: int, key: Any) -> tuple[Any, ...]:
    return (slice(None),) * axis + (key,)


def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    """np.hsplit"""
    return split(ary, indices_or_sections, 0 if view_of(ary).ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    """np.vsplit"""
    return split(ary, indices_or_sections, 0)


def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    """np.unstack"""
    return tuple(moveaxis(x, axis, 0))


def tile(A: Any, reps: Any) -> Any:
    """np.tile"""
    trace = running()
    value = value_of(A)
    counts = tuple(size_argument(r) for r in (reps if isinstance(reps, tuple | list) else (reps,)))
    rank = max(len(counts), value.tensor.rank)
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - value.tensor.rank) + value.tensor.shape
    if any(isinstance(c, int) and c < 0 for c in counts):
        raise fail("TM242", "negative dimensions are not allowed")
    paired = tuple([n for pair in zip((1,) * rank, shape) for n in pair])
    spread = tuple([n for pair in zip(counts, shape) for n in pair])
    value = trace.emit("broadcast_to", reshape(trace, value, paired), shape=spread)
    return fresh(trace, reshape(trace, value, [c * n for c, n in zip(counts, shape)]))


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """np.repeat"""
    trace = running()
    value, place = in_a_row(trace, value_of(a), axis)
    shape = value.tensor.shape
    if isinstance(repeats, int | np.integer) or type(repeats) is TracedSize:
        count = size_argument(repeats)
        if isinstance(count, int) and count < 0:
            raise fail("TM242", "repeats may not contain negative values.")
        lifted = reshape(trace, value, (*shape[: place + 1], 1, *shape[place + 1 :]))
        spread = (*shape[: place + 1], count, *shape[place + 1 :])
        value = trace.emit("broadcast_to", lifted, shape=spread)
        total = (*shape[:place], shape[place] * count, *shape[place + 1 :])
        return fresh(trace, reshape(trace, value, total))
    counts = known(trace, value_of(repeats))
    if counts is None:
        raise fail(
            "TM112",
            "np.repeat with counts known only at run time has a result of unknown size",
            hint="pass the counts as a constant array or a static argument",
        )
    extent = trace.sizes.specialise(shape[place], "np.repeat has a count for each element")
    index = np.repeat(np.arange(extent), np.broadcast_to(counts, (extent,)))
    places = trace.builder.constant(index)
    return fresh(trace, trace.emit("gather", value, places, axes=(place,))[0])


FUNCTIONS: dict[Any, Any] = {
    np.concatenate: concatenate, np.concat: concatenate, np.stack: stack, np.vstack: vstack,
    np.hstack: hstack, np.dstack: dstack, np.column_stack: column_stack, np.append: append,
    np.split: split, np.array_split: array_split, np.hsplit: hsplit, np.vsplit: vsplit,
    np.unstack: unstack, np.tile: tile, np.repeat: repeat,
}  # fmt: skip

METHODS: dict[str, Any] = {"repeat": repeat}
