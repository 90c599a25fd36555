"""In which order the axes of a new array lie in memory: NumPy's ``order=`` "C", "F", "A", "K".

It decides which later reshapes are views of it. "K" keeps the order of the operands.

Invariants: an array in C order has no strides of its own; whatever the order, it is known what
it was taken from (`layout_of`, `order_of`), and guarded where something depends on it.
Not here: strides of views (tracing/views.py).
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from tracemill.compiler.dims import Size
from tracemill.compiler.records import replace

from ..tracing.source import user_location
from ..tracing.state import Trace
from ..tracing.tensor import TracedArray
from ..tracing.views import (
    Base,
    Slice,
    Step,
    Strides,
    Transpose,
    abs_size,
    compared,
    contiguous_strides,
    fresh_strides,
    is_contiguous,
    laid_out,
)


def settle_layout(array: TracedArray, new: tuple[Size, ...] = ()) -> tuple[Size, ...]:
    """Guard what decides how an array lies in memory, and whether it can be viewed as `new`; its
    shape in the sizes that remain."""
    trace = array.tracing
    _fix_layout(trace, array.base_memory)
    for size in (*array.tensor_type.shape, *new):
        trace.sizes.equal(size, 1, "whether a reshape is a view depends on axes of size 1")
    strides = array.element_strides()
    kept = [(n, s) for n, s in zip(array.tensor_type.shape, strides, strict=True) if n != 1]
    for (_, outer), (size, inner) in itertools.pairwise(kept):
        if isinstance(inner, int) and isinstance(outer, int) and inner:  # of an array with gaps
            trace.sizes.equal(size * inner, outer, "whether a reshape is a view depends on gaps")
    for mine, other in itertools.product(_products(kept), _products([(n, 0) for n in new])):
        trace.sizes.equal(mine, other, "whether a reshape is a view depends on what it splits")
    return tuple(map(trace.sizes.normal, array.tensor_type.shape))


def _products(axes: Iterable[tuple[Size, Size]]) -> list[Size]:
    """Of the first size, of the first two, and so on."""
    return list(itertools.accumulate([size for size, _ in axes], operator.mul))


def _fix_layout(trace: Trace, base: Base) -> None:
    """Guard how arguments lie in memory: a decision depends on how `base` does."""
    found = [trace.layouts.pop(place, None) for place in sorted(base.layout_of)]
    orders = [trace.axes_orders.pop(place, None) for place in sorted(base.order_of)]
    for guard in (*found, *orders):
        if guard is not None:
            trace.guards.append(replace(guard, location=user_location()))


def lies_in(array: Any, order: str) -> bool:
    """Whether an array lies in memory in C order (C), Fortran order (F), one of them (A), or
    anyhow (K)."""
    if order == "K" or type(array) is not TracedArray:
        return True
    if order == "A":
        return lies_in(array, "C") or lies_in(array, "F")
    if order == "F":
        return lies_in(array.view_by(Transpose(tuple(range(array.ndim))[::-1])), "C")
    if array.is_plain:
        return True
    shape = settle_layout(array)
    equal = array.tracing.sizes.equal
    if any(equal(size, 0, "an array without elements is contiguous") for size in shape):
        return True
    return is_contiguous(shape, array.element_strides())


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
    if order == "F" or order == "A" and like is not None and is_fortran(like):
        return _with(made, _fortran_strides(made), [])
    if order in ("K", None) and like is not None and like.ndim == made.ndim:
        return ordered(made, [like])
    return made


def in_asked_order(made: Any, order: str, operands: Iterable[Any]) -> Any:
    """A new array in the order that a ufunc was asked for."""
    if order == "K":
        return ordered(made, operands)
    if type(made) is not TracedArray or made.ndim < 2 or order == "C":
        return made
    arrays = [a for a in operands if type(a) is TracedArray]
    if order == "F" or arrays and all(lies_in(a, "F") for a in arrays):
        return _with(made, _fortran_strides(made), [])
    return made


def after_gather(made: Any, source: TracedArray, axis: int, count: int) -> Any:
    """What index arrays take from the `count` axes from `axis` on: the axes of the index lie
    outside of those that stay, which keep their order."""
    if made.ndim < 2:
        return made
    wide = made.ndim - source.ndim + count
    kept = [at for at in slowest_first(source) if not axis <= at < axis + count]
    places = [at if at < axis else at - count + wide for at in kept]
    order = (*range(axis, axis + wide), *places)
    sources = [source] if len(kept) > 1 and not source.is_plain else []
    return _with(made, laid_out(order, made.tensor_type.shape), sources)


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


def _fortran_strides(made: TracedArray) -> Strides | None:
    return laid_out(tuple(range(made.ndim))[::-1], made.tensor_type.shape)


def is_fortran(array: TracedArray) -> bool:
    """Whether the array lies in memory in Fortran order and not in C order too."""
    return not lies_in(array, "C") and lies_in(array, "F")


def padded_order(made: Any, array: TracedArray) -> Any:
    """What np.pad makes of an array: in Fortran order where that is. Nothing is guarded before
    something depends on it."""
    if type(made) is not TracedArray or made.ndim < 2 or array.is_plain:
        return made
    shape, strides = array.tensor_type.shape, array.element_strides()
    turned = is_contiguous(shape[::-1], strides[::-1]) and not is_contiguous(shape, strides)
    _with(made, _fortran_strides(made) if turned else None, [])
    made.base_memory.layout_of = array.base_memory.layout_of | array.base_memory.order_of
    return made


def slowest_first(array: TracedArray) -> tuple[int, ...]:
    """The axes as they follow each other in memory, those of equal steps as they are numbered."""
    steps = [abs_size(step) for step in array.element_strides()]

    def later(i: int, j: int) -> int:
        return compared(steps[j], steps[i])

    return tuple(sorted(range(len(steps)), key=functools.cmp_to_key(later)))


def _with(
    made: TracedArray, strides: Strides | None, sources: Sequence[TracedArray]
) -> TracedArray:
    base = made.base_memory
    if strides is not None and strides != contiguous_strides(made.tensor_type.shape):
        base.strides = strides
    for source in sources:
        if source.ndim > 1:
            layout, order = _taken_from(source)
            base.layout_of |= layout
            base.order_of |= order
    return made


def _taken_from(source: TracedArray) -> tuple[frozenset[int], frozenset[int]]:
    """The inputs whose strides decide how the axes of `source` follow each other in memory, and
    those of which the order of their axes does."""
    base = source.base_memory
    if not all(_keeps_ranks(step) for step in source.steps):
        return base.layout_of | base.order_of, frozenset()
    if base.input is None:
        return base.layout_of, base.order_of
    return frozenset(), base.layout_of


def _keeps_ranks(step: Step) -> bool:
    """Whether a view's axes are in the order of its parent's."""
    if isinstance(step, Slice):
        return all(abs(by) == 1 for by in step.step)
    return isinstance(step, Transpose)
