"""``ufunc.reduceat``: folds of stretches of an axis, which begin at indices.

Invariants: a stretch that would be empty or go back is its first element.
Not here: folds of whole axes (folds.py, reductions.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import F16, F32, I64

from ..loading import load
from ..tracing.concrete import known, require
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import fresh, result
from .axes import kept_shape
from .folds import ROUNDED_ONCE, reduced
from .operands import value_of
from .prefixes import folded_value, one_place
from .reductions import FOLDS, fold
from .ufuncs import deliver
from .words import reshape, slice_axis

_WRITTEN_OUT = 32  # stretches that get reductions of their own, where all of them are known


def reduceat(
    ufunc: np.ufunc, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """``ufunc.reduceat``."""
    trace = running()
    value = value_of(array)
    place = one_place(value, axis, "reduceat")
    value = folded_value(trace, ufunc, value, dtype, out, uniform=True)
    dtype = value.tensor.dtype
    if dtype is F16 and ufunc in ROUNDED_ONCE:
        value = trace.cast(value, F32)
    starts = trace.cast(value_of(indices), I64)
    if starts.tensor.rank != 1:
        raise ValueError("reduceat takes one row of indices")
    count = value.tensor.shape[place]
    ok = trace.emit(
        "logical_and",
        trace.emit("greater_equal", starts, trace.literal(0, I64)),
        trace.emit("less", starts, trace.size_value(count)),
    )
    require(trace, ok, "TM230", f"an index is out-of-bounds in {ufunc.__name__}.reduceat")
    found = known(trace, starts)
    if found is not None and 0 < len(found) <= _WRITTEN_OUT:
        _check_reach(trace, ufunc, found, count)
        made = _stretches(trace, ufunc, value, place, [*map(int, found)])
    else:
        made = _stretches_of_run(trace, ufunc, value, place, starts)
    made = trace.cast(made, dtype)
    if out is not None:
        return deliver(trace, made, out, True, "unsafe", ufunc.__name__)
    return result(trace, made)


def _check_reach(trace: Trace, ufunc: np.ufunc, starts: Any, count: Size) -> None:
    least, most = int(min(starts)), int(max(starts))
    inside = trace.sizes.at_least(count, most + 1, "indices of reduceat are inside their axis")
    if least < 0 or not inside:
        bad = least if least < 0 else most
        raise fail("TM230", f"index {bad} is out-of-bounds in {ufunc.__name__}.reduceat")


def _stretches(
    trace: Trace, ufunc: np.ufunc, value: Value, place: int, starts: Sequence[int]
) -> Value:
    """Reductions of slices, one after another."""
    count = value.tensor.shape[place]
    ends: list[Size] = [max(end, begin + 1) for begin, end in itertools.pairwise(starts)]
    parts = []
    for begin, end in zip(starts, [*ends, count]):
        part = slice_axis(trace, value, place, begin, end - begin)
        parts.append(_stretch(trace, ufunc, part, place))
    joined: Value = parts[0] if len(parts) == 1 else trace.emit("concatenate", *parts, axis=place)
    return joined


def _stretch(trace: Trace, ufunc: np.ufunc, part: Value, place: int) -> Value:
    """A fold of all of an axis, which stays."""
    dtype = part.tensor.dtype.numpy
    count = part.tensor.shape[place]
    if ufunc is np.add and trace.sizes.at_least(count, 2, "what follows the first is summed"):
        rest = fresh(trace, slice_axis(trace, part, place, 1, count - 1))
        total = value_of(fold(ufunc, rest, place, dtype, keepdims=True))
        made: Value = trace.emit("add", slice_axis(trace, part, place, 0, 1), total)
        return made
    if ufunc in FOLDS:
        return value_of(fold(ufunc, fresh(trace, part), place, dtype, keepdims=True))
    made = reduced(trace, ufunc, part, (place,), None, None)
    return reshape(trace, made, kept_shape(part.tensor.shape, (place,)))


def _stretches_of_run(
    trace: Trace, ufunc: np.ufunc, value: Value, place: int, starts: Value
) -> Value:
    """A loop that takes the next element of all stretches on every trip."""
    count = value.tensor.shape[place]
    whole: Any = fresh(trace, value)
    rows = np.moveaxis(whole, place, 0)
    begin: Any = fresh(trace, starts)
    size = fresh(trace, trace.size_value(count))
    following = np.concatenate((begin[1:], np.reshape(size, (1,))))[: np.shape(begin)[0]]
    lengths = np.maximum(following - begin, 1)
    behind = (1,) * (value.tensor.rank - 1)

    def body(turn: Any, total: Any) -> Any:
        found = np.take(rows, begin + turn, axis=0, mode="clip")
        goes_on = np.reshape(turn < lengths, (-1, *behind))
        return np.where(goes_on, ufunc(total, found, dtype=value.tensor.dtype.numpy), total)

    longest = np.max(lengths, initial=1)
    init = np.take(rows, begin, axis=0)
    made: Any = load("control.traced").traced_fori(trace, 1, longest, body, init)
    return value_of(np.moveaxis(made, 0, place))
