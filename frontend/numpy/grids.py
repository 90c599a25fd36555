"""Histograms over several axes: histogram2d, histogramdd.

Invariants: an element is counted in the order it has, so sums of weights are NumPy's bits.
Not here: one axis (searching.py).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, F64, U8

from ..tracing.concrete import require
from ..tracing.state import Trace, running
from ..tracing.tensor import fresh
from .creation import asarray
from .operands import value_of
from .ranges import linspace
from .searching import all_in_order, bin_numbers, counted_at, outer_edges, weights_of
from .words import reshape, slice_axis


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """np.histogram2d"""
    x, y = asarray(x), asarray(y)
    if x.shape[0] != y.shape[0]:
        raise ValueError("x and y must have the same length.")
    if _is_row(bins) and _count(bins) not in (1, 2):  # the edges of both
        bins = [asarray(bins)] * 2
    counts, edges = histogramdd([x, y], bins, range, density, weights)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    """np.histogramdd"""
    trace = running()
    columns = _columns(trace, sample)
    rank = len(columns)
    if not _is_row(bins):
        bins = [bins] * rank
    if _count(bins) != rank:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_edges(trace, *row, place) for place, row in enumerate(zip(columns, bins, ranges))]
    heavy = None if weights is None else weights_of(trace, columns[0], weights)
    counts: Any = fresh(trace, _counts(trace, columns, edges, heavy))
    given = [fresh(trace, edge) for edge in edges]
    if density:
        total: Any = np.sum(counts)
        for place, edge in enumerate(given):
            counts = counts / np.reshape(np.diff(edge), (-1,) + (1,) * (rank - place - 1))
        counts = counts / total
    return counts, given


def _is_row(bins: Any) -> bool:
    return isinstance(bins, list | tuple) or np.ndim(bins) > 0


def _count(bins: Any) -> Any:
    return len(bins) if isinstance(bins, list | tuple) else np.shape(bins)[0]


def _columns(trace: Trace, sample: Any) -> list[Value]:
    """The numbers along each axis of the histogram."""
    if isinstance(sample, list | tuple):
        columns = np.atleast_2d(asarray(sample))  # a list has one entry for each axis
    else:
        array = asarray(sample)
        columns = array.T if array.ndim == 2 else np.atleast_2d(array)
    if columns.ndim != 2:
        raise ValueError("sample of a histogram must be of rank 2 at most")
    made = [value_of(column) for column in columns]
    return [trace.cast(v, U8) if v.tensor.dtype is BOOL else v for v in made]


def _edges(trace: Trace, value: Value, bins: Any, range: Any, place: int) -> Value:
    if np.ndim(bins) > 1:
        raise ValueError(f"`bins[{place}]` must be a scalar or 1d array")
    if np.ndim(bins) == 1:
        edges = value_of(bins)
        if trace.sizes.at_least(edges.tensor.shape[0], 2, "there is a bin"):
            require(trace, all_in_order(trace, edges, "less_equal"), "TM258",
                    f"`bins[{place}]` must be monotonically increasing, when an array")  # fmt: skip
        return edges
    try:
        count = operator.index(bins)
    except TypeError:
        raise TypeError(f"`bins[{place}]` must be an integer, when a scalar") from None
    if count < 1:
        raise ValueError(f"`bins[{place}]` must be positive, when an integer")
    first, last, _ = outer_edges(trace, value, range)
    made: Value = linspace(first, last, count + 1).value
    return made


def _counts(trace: Trace, columns: list[Value], edges: list[Value], weights: Value | None) -> Value:
    """How many elements each cell has; a bin more at both ends takes what is outside."""
    sizes: list[Size] = [edge.tensor.shape[0] + 1 for edge in edges]
    place: Value | None = None
    for column, edge, size in zip(columns, edges, sizes):
        number = bin_numbers(trace, column, edge)
        if place is not None:
            before = trace.emit("mul", place, trace.size_value(size))
            number = trace.emit("add", before, number)
        place = number
    assert place is not None
    made = reshape(trace, counted_at(trace, place, product(tuple(sizes)), weights), sizes)
    for axis, size in enumerate(sizes):
        made = slice_axis(trace, made, axis, 1, size - 2)
    return trace.cast(made, F64)


FUNCTIONS: dict[Any, Any] = {np.histogram2d: histogram2d, np.histogramdd: histogramdd}
