"""Looking up and counting: searchsorted, digitize, bincount, histogram.

What bincount gives back is as long as its largest number says, which is known only when it runs:
`minlength` has to be there, and a number beyond it is an error.

Invariants: comparisons are in the dtype that NumPy compares in; elements are counted in their
order, so sums of weights are the same bits at every call.
Not here: sorting (sorting.py), the search itself (ops/sorting.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, F64, I64, U8, U64, DType

from ..tracing.concrete import known, require
from ..tracing.integer import plain_size, user_size
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import fresh, result
from .axes import size_argument
from .operands import array_of, value_of
from .ranges import linspace
from .words import flip, full, reshape, slice_axis


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """np.searchsorted"""
    trace = running()
    row, wanted = value_of(a), value_of(v)
    if row.tensor.rank != 1:
        raise ValueError("object too deep for desired array")
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if sorter is not None:
        order = value_of(sorter)
        if order.tensor.dtype.kind not in "iu":
            raise TypeError("sorter must only contain integers")
        if order.tensor.rank != 1 or not trace.sizes.equal(
            order.tensor.shape[0], row.tensor.shape[0], "sorter has an index for each element"
        ):
            raise ValueError("sorter.size must equal a.size")
        row = trace.emit("gather", row, trace.cast(order, I64), axes=(0,))[0]
    return result(trace, _searched(trace, row, wanted, side))


def _searched(trace: Trace, row: Value, wanted: Value, side: str) -> Value:
    """Where elements go in a sorted row, compared in the dtype both have in common."""
    common = _common(row, wanted)
    if common.is_complex:
        raise fail("TM111", "searching among complex numbers is not supported")
    made: Value = trace.emit(
        "searchsorted", trace.cast(row, common), trace.cast(wanted, common), side=side
    )
    return made


def _common(a: Value, b: Value) -> DType:
    return require_dtype(np.promote_types(a.tensor.dtype.numpy, b.tensor.dtype.numpy))


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """np.digitize"""
    trace = running()
    wanted, edges = value_of(x), value_of(bins)
    if wanted.tensor.dtype.is_complex:
        raise TypeError("x may not be complex")
    if edges.tensor.rank != 1:
        raise ValueError("object of too small depth for desired array")
    count = edges.tensor.shape[0]
    side = "left" if right else "right"
    if not trace.sizes.at_least(count, 2, "bins that may go up or down"):
        return result(trace, _searched(trace, edges, wanted, side))
    up, down = (all_in_order(trace, edges, op) for op in ("less_equal", "greater_equal"))
    require(trace, trace.emit("logical_or", up, down), "TM258",
             "bins must be monotonically increasing or decreasing")  # fmt: skip
    row = trace.emit("select", up, edges, flip(trace, edges, (0,)))
    found = _searched(trace, row, wanted, side)
    behind = trace.emit("sub", trace.size_value(count), found)
    return result(trace, trace.emit("select", up, found, behind))


def all_in_order(trace: Trace, row: Value, op: str) -> Value:
    """Whether neighbours compare so, all of them."""
    rest = row.tensor.shape[0] - 1
    pair = [slice_axis(trace, row, 0, start, rest) for start in (0, 1)]
    made: Value = trace.emit("all", trace.emit(op, *pair), axes=(0,))
    return made


def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """np.bincount"""
    trace = running()
    value = value_of(x)
    if value.tensor.rank != 1:
        how = "too deep" if value.tensor.rank else "of too small depth"
        raise ValueError(f"object {how} for desired array")
    if minlength is None:
        raise TypeError("use 0 instead of None for minlength")
    length = size_argument(minlength)
    if isinstance(length, int) and length < 0:
        raise ValueError("'minlength' must not be negative")
    empty = value.tensor.shape[0] == 0
    if not np.can_cast(value.tensor.dtype.numpy, np.int64, "safe") and not empty:
        raise TypeError(
            f"Cannot cast array data from {value.tensor.dtype.numpy!r} to dtype('int64') "
            "according to the rule 'safe'"
        )
    places = trace.cast(value, I64)
    content = known(trace, places)
    if content is not None and content.size:
        length = max(int(content.max()) + 1, length) if isinstance(length, int) else length
    elif length == 0 and not empty:
        raise fail(
            "TM112",
            "the length of what np.bincount gives back is known only at run time",
            hint="give minlength=n, with all numbers below n",
        )
    return fresh(trace, _counted(trace, places, weights_of(trace, value, weights), length))


def weights_of(trace: Trace, value: Value, weights: Any) -> Value | None:
    if weights is None:
        return None
    made = trace.cast(value_of(weights), F64)
    if made.tensor.rank != 1 or not trace.sizes.equal(
        made.tensor.shape[0], value.tensor.shape[0], "each number has a weight"
    ):
        raise ValueError("The weights and list don't have the same length.")
    return made


def _counted(trace: Trace, places: Value, weights: Value | None, length: Size) -> Value:
    """How often, or with what weight, each place below `length` is there; others fail the call."""
    if places.tensor.shape[0] == 0:
        return full(trace, (length,), 0, I64 if weights is None else weights.tensor.dtype)
    low, high = trace.literal(0, I64), trace.size_value(length)
    inside = trace.emit(
        "logical_and",
        trace.emit("greater_equal", places, low), trace.emit("less", places, high),
    )  # fmt: skip
    require(trace, trace.emit("all", inside, axes=(0,)), "TM257",
             "np.bincount counts numbers from 0 to minlength - 1")  # fmt: skip
    return counted_at(trace, trace.emit("select", inside, places, low), length, weights)


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """np.histogram"""
    trace = running()
    value = _flat_numbers(trace, a)
    heavy, of_bools = None, False
    if weights is not None:
        heavy = value_of(weights)
        if not _same_shape(trace, heavy, value_of(a)):
            raise ValueError("weights should have the same shape as a.")
        heavy = reshape(trace, heavy, (product(heavy.tensor.shape),))
        if of_bools := heavy.tensor.dtype is BOOL:
            # to edges NumPy gives sums, integers that it cannot add to an array of bools
            if isinstance(bins, list | tuple) or np.ndim(bins):
                raise fail("TM248", "np.histogram takes no bools as weights of bins given by edges",
                           hint="give the weights as integers")  # fmt: skip
            heavy = trace.cast(heavy, I64)
    edges = _edges(trace, value, bins, range)
    places = (_uniform if np.ndim(bins) == 0 else bin_numbers)(trace, value, edges)
    found = _in_bins(trace, edges, places, heavy)
    counts = fresh(trace, trace.cast(found, BOOL) if of_bools else found)
    given = fresh(trace, edges)
    if density:
        widths = np.diff(given).astype(float)
        return counts / widths / counts.sum(), given
    return counts, given


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """np.histogram_bin_edges"""
    trace = running()
    return fresh(trace, _edges(trace, _flat_numbers(trace, a), bins, range))


def _flat_numbers(trace: Trace, a: Any) -> Value:
    value = value_of(a)
    if value.tensor.dtype is BOOL:
        value = trace.cast(value, U8)
    return reshape(trace, value, (product(value.tensor.shape),))


def _same_shape(trace: Trace, a: Value, b: Value) -> bool:
    return a.tensor.rank == b.tensor.rank and all(
        trace.sizes.equal(m, n, "each number has a weight")
        for m, n in zip(a.tensor.shape, b.tensor.shape)
    )


def _in_bins(trace: Trace, edges: Value, places: Value, weights: Value | None) -> Value:
    """How many elements each bin has; bins have their left edge, the last one both."""
    count = edges.tensor.shape[0] - 1
    made = counted_at(trace, places, count + 2, weights)
    return slice_axis(trace, made, 0, 1, count)


def _uniform(trace: Trace, value: Value, edges: Value) -> Value:
    """`bin_numbers` for bins of one width, computed instead of searched, as NumPy does: roundings
    may lead to a neighbour, which the edges tell."""
    if value.tensor.dtype.kind == "c" or value.tensor.dtype in (I64, U64):
        return bin_numbers(trace, value, edges)
    emit = trace.emit
    count = trace.size_value(edges.tensor.shape[0] - 1)
    ends = [slice_axis(trace, edges, 0, at, 1) for at in (0, edges.tensor.shape[0] - 1)]
    first, last = (trace.cast(reshape(trace, end, ()), F64) for end in ends)
    x, bounds = trace.cast(value, F64), trace.cast(edges, F64)
    one, most = trace.literal(1, I64), emit("sub", count, trace.literal(1, I64))
    share = emit("div", emit("sub", x, first), emit("sub", last, first))
    near = emit("mul", share, trace.cast(count, F64))
    near = emit("fmin", emit("fmax", near, trace.literal(0.0, F64)), trace.cast(most, F64))
    place = trace.cast(near, I64)
    below = emit("less", x, emit("gather", bounds, place, axes=(0,))[0])
    place = emit("sub", place, trace.cast(below, I64))
    above = emit("gather", bounds, emit("add", place, one), axes=(0,))[0]
    above = emit("logical_and", emit("greater_equal", x, above), emit("less", place, most))
    place = emit("add", emit("add", place, trace.cast(above, I64)), one)
    behind = emit("select", emit("less_equal", x, last), place, emit("add", count, one))
    made: Value = emit("select", emit("less", x, first), trace.literal(0, I64), behind)
    return made


def bin_numbers(trace: Trace, value: Value, edges: Value) -> Value:
    """The bin of each element, from 1; before the first one 0, behind the last one their number
    and 1."""
    common = _common(value, edges)
    elements, edges = trace.cast(value, common), trace.cast(edges, common)
    last = reshape(trace, slice_axis(trace, edges, 0, edges.tensor.shape[0] - 1, 1), ())
    found = trace.emit("searchsorted", edges, elements, side="right")
    made: Value = trace.emit("sub", found, trace.cast(trace.emit("equal", elements, last), I64))
    return made


def counted_at(trace: Trace, places: Value, length: Size, weights: Value | None) -> Value:
    """How often, or with what weight, each place below `length` is there."""
    dtype = I64 if weights is None else weights.tensor.dtype
    start = full(trace, (length,), 0, dtype)
    one = trace.literal(1, I64) if weights is None else weights
    if weights is None:
        one = trace.emit("broadcast_to", one, shape=places.tensor.shape)
    made: Value = trace.emit("scatter_add", start, one, places, axes=(0,))[0]
    return made


def _edges(trace: Trace, value: Value, bins: Any, range: Any) -> Value:
    if isinstance(bins, str):
        raise fail(
            "TM112",
            f"the number of bins that bins={bins!r} chooses is known only at run time",
            hint="give the number of bins, or their edges",
        )
    bins = array_of(bins) if isinstance(bins, list | tuple) else bins
    if np.ndim(bins) > 1:
        raise ValueError("`bins` must be 1d, when an array")
    if np.ndim(bins) == 1:
        edges = value_of(bins)
        if trace.sizes.at_least(edges.tensor.shape[0], 2, "there is a bin"):
            require(trace, all_in_order(trace, edges, "less_equal"), "TM258",
                     "`bins` must increase monotonically, when an array")  # fmt: skip
        return edges
    try:
        count = plain_size(bins)
    except TypeError:
        raise TypeError("`bins` must be an integer, a string, or an array") from None
    if not trace.sizes.at_least(count, 1, "there is a bin"):
        raise ValueError("`bins` must be positive, when an integer")
    first, last, kind = outer_edges(trace, value, range)
    made: Value = linspace(first, last, user_size(trace, count + 1), dtype=kind).value
    return made


def outer_edges(trace: Trace, value: Value, range: Any) -> tuple[Any, Any, Any]:
    """The outer edges, and the dtype of all."""
    own = value.tensor.dtype.numpy
    if range is not None:
        first, last = range
        if first > last:
            raise ValueError("max must be larger than min in range parameter.")
        if not (np.isfinite(first) and np.isfinite(last)):
            raise ValueError(f"supplied range of [{first}, {last}] is not finite")
        kind = _inexact(np.result_type(first, last, own))
        return (first - 0.5, last + 0.5, kind) if first == last else (first, last, kind)
    if not trace.sizes.at_least(value.tensor.shape[0], 1, "there is an element"):
        kind = _inexact(np.result_type(0, 1, own))
        return 0, 1, kind
    kind = _inexact(np.result_type(own, own))
    ends = [trace.emit(op, value, axes=(0,)) for op in ("min", "max")]
    if value.tensor.dtype.is_float:
        fine = trace.emit("logical_and", *[trace.emit("isfinite", end) for end in ends])
        require(trace, fine, "TM258", "the range of the elements is not finite")
    wide = [trace.cast(end, require_dtype(kind)) for end in ends]
    alone = trace.emit("equal", *wide)
    half = trace.literal(0.5, require_dtype(kind))
    low = trace.emit("select", alone, trace.emit("sub", wide[0], half), wide[0])
    high = trace.emit("select", alone, trace.emit("add", wide[1], half), wide[1])
    return result(trace, low), result(trace, high), kind


def _inexact(kind: Any) -> Any:
    return np.result_type(kind, float) if np.issubdtype(kind, np.integer) else kind


FUNCTIONS = {
    np.searchsorted: searchsorted,
    np.digitize: digitize,
    np.bincount: bincount,
    np.histogram: histogram,
    np.histogram_bin_edges: histogram_bin_edges,
}
METHODS = {"searchsorted": searchsorted}
