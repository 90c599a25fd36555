"""Functions of arrays that are cut along axes: elementwise, sums, products, indexing.

Not here: what a cut array is (cut.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value

from ..tracing.state import Trace, running
from ..tracing.tensor import fresh, result
from . import linear, reductions, ufuncs
from .axes import normal_axes
from .creation import refuse_unfit, stored
from .cut import Axes, Cut, Ends, are_equally_long, are_same, of_whole
from .operands import value_of
from .unsized import neutral_of, refuse_masks
from .words import broadcast_to, expand


def call_of(ufunc: np.ufunc) -> Callable[..., Any]:
    """A ufunc as a function of its operands."""
    return lambda *args, **keywords: ufuncs.call(ufunc, args, **keywords)


def arrays(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments with arrays for what is cut. Raises UnsupportedError."""
    return tuple([item.array() if type(item) is Cut else item for item in args])


def elementwise(call: Callable[..., Any], args: Sequence[Any], keywords: Any) -> Any:
    """A function of each element. out: the first argument, which gets the result."""
    keywords = dict(keywords)
    out = keywords.pop("out", None)
    if out is not None:
        return _written(call, args, keywords, out)
    trace = running()
    found = None if set(keywords) - {"dtype", "casting"} else met(trace, args)
    if found is None:
        return call(*arrays(args), **keywords)
    operands, axes = found
    made = call(*operands, **keywords)
    if isinstance(made, tuple):
        return tuple([of_whole(trace, part.value, axes) for part in made])
    return of_whole(trace, made.value, axes)


def _written(
    call: Callable[..., Any], args: Sequence[Any], keywords: Any, out: tuple[Any, ...]
) -> Any:
    """The same with `out`, which is a slice of an array's memory or an array."""
    target = out[0]
    if len(out) != 1 or type(target) is not Cut or target.view is None:
        target_error = next(item for item in (*out, *args) if type(item) is Cut)
        raise target_error.size_error()
    now = target.here()
    made = (
        elementwise(call, args, keywords)
        if any(type(a) is Cut for a in args)
        else call(*args, **keywords)
    )
    assert now.view is not None
    now.view.write(assigned_to(now, made))
    return target


def met(trace: Trace, args: Sequence[Any]) -> tuple[list[Any], Axes] | None:
    """The wholes of arguments that broadcast together, and how the result is cut; None where they
    have to be arrays for that. Raises UnsupportedError."""
    operands = list(args)
    ranks = [rank_of(item) for item in operands]
    rank = max(ranks)
    axes: list[Ends | None] = []
    for axis in range(rank):
        places = [axis - rank + mine for mine in ranks]  # of this axis in each argument
        cut = [
            at for at, place in enumerate(places)
            if place >= 0 and type(operands[at]) is Cut and operands[at].axes[place] is not None
        ]  # fmt: skip
        if not cut:
            axes.append(None)
            continue
        for at, place in enumerate(places):
            if at not in cut and place >= 0 and not _is_one(trace, operands[at], place):
                return None
        if not _meet(trace, operands, cut, places):
            return None
        axes.append(operands[cut[0]].axes[places[cut[0]]])
    wholes = [result(trace, o.whole) if type(o) is Cut else o for o in operands]
    return wholes, tuple(axes)


def _meet(trace: Trace, operands: list[Any], cut: Sequence[int], places: Sequence[int]) -> bool:
    """Let cut axes begin and end where the first does. False where they have to be whole for
    that. Raises UnsupportedError."""
    first, axis = operands[cut[0]], places[cut[0]]
    for at in cut[1:]:
        mine, here = operands[at], places[at]
        if are_same(trace, first, axis, mine, here):
            continue
        if not are_equally_long(first.axes[axis], mine.axes[here]):
            if all(operands[k].axes[places[k]].is_likely for k in cut):
                return False
            raise refuse_masks("cut to lengths that are not known to be equal")
        operands[at] = mine.moved(here, first.axes[axis], first.extent(axis))
    return True


def _is_one(trace: Trace, item: Any, axis: int) -> bool:
    value = item.whole if type(item) is Cut else value_of(item)
    return trace.sizes.equal(value.tensor.shape[axis], 1, "an axis of one element is repeated")


def rank_of(item: Any) -> int:
    """np.ndim, also of what is cut."""
    found = getattr(item, "ndim", None)
    return np.ndim(item) if found is None else found


# -- reductions


