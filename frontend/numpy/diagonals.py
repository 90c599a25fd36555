"""Diagonals and triangles of matrices.

Not here: eye and tri (creation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import maximum

from ..tracing.diagonal import Diagonal
from ..tracing.state import running
from ..tracing.tensor import TracedArray, fresh
from . import reductions
from .axes import one_axis, size_argument
from .creation import band
from .memory_order import ordered
from .movement import moveaxis, view_of
from .operands import value_of
from .words import reshape


def diagonal(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """np.diagonal: a view, read-only as NumPy's."""
    return _diagonal(a, offset, axis1, axis2)


def _diagonal(a: Any, offset: Any, axis1: int, axis2: int) -> TracedArray:
    """The diagonal as the last axis."""
    trace = running()
    array = view_of(a)
    if array.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    if one_axis(axis1, array.ndim) == one_axis(axis2, array.ndim):
        raise ValueError("axis1 and axis2 cannot be the same")
    moved = moveaxis(array, (axis1, axis2), (-2, -1))
    rows, columns = moved.tensor_type.shape[-2:]
    sizes = trace.sizes
    reason = "the length of a diagonal"
    by = size_argument(offset)
    first, second = (0, by) if sizes.at_least(by, 0, reason) else (-by, 0)
    height, width = rows - first, columns - second
    length = height if sizes.at_least(width, height, reason) else width
    if not sizes.at_least(length, 0, reason):
        length = 0
    made: TracedArray = moved.view_by(
        Diagonal(sizes.normal(length), first, second, writeable=False)
    )
    return made


def trace_(
    a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> Any:
    """np.trace"""
    return reductions.sum_(_diagonal(a, offset, axis1, axis2), -1, dtype, out)


def diag(v: Any, k: Any = 0) -> Any:
    """np.diag"""
    trace = running()
    value = value_of(v)
    if value.tensor.rank == 2:
        return diagonal(v, k)
    if value.tensor.rank != 1:
        raise ValueError("Input must be 1- or 2-d.")
    (count,) = value.tensor.shape
    offset = size_argument(k)
    above = maximum(offset, 0)
    below = maximum(-offset, 0)
    n = count + above + below
    spread = trace.emit("broadcast_to", reshape(trace, value, (1, count)), shape=(count, count))
    mask = band(trace, count, count, 0, "equal")
    block = trace.emit(
        "select", mask, spread, trace.literal(value.tensor.dtype.numpy.type(0), value.tensor.dtype)
    )
    if offset == 0:
        return fresh(trace, block)
    low = (below, above)
    high = (n - count - low[0], n - count - low[1])
    zero = trace.literal(value.tensor.dtype.numpy.type(0), value.tensor.dtype)
    return fresh(trace, trace.emit("pad", block, zero, low=low, high=high))


def diagflat(v: Any, k: Any = 0) -> Any:
    """np.diagflat"""
    return diag(np.ravel(v), k)


def _triangle(m: Any, k: Any, lower: bool) -> Any:
    trace = running()
    value = value_of(m)
    if value.tensor.rank < 2:
        value = trace.emit("broadcast_to", value, shape=(*value.tensor.shape, *value.tensor.shape))
    rows, columns = value.tensor.shape[-2:]
    offset = size_argument(k) if lower else size_argument(k) - 1
    mask = band(trace, rows, columns, offset, "less_equal" if lower else "greater")
    zero = trace.literal(value.tensor.dtype.numpy.type(0), value.tensor.dtype)
    made = fresh(trace, trace.emit("select", mask, value, zero))
    return ordered(made, [fresh(trace, mask), m])  # it is NumPy's where of such a mask


def tril(m: Any, k: Any = 0) -> Any:
    """np.tril"""
    return _triangle(m, k, True)


def triu(m: Any, k: Any = 0) -> Any:
    """np.triu"""
    return _triangle(m, k, False)


def _matrix_diagonal(x: Any, /, *, offset: Any = 0) -> Any:
    return diagonal(x, offset, -2, -1)


def _matrix_trace(x: Any, /, *, offset: Any = 0, dtype: Any = None) -> Any:
    return trace_(x, offset, -2, -1, dtype)


FUNCTIONS: dict[Any, Any] = {
    np.diagonal: diagonal, np.linalg.diagonal: _matrix_diagonal, np.trace: trace_,
    np.linalg.trace: _matrix_trace, np.diag: diag, np.diagflat: diagflat, np.tril: tril,
    np.triu: triu,
}  # fmt: skip

METHODS: dict[str, Any] = {"diagonal": diagonal, "trace": trace_}
