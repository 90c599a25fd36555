"""Index arrays, and what they choose: ix_, unravel_index, triu_indices, choose, ...

Invariants: sizes stay open: what is out of bounds fails the call, not the trace, unless it is
known then.
Not here: subscripts (indexing.py), index arrays of a size that is data (known_only.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, floor_divide, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import I64

from ..tracing.concrete import require
from ..tracing.integer import user_size
from ..tracing.state import Trace, running
from ..tracing.tensor import fresh, result
from .axes import shape_argument, size_argument
from .creation import asarray
from .indexing import nonzero
from .operands import common_dtype, value_of
from .searching import counted_at
from .ufuncs import deliver
from .words import broadcast_shapes, broadcast_to, sequence, slice_axis

_MODES = ("raise", "wrap", "clip")
_MOST_CHOICES = 64


def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """np.choose"""
    trace = running()
    _check_mode(mode)
    items = list(choices)
    if not 0 < len(items) <= _MOST_CHOICES:
        raise ValueError(f"Need at least 1 and at most {_MOST_CHOICES} array objects.")
    index = value_of(a)
    if not np.can_cast(index.tensor.dtype.numpy, np.int64, "safe"):
        raise TypeError(
            f"Cannot cast array data from {index.tensor.dtype.numpy!r} to dtype('int64') "
            "according to the rule 'safe'"
        )
    index = _within(
        trace, trace.cast(index, I64), len(items), mode, "invalid entry in choice array"
    )
    dtype = common_dtype(*items)
    values = [trace.cast(value_of(item), dtype) for item in items]
    shape = broadcast_shapes(trace, [index.tensor.shape, *(v.tensor.shape for v in values)])
    made = broadcast_to(trace, values[0], shape)
    for i, value in enumerate(values[1:], start=1):
        chosen = trace.emit("equal", index, trace.literal(i, I64))
        made = trace.emit("select", chosen, value, made)
    return deliver(trace, made, out, True, "unsafe", "choose")


def _check_mode(mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")


def _within(trace: Trace, index: Value, extent: Size, mode: str, problem: str) -> Value:
    """Indices from 0 to extent - 1, by the mode."""
    _check_mode(mode)
    low, high = trace.literal(0, I64), trace.size_value(extent)
    if mode == "wrap":
        wrapped: Value = trace.emit("remainder", index, high)
        return wrapped
    if mode == "clip":
        last = trace.size_value(extent - 1)
        clipped: Value = trace.emit("minimum", trace.emit("maximum", index, low), last)
        return clipped
    ends = (trace.emit("greater_equal", index, low), trace.emit("less", index, high))
    inside = trace.emit("logical_and", *ends)
    axes = tuple(range(inside.tensor.rank))
    require(trace, trace.emit("all", inside, axes=axes) if axes else inside, "TM265", problem)
    return index


def ix_(*args: Any) -> Any:
    """np.ix_"""
    made = []
    for place, item in enumerate(args):
        row = asarray(np.asarray(item) if isinstance(item, range) else item)
        if row.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if row.dtype.kind == "f" and isinstance(item, list | tuple) and not item:
            row = row.astype(np.intp)
        if row.dtype.kind == "b":
            (row,) = nonzero(row)
        made.append(np.reshape(row, (1,) * place + (-1,) + (1,) * (len(args) - place - 1)))
    return tuple(made)


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """np.ravel_multi_index"""
    trace = running()
    sizes = shape_argument(dims)
    columns = [_integers(trace, item) for item in multi_index]
    if len(columns) != len(sizes):
        raise ValueError(f"parameter multi_index must be a sequence of length {len(sizes)}")
    modes = mode if isinstance(mode, list | tuple) else (mode,)
    if len(modes) == 1:
        modes = tuple(modes) * len(sizes)
    if len(modes) != len(sizes):
        raise ValueError("wrong number of modes: one, or one for each dimension")
    total: Value = trace.literal(0, I64)
    for column, size, step, how in zip(columns, sizes, _steps(sizes, order), modes):
        place = _within(trace, column, size, how, "invalid entry in coordinates array")
        total = trace.emit("add", total, trace.emit("mul", place, trace.size_value(step)))
    return result(trace, total)


def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """np.unravel_index"""
    trace = running()
    sizes = shape_argument(shape)
    if isinstance(indices, list | tuple) and not len(indices):
        raise TypeError("indices must be integral: the provided empty sequence was inferred as "
                        "float. Wrap it with 'np.array(indices, dtype=np.intp)'")  # fmt: skip
    total = product(sizes)
    problem = f"an index is out of bounds for array with size {total}"
    place = _within(trace, _integers(trace, indices), total, "raise", problem)
    made = []
    for size, step in zip(sizes, _steps(sizes, order)):
        above = trace.emit("floor_divide", place, trace.size_value(step))
        made.append(result(trace, trace.emit("remainder", above, trace.size_value(size))))
    return tuple(made)


def _integers(trace: Trace, item: Any) -> Value:
    value = value_of(item)
    if value.tensor.dtype.kind not in "biu":
        raise TypeError("only int indices permitted")
    return trace.cast(value, I64)


def _steps(sizes: tuple[Size, ...], order: str) -> list[Size]:
    """How far apart neighbours along each axis are."""
    if order not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    if order == "F":
        return [product(sizes[:axis]) for axis in range(len(sizes))]
    return [product(sizes[axis + 1 :]) for axis in range(len(sizes))]


def diag_indices(n: Any, ndim: int = 2) -> Any:
    """np.diag_indices"""
    trace = running()
    return (fresh(trace, sequence(trace, size_argument(n))),) * ndim


def diag_indices_from(arr: Any) -> Any:
    """np.diag_indices_from"""
    trace = running()
    shape = value_of(arr).tensor.shape
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if not all(trace.sizes.equal(shape[0], n, "the axes of a diagonal") for n in shape[1:]):
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(user_size(trace, trace.sizes.normal(shape[0])), len(shape))


def tril_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """np.tril_indices"""
    rows, columns, offset = (size_argument(size) for size in (n, n if m is None else m, k))
    return _triangle(rows, columns, offset, lower=True)


def triu_indices(n: Any, k: Any = 0, m: Any = None) -> Any:
    """np.triu_indices"""
    rows, columns, offset = (size_argument(size) for size in (n, n if m is None else m, k))
    return _triangle(rows, columns, offset - 1, lower=False)


def tril_indices_from(arr: Any, k: Any = 0) -> Any:
    """np.tril_indices_from"""
    return tril_indices(*_matrix(arr, k))


def triu_indices_from(arr: Any, k: Any = 0) -> Any:
    """np.triu_indices_from"""
    return triu_indices(*_matrix(arr, k))


def _matrix(arr: Any, k: Any) -> tuple[Any, Any, Any]:
    if np.ndim(arr) != 2:
        raise ValueError("input array must be 2-d")
    rows, columns = np.shape(arr)
    return rows, k, columns


def _triangle(rows: Size, columns: Size, k: Size, lower: bool) -> Any:
    """Rows and columns of the elements up to the k-th diagonal, or of those behind it."""
    trace = running()
    count = _below(trace, rows, columns, k)
    total = trace.sizes.normal(count if lower else rows * columns - count)
    place = sequence(trace, total)
    row = sequence(trace, rows)
    ends = trace.emit("add", row, trace.size_value(k + 1))
    ends = trace.emit("minimum", ends, trace.size_value(columns))
    ends = trace.emit("maximum", ends, trace.literal(0, I64))  # columns of a row in the lower part
    lengths = ends if lower else trace.emit("sub", trace.size_value(columns), ends)
    until = trace.emit("cumsum", lengths, axis=0)
    ended = counted_at(trace, until, total + 1, None)  # rows that end before a place
    at = trace.emit("cumsum", slice_axis(trace, ended, 0, 0, total), axis=0)
    before = trace.emit("sub", until, lengths)
    begins = before if lower else trace.emit("sub", before, ends)
    first = trace.emit("gather", begins, at, axes=(0,))[0]
    return fresh(trace, at), fresh(trace, trace.emit("sub", place, first))


def _below(trace: Trace, rows: Size, columns: Size, k: Size) -> Size:
    """How many elements are on the k-th diagonal or below it: a row i has i + k + 1 of them, but
    none where that is negative, and `columns` at most."""

    def up_to(last: Size) -> Size:
        """1 + 2 + ... + last"""
        if not trace.sizes.at_least(last, 1, "a triangle has a row"):
            return 0
        return floor_divide(last * (last + 1), 2)

    whole = up_to(rows + k) - up_to(k)
    return whole - up_to(rows + k - columns) + up_to(k - columns)


FUNCTIONS: dict[Any, Any] = {
    np.choose: choose, np.ix_: ix_, np.ravel_multi_index: ravel_multi_index,
    np.unravel_index: unravel_index, np.diag_indices: diag_indices,
    np.diag_indices_from: diag_indices_from, np.tril_indices: tril_indices,
    np.tril_indices_from: tril_indices_from, np.triu_indices: triu_indices,
    np.triu_indices_from: triu_indices_from,
}  # fmt: skip
