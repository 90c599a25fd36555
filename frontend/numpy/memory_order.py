"""In which order the axes of a new array lie in memory: NumPy's ``order=`` "C", "F", "A", "K".

It decides which later reshapes are views of it. "K" keeps the order of the operands.

Invariants: an array in C order has no strides of its own; what the order was taken from guards
it (`layout_of`).
Not here: strides of views (tracing/views.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tracemill.compiler.dims import Size

from ..tracing.tensor import TracedArray
from ..tracing.views import Strides, contiguous_strides, fresh_strides, is_contiguous, laid_out


def ordered(made: Any, operands: Iterable[Any]) -> Any:
    """A new array, its axes in the order of the operands' as NumPy lays them."""
    if type(made) is not TracedArray or made.ndim < 2:
        return made
    arrays = [a for a in operands if type(a) is TracedArray]
    if all(a.is_plain for a in arrays):
        return made
    found = fresh_strides(
        [a.tensor_type.shape for a in arrays],
        [a.element_strides() for a in arrays],
        made.tensor_type.shape,
    )
    return _with(made, found, arrays)


def in_order(made: Any, order: Any, like: Any = None) -> Any:
    """A new array in a given order; "A" and "K" are after the array `like`."""
    if type(made) is not TracedArray or made.ndim < 2:
        return made
    like = like if type(like) is TracedArray else None
    if order == "F" or order == "A" and like is not None and _is_fortran(like):
        return _with(made, laid_out(tuple(range(made.ndim))[::-1], made.tensor_type.shape), [])
    if order in ("K", None) and like is not None and like.ndim == made.ndim:
        return ordered(made, [like])
    return made


def after_reduction(made: Any, a: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """The result of a reduction over `axes`: the axes that stay keep their order."""
    if type(made) is not TracedArray or type(a) is not TracedArray or a.is_plain:
        return made
    shape, strides = a.tensor_type.shape, a.element_strides()
    if keepdims:
        kept = [(1 if i in axes else n, s) for i, (n, s) in enumerate(zip(shape, strides))]
    else:
        kept = [(n, s) for i, (n, s) in enumerate(zip(shape, strides)) if i not in axes]
    if len(kept) < 2:
        return made
    found = fresh_strides(
        [tuple([n for n, _ in kept])], [tuple([s for _, s in kept])], made.tensor_type.shape
    )
    return _with(made, found, [a])


def _is_fortran(array: TracedArray) -> bool:
    shape: tuple[Size, ...] = array.tensor_type.shape
    strides: Strides = array.element_strides()
    return is_contiguous(shape[::-1], strides[::-1]) and not is_contiguous(shape, strides)


def _with(
    made: TracedArray, strides: Strides | None, sources: Sequence[TracedArray]
) -> TracedArray:
    if strides is not None and strides != contiguous_strides(made.tensor_type.shape):
        base = made.base_memory
        base.strides = strides
        base.layout_of = frozenset().union(*[a.base_memory.layout_of for a in sources])
    return made
