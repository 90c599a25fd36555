"""Medians and quantiles of what is not NaN: nanmedian, nanpercentile, nanquantile.

NaN are last in a row that is in order, so what counts is how many elements are before them.

Invariants: a row of nothing but NaN gives NaN, of the dtype that other rows have.
Not here: the methods (order_statistics.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import I64

from ..tracing.state import Trace, running
from ..tracing.tensor import fresh
from .nan_aware import nanmean
from .operands import MISSING, value_of
from .order_statistics import (
    Asked,
    Ordered,
    asked_percentiles,
    asked_quantiles,
    middle,
    rows_along,
)
from .sorting import sorted_along, take_places
from .statistics import mean
from .ufuncs import deliver
from .words import expand, reshape


def nanmedian(
    a: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    keepdims: Any = MISSING,
) -> Any:
    """np.nanmedian"""
    trace = running()
    value = value_of(a)
    if _is_empty(trace, value):
        return nanmean(a, axis, out=out, keepdims=keepdims)
    rows, kept = rows_along(trace, value, axis)
    ordered = _without_nan(trace, rows)
    made = _middle(trace, ordered)
    made = reshape(trace, made, kept if _given(keepdims) else rows.tensor.shape[:-1])
    return deliver(trace, made, out, True, "unsafe", "nanmedian")


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = MISSING,
    *,
    weights: Any = None,
) -> Any:
    """np.nanpercentile"""
    return _quantile(asked_percentiles(a, q, method, weights), axis, out, keepdims)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = MISSING,
    *,
    weights: Any = None,
) -> Any:
    """np.nanquantile"""
    return _quantile(asked_quantiles(a, q, method, weights), axis, out, keepdims)


def _quantile(asked: Asked, axis: Any, out: Any, keepdims: Any) -> Any:
    trace = running()
    if _is_empty(trace, asked.value):
        return nanmean(fresh(trace, asked.value), axis, out=out, keepdims=keepdims)
    rows, kept = rows_along(trace, asked.value, axis)
    made = asked.of(trace, _without_nan(trace, rows))
    if _given(keepdims):
        made = reshape(trace, made, (*asked.parts.tensor.shape, *kept))
    return deliver(trace, made, out, True, "unsafe", f"nan{asked.name}")


def _given(keepdims: Any) -> bool:
    return keepdims is not MISSING and bool(keepdims)


def _is_empty(trace: Trace, value: Value) -> bool:
    why = "there are elements"
    return not all(trace.sizes.at_least(size, 1, why) for size in value.tensor.shape)


def _without_nan(trace: Trace, rows: Value) -> Ordered:
    """The rows in order; how many elements come before NaN."""
    last = rows.tensor.rank - 1
    ordered = sorted_along(trace, rows, last)
    if rows.tensor.dtype.kind not in "fc":
        return Ordered(ordered)
    counted = trace.emit("logical_not", trace.emit("isnan", rows))
    return Ordered(ordered, trace.emit("sum", trace.cast(counted, I64), axes=(last,)))


def _middle(trace: Trace, ordered: Ordered) -> Value:
    """The middle element of each row, or the mean of the two."""
    rows, lengths = ordered.rows, ordered.lengths
    if lengths is None:
        return middle(trace, rows, rows.tensor.shape[-1])
    two, one = trace.literal(2, I64), trace.literal(1, I64)
    high = trace.emit("floor_divide", lengths, two)
    low = trace.emit("floor_divide", trace.emit("sub", lengths, one), two)
    low = trace.emit("maximum", low, trace.literal(0, I64))  # where there is nothing but NaN
    pairs = [_mean_at(trace, rows, places) for places in ([high], [low, high])]
    odd = trace.emit("not_equal", trace.emit("remainder", lengths, two), trace.literal(0, I64))
    made: Value = trace.emit("select", odd, *pairs)
    return made


def _mean_at(trace: Trace, rows: Value, places: list[Value]) -> Value:
    last = rows.tensor.rank - 1
    columns = [expand(trace, place, (last,)) for place in places]
    chosen = columns[0] if len(columns) == 1 else trace.emit("concatenate", *columns, axis=last)
    made: Value = mean(fresh(trace, take_places(trace, rows, chosen)), axis=-1).value
    return made


FUNCTIONS: dict[Any, Any] = {
    np.nanmedian: nanmedian, np.nanpercentile: nanpercentile, np.nanquantile: nanquantile,
}  # fmt: skip