def reduction(reduce: Callable[..., Any], extreme: str = "") -> Callable[..., Any]:
    def reducer(a: Any, axis: Any = None, **keywords: Any) -> Any:
        if keywords.get("out") is not None:
            raise a.size_error()
        if type(a) is not Cut:
            raise next(k for k in keywords.values() if type(k) is Cut).size_error()
        trace = running()
        given = {k: v for k, v in keywords.items() if v is not None and v is not np._NoValue}
        if set(given) - {"keepdims", "dtype", "ddof", "correction"}:
            return reduce(a.array(), axis=axis, **given)
        reduced = normal_axes(axis, a.ndim)
        mask = a.mask(reduced)
        if mask is not None:
            given["where"] = fresh(trace, mask)
        if mask is not None and extreme:
            for at in reduced:
                if a.axes[at] is not None:
                    some = trace.emit("any", a.mask_of(at), axes=(0,))
                    trace.emit("check", some, code="TM241")
            given["initial"] = neutral_of(a, extreme)
        made = reduce(result(trace, a.whole), axis=reduced, **given)
        kept = given.get("keepdims") is True
        axes = [None if at in reduced else ends for at, ends in enumerate(a.axes)]
        rest = [ends for at, ends in enumerate(axes) if kept or at not in reduced]
        return of_whole(trace, made.value, tuple(rest)) if any(rest) else made

    return reducer


total = reduction(reductions.sum_)


# -- products


def matmul(a: Any, b: Any) -> Any:
    """``a @ b`` of vectors and matrices."""
    trace = running()
    operands = [a, b]
    ranks = [rank_of(item) for item in operands]
    if not all(0 < rank < 3 for rank in ranks):
        return linear.matmul(*arrays(operands))
    summed = [ranks[0] - 1, max(ranks[1] - 2, 0)]
    cut = [type(o) is Cut and o.axes[at] is not None for o, at in zip(operands, summed)]
    if cut[0] != cut[1] or (all(cut) and not _meet(trace, operands, (0, 1), summed)):
        return linear.matmul(*arrays(operands))
    if all(cut) and ranks == [1, 1]:  # one pass over what is there
        return total(elementwise(call_of(np.multiply), operands, {}))
    wholes = []
    for item in operands:
        if type(item) is Cut:  # what is not there may be infinite
            item = result(trace, item.zeroed() if all(cut) else item.whole)
        wholes.append(item)
    left = [_ends(operands[0], at) for at in range(ranks[0]) if at != summed[0]]
    right = [_ends(operands[1], at) for at in range(ranks[1]) if at != summed[1]]
    return of_whole(trace, linear.matmul(*wholes).value, (*left, *right))


def _ends(item: Any, axis: int) -> Ends | None:
    return item.axes[axis] if type(item) is Cut else None


def dot(a: Any, b: Any) -> Any:
    """np.dot"""
    if rank_of(a) and rank_of(b):
        return matmul(a, b)
    return elementwise(call_of(np.multiply), (a, b), {})


def outer(a: Any, b: Any) -> Any:
    """np.outer of vectors."""
    if rank_of(a) != 1 or rank_of(b) != 1:
        return linear.outer(*arrays((a, b)))
    return elementwise(call_of(np.multiply), (_expanded(a, 1), _expanded(b, 0)), {})


def _expanded(item: Any, axis: int) -> Any:
    """A vector as a matrix, with a new axis at this place."""
    trace = running()
    if type(item) is not Cut:
        return fresh(trace, expand(trace, value_of(item), (axis,)))
    axes = (*item.axes, None) if axis else (None, *item.axes)
    return Cut(trace, expand(trace, item.whole, (axis,)), axes)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """np.linalg.norm of all elements, or along axes, in its usual form."""
    if ord is not None:
        raise x.size_error()
    squares = np.square(np.abs(x))
    return np.sqrt(total(squares, axis=axis, keepdims=keepdims))


def assigned_to(target: Cut, item: Any) -> Value:
    """The whole of the target with the elements that are there replaced."""
    trace = running()
    dtype = target.whole.tensor.dtype
    found = met(trace, [target, item])
    if found is None or rank_of(item) > target.ndim:
        target.value  # noqa: B018  which fails the call where it is not whole
        item = item.array() if type(item) is Cut else item
        return broadcast_to(trace, stored(trace, item, dtype), target.whole.tensor.shape)
    (whole, value), axes = found
    if type(item) is not Cut:
        refuse_unfit(trace, item, dtype)
    given = trace.cast(value_of(value), dtype) if type(item) is Cut else stored(trace, value, dtype)
    changed = Cut(trace, value_of(whole), axes)
    given = broadcast_to(trace, given, changed.whole.tensor.shape, "input array")
    mask = changed.mask()
    assert mask is not None
    made: Value = trace.emit("select", mask, given, changed.whole)
    return made
