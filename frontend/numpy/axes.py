"""Arguments that name axes, shapes and dtypes, brought into the graph's form.

Invariants: resulting axes are non-negative, distinct and sorted; errors are NumPy's classes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tracemill.compiler.dims import Dim, Size, floor_divide, product
from tracemill.compiler.errors import number_text
from tracemill.compiler.ops.signature import shape_text

from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail
from ..tracing.tensor import TracedArray, TracedScalar


def one_axis(axis: Any, rank: int) -> int:
    """An axis counted from the front. Raises AxisError, TypeError."""
    index = operator.index(axis)
    if not -rank <= index < rank:
        text = number_text(index)
        raise fail("TM220", f"axis {text} is out of bounds for array of dimension {rank}")
    return index + rank if index < 0 else index


def all_axes(axis: Any, rank: int, scalar_ok: bool = False) -> tuple[int, ...]:
    """Sorted axes for an ``axis=`` argument; None stands for all.

    scalar_ok: axis 0 or -1 of a rank 0 array means none, as in ufunc reductions.
    """
    if axis is None:
        return tuple(range(rank))
    items = axis if isinstance(axis, tuple | list) else (axis,)
    if rank == 0 and scalar_ok and len(items) == 1 and operator.index(items[0]) in (0, -1):
        return ()
    found = [one_axis(item, rank) for item in items]
    if len(set(found)) != len(found):
        raise fail("TM221", "duplicate value in 'axis'")
    return tuple(sorted(found))


def listed_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes in the order given."""
    items = axis if isinstance(axis, tuple | list) else (axis,)
    found = tuple(one_axis(item, rank) for item in items)
    if len(set(found)) != len(found):
        raise fail("TM221", "repeated axis")
    return found


def size_argument(size: Any) -> Size:
    """An integer argument that may be a size. Raises TypeError for other things."""
    if type(size) is int:
        return size
    if type(size) is TracedSize:
        return size.now()
    return operator.index(size)


def shape_argument(shape: Any) -> tuple[Size, ...]:
    """A shape argument: an integer or a sequence of them. Raises TypeError, ValueError."""
    kind = type(shape)
    if (
        kind in (int, TracedSize, TracedNumber, TracedScalar)
        or hasattr(shape, "__index__")
        and (kind is not TracedArray)
    ):
        shape = (shape,)
    if kind is TracedArray and shape.ndim == 0:
        shape = (shape,)
    if isinstance(shape, Dim):
        return (shape,)
    sizes = tuple([s if isinstance(s, Dim) else size_argument(s) for s in shape])
    for size in sizes:
        if isinstance(size, int) and size < 0:
            raise fail("TM242", "negative dimensions are not allowed")
    limit = 1
    for size in sizes:
        limit *= max(size, 1) if isinstance(size, int) else 1
    if limit >= 2**60:
        raise fail("TM250", f"an array of shape {shape_text(sizes)} is too large")
    return sizes


def reshape_argument(trace: Trace, have: tuple[Size, ...], shape: Any) -> tuple[Size, ...]:
    """The new shape of a reshape, -1 worked out. Raises ShapeError."""
    items = [shape] if not isinstance(shape, tuple | list | TracedArray) else list(shape)
    sizes: list[Any] = [s if isinstance(s, Dim) else size_argument(s) for s in items]
    open_at = [i for i, s in enumerate(sizes) if isinstance(s, int) and s < 0]
    total = product(have)
    if len(open_at) > 1 or any(s < -1 for s in sizes if isinstance(s, int)):
        raise fail("TM206", "can only specify one unknown dimension")
    if open_at:
        rest = product(tuple(s for i, s in enumerate(sizes) if i != open_at[0]))
        sizes[open_at[0]] = _quotient(trace, have, total, rest, sizes)
    new = tuple(sizes)
    if not trace.sizes.same_count(product(new), total, "a reshape keeps the number of elements"):
        raise _misfit(trace, have, new)
    return tuple([trace.sizes.normal(size) for size in new])


def _quotient(
    trace: Trace, have: tuple[Size, ...], total: Size, rest: Size, sizes: list[Any]
) -> Size:
    """What -1 stands for. Raises ShapeError where the elements cannot be shared out."""
    if rest == 0 or (
        isinstance(rest, Dim)
        and trace.sizes.answer_equal(rest, 0, "a reshape shares out the elements")
    ):
        raise _misfit(trace, have, tuple(sizes))
    quotient = floor_divide(total, rest)
    if quotient * rest == total:
        return quotient
    if trace.sizes.hint(rest) == 0 or not trace.sizes.divides(
        rest, total, "a reshape shares out the elements"
    ):
        raise _misfit(trace, have, tuple(sizes))
    return floor_divide(trace.sizes.normal(total), trace.sizes.normal(rest))


def _misfit(trace: Trace, have: tuple[Size, ...], new: tuple[Size, ...]) -> Exception:
    summary = f"cannot reshape array of shape {shape_text(have)} into shape {shape_text(new)}"
    return trace.explain(fail("TM206", summary), (*have, *new))


def kept_shape(shape: Sequence[Size], axes: Sequence[int]) -> tuple[Size, ...]:
    """The shape with `axes` of size 1: what keepdims leaves."""
    return tuple([1 if i in axes else n for i, n in enumerate(shape)])


def normal_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Axes counted from the front: one, several, or all for None. Raises AxisError, TypeError."""
    if axis is None:
        return tuple(range(rank))
    return tuple([one_axis(at, rank) for at in (axis if isinstance(axis, tuple) else (axis,))])
