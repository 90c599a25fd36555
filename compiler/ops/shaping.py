"""Words that gradient and canonical rules of ops with axes are written with.

Invariants: `emit` makes graph values; everything else is plain sizes.
Not here: the rules (with their records), the words of elementwise rules (record.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dims import Size, product
from ..types import DType


def filled(emit: Any, number: complex | float, dtype: DType, shape: tuple[Size, ...]) -> Any:
    """An array of `shape` that is `number` everywhere."""
    return emit.broadcast_to(emit.constant(number, dtype), shape=shape)


def zeros_like(emit: Any, value: Any) -> Any:
    """Zeros of the type of `value`."""
    return filled(emit, 0, value.type.dtype, value.type.shape)


def sum_to(emit: Any, value: Any, shape: tuple[Size, ...]) -> Any:
    """Undo broadcasting: sum the axes along which `shape` was repeated to that of `value`."""
    have: tuple[Size, ...] = value.type.shape
    if have == shape:
        return value
    extra = len(have) - len(shape)
    repeated = [i + extra for i, size in enumerate(shape) if size == 1 and have[i + extra] != 1]
    axes = (*range(extra), *repeated)
    return emit.reshape(emit.sum(value, axes=axes), shape=shape)


def expand(emit: Any, value: Any, shape: tuple[Size, ...], axes: Sequence[int]) -> Any:
    """Undo a reduction: repeat `value` along the dropped `axes` of `shape`."""
    kept = tuple([1 if axis in axes else size for axis, size in enumerate(shape)])
    return emit.broadcast_to(emit.reshape(value, shape=kept), shape=shape)


def flip(emit: Any, value: Any, axis: int) -> Any:
    """Reverse one axis."""
    shape: tuple[Size, ...] = value.type.shape
    here = [i == axis for i in range(len(shape))]
    return emit.slice(
        value,
        start=tuple([size - 1 if it else 0 for it, size in zip(here, shape)]),
        size=shape,
        step=tuple([-1 if it else 1 for it in here]),
    )


def inverse(perm: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `perm`."""
    places = [0] * len(perm)
    for place, axis in enumerate(perm):
        places[axis] = place
    return tuple(places)


def axes_last(emit: Any, value: Any, axes: Sequence[int]) -> Any:
    """`value` as [kept axes..., all of `axes` as one]."""
    shape: tuple[Size, ...] = value.type.shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    moved = emit.transpose(value, perm=(*kept, *axes))
    sizes = tuple([shape[axis] for axis in kept])
    return emit.reshape(moved, shape=(*sizes, product(tuple(shape[axis] for axis in axes))))


def axes_back(emit: Any, value: Any, shape: tuple[Size, ...], axes: Sequence[int]) -> Any:
    """Undo `axes_last` for an array that had `shape`."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    order = (*kept, *axes)
    spread = emit.reshape(value, shape=tuple([shape[axis] for axis in order]))
    return emit.transpose(spread, perm=inverse(order))
