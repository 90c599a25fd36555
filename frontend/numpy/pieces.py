"""Arrays put together from pieces, or with pieces put in and taken out: block, insert, delete, ...

Positions are known while tracing: they decide which slices are joined.

Not here: joining whole arrays (joining.py), windows as views of user code's own (movement.py).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..tracing.integer import TracedSize
from ..tracing.state import fail, running
from ..tracing.tensor import fresh
from .axes import one_axis, size_argument
from .creation import asarray
from .operands import is_traced, value_of
from .words import slid


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """np.insert at one position, or at several in rising order of the original array."""
    arr, place = _flat_or_axis(arr, axis)
    places = _positions(obj, arr.shape[place], "insert", past_end=True)
    values = asarray(values, arr.dtype)
    if len(places) == 1:
        values = _grown(values, arr.ndim)
        if type(obj) is TracedSize or np.ndim(obj) == 0 and not isinstance(obj, slice):
            values = np.moveaxis(values, 0, place)  # a number takes values from their first axis
        shape = list(arr.shape)
        shape[place] = values.shape[place]
        pieces = [_part(arr, place, 0, places[0]), np.broadcast_to(values, shape)]
        return np.concatenate([*pieces, _part(arr, place, places[0], None)], axis=place)
    count = len(places)
    shape = [count if i == place else n for i, n in enumerate(arr.shape)]
    new = np.broadcast_to(values, shape)
    order = sorted(range(count), key=lambda i: places[i])
    pieces, begin = [], 0
    for i in order:
        pieces += [_part(arr, place, begin, places[i]), _part(new, place, i, i + 1)]
        begin = places[i]
    return np.concatenate([*pieces, _part(arr, place, begin, None)], axis=place)


def _grown(values: Any, rank: int) -> Any:
    """Values with all axes, as broadcasting would add them."""
    if values.ndim >= rank:
        return values
    return np.reshape(values, (1,) * (rank - values.ndim) + tuple(values.shape))


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """np.delete of one position, several, or a slice."""
    arr, place = _flat_or_axis(arr, axis)
    if isinstance(obj, slice) and obj.step in (None, 1):
        first, end = _range(obj, arr.shape[place])
        return np.concatenate([_part(arr, place, 0, first), _part(arr, place, end, None)], place)
    gone = sorted(_positions(obj, arr.shape[place], "delete", past_end=False))
    pieces, begin = [], 0
    for at, position in enumerate(gone):
        if at and position == gone[at - 1]:
            continue
        pieces.append(_part(arr, place, begin, position))
        begin = position + 1
    return np.concatenate([*pieces, _part(arr, place, begin, None)], axis=place)


def _flat_or_axis(arr: Any, axis: Any) -> tuple[Any, int]:
    array = asarray(arr)
    if axis is None:
        return np.ravel(array), 0
    return array, one_axis(axis, array.ndim)


def _part(array: Any, axis: int, begin: Any, end: Any) -> Any:
    return array[(slice(None),) * axis + (slice(begin, end),)]


def _range(obj: slice, size: Any) -> tuple[Any, Any]:
    """Where the positions of a slice begin and end, in rising order."""
    ends = []
    for given, missing in ((obj.start, 0), (obj.stop, size)):
        at = missing if given is None else given
        at = at + size if at < 0 else at
        ends.append(min(max(at, 0), size))
    return ends[0], max(ends)


def _positions(obj: Any, size: Any, name: str, past_end: bool) -> list[Any]:
    """The positions as integers that are not negative."""
    if type(obj) is TracedSize:
        obj = [obj]
    if is_traced(obj) and hasattr(obj, "tensor_type"):
        raise fail(
            "TM111",
            f"np.{name} at positions that are known only at run time is not supported",
            hint="give the positions as Python integers, or as a static argument",
        )
    if isinstance(obj, slice):
        return list(range(*obj.indices(operator.index(size))))
    if isinstance(obj, np.ndarray) and obj.dtype == bool:
        obj = np.flatnonzero(obj)
    items = obj.tolist() if isinstance(obj, np.ndarray | np.generic) else obj
    items = list(items) if isinstance(items, list | tuple | range) else [items]
    found = []
    for item in items:
        number = item if type(item) is TracedSize else operator.index(item)
        low, high = -size, size if past_end else size - 1
        if not (low <= number <= high):
            raise IndexError(
                f"index {number} is out of bounds for axis 0 with size {operator.index(size)}"
            )
        found.append(number + size if number < 0 else number)
    return found


def block(arrays: Any) -> Any:
    """np.block: lists inside lists are joined along axes from the last one outwards."""
    depth = _depth(arrays)
    rank = max(depth, *(np.ndim(leaf) for leaf in _leaves(arrays)))
    return _joined(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    if type(arrays) is not list:
        return 0
    if not arrays:
        raise ValueError("List at arrays[0] cannot be empty")
    depths = {_depth(item) for item in arrays}
    if len(depths) > 1:
        raise ValueError("List depths are mismatched.")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    if type(arrays) is not list:
        return [arrays]
    return [leaf for item in arrays for leaf in _leaves(item)]


def _joined(arrays: Any, depth: int, rank: int) -> Any:
    if type(arrays) is not list:
        array = asarray(arrays)
        return np.reshape(array, (1,) * (rank - array.ndim) + tuple(array.shape))
    return np.concatenate([_joined(item, depth - 1, rank) for item in arrays], axis=rank - depth)


def resize(a: Any, new_shape: Any) -> Any:
    """np.resize: the elements repeated as often as they are needed."""
    shape = tuple(new_shape) if isinstance(new_shape, list | tuple) else (new_shape,)
    flat = np.ravel(asarray(a))
    total: Any = 1
    for size in shape:
        if size < 0:
            raise ValueError("all elements of `new_shape` must be non-negative")
        total = total * size
    if total == 0 or flat.shape[0] == 0:
        return np.zeros_like(flat, shape=shape)
    times = -(-total // flat.shape[0])
    return np.reshape(np.tile(flat, times)[:total], shape)


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """np.lib.stride_tricks.sliding_window_view, read only as NumPy's is by default."""
    if writeable:
        raise fail("TM111", "a sliding_window_view to write to is not supported")
    x = asarray(x)
    windows = tuple(window_shape) if isinstance(window_shape, list | tuple) else (window_shape,)
    if axis is None:
        axes = tuple(range(x.ndim))
    else:
        axes = tuple([one_axis(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,))])
    if len(axes) != len(windows):
        raise ValueError(
            "Must provide matching length window_shape and axis; got "
            f"{len(windows)} window_shape elements and {len(axes)} axes elements."
        )
    for place, window in zip(axes, windows):
        if window < 0:
            raise ValueError("`window_shape` cannot contain negative values")
        count = x.shape[place] - window + 1
        if count < 1:
            raise ValueError("window shape cannot be larger than input array shape")
        x = fresh(running(), slid(running(), value_of(x), place, size_argument(window), 1, 1))
    return x


FUNCTIONS: dict[Any, Any] = {
    np.insert: insert, np.delete: delete, np.block: block, np.resize: resize,
    np.lib.stride_tricks.sliding_window_view: sliding_window_view,
}  # fmt: skip
