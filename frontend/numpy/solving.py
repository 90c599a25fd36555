"""Solvers of np.linalg and what goes with them, by the LAPACK that NumPy uses.

Whether there are residuals of least squares, NumPy decides by the rank of the matrix: here a matrix
without full rank is an error of the call (np.linalg.lstsq).

Not here: decompositions (decompositions.py), products (linear.py), the routines (library.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import minimum, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import F64, I64

from ..tracing.concrete import require
from ..tracing.integer import user_size
from ..tracing.state import Trace, running
from ..tracing.tensor import fresh, result
from .axes import reshape_argument
from .creation import asarray
from .decompositions import named, square, svd, wide
from .library import call_library
from .operands import value_of
from .words import full, reshape, slice_axis, transpose

# What NumPy takes for an argument that is not given.
_MISSING: Any = vars(np)["_NoValue"]


def solve(a: Any, b: Any) -> Any:
    """np.linalg.solve"""
    trace = running()
    (left, right), given, _ = wide(trace, a, b)
    square(trace, left)
    if right.tensor.rank == 1:
        column = reshape(trace, right, (*right.tensor.shape, 1))
        made = _solved(trace, left, column)
        made = reshape(trace, made, made.tensor.shape[:-1])
    else:
        made = _solved(trace, left, right)
    return fresh(trace, trace.cast(made, given))


def _solved(trace: Trace, left: Value, right: Value) -> Value:
    rows = left.tensor.shape[-1]
    if right.tensor.rank < 2:
        raise ValueError(
            f"solve: Input operand 1 does not have enough dimensions (has {right.tensor.rank}, "
            "gufunc core with signature (m,m),(m,n)->(m,n) requires 2)"
        )
    if not trace.sizes.equal(rows, right.tensor.shape[-2], "a system has a row for each equation"):
        raise ValueError(
            "solve: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
            f"(m,m),(m,n)->(m,n) (size {right.tensor.shape[-2]} is different from {rows})"
        )
    made: Value = call_library(trace, "solve", [left, right])
    return made


def inv(a: Any) -> Any:
    """np.linalg.inv"""
    trace = running()
    (value,), given, _ = wide(trace, a)
    made = call_library(trace, "inv", [square(trace, value)])
    return fresh(trace, trace.cast(made, given))


def det(a: Any) -> Any:
    """np.linalg.det"""
    trace = running()
    (value,), given, _ = wide(trace, a)
    made = call_library(trace, "det", [square(trace, value)])
    return result(trace, trace.cast(made, given))


def slogdet(a: Any) -> Any:
    """np.linalg.slogdet"""
    trace = running()
    (value,), given, real = wide(trace, a)
    sign, log = call_library(trace, "slogdet", [square(trace, value)])
    parts = trace.cast(sign, given), trace.cast(log, real)
    return named("SlogdetResult", *[result(trace, part) for part in parts])


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """np.linalg.lstsq of one problem. With more rows than columns NumPy gives residuals where the
    rank is full and none where it is not: here that is an error of the call."""
    trace = running()
    (left, right), given, real = wide(trace, a, b)
    flat = right.tensor.rank == 1
    if flat:
        right = reshape(trace, right, (*right.tensor.shape, 1))
    for value in (left, right):
        if value.tensor.rank != 2:
            raise np.linalg.LinAlgError(
                f"{value.tensor.rank}-dimensional array given. Array must be two-dimensional"
            )
    m, n = left.tensor.shape
    if not trace.sizes.equal(m, right.tensor.shape[0], "a system has a row for each equation"):
        raise np.linalg.LinAlgError("Incompatible dimensions")
    tall = trace.sizes.at_least(m, n + 1, "a matrix has more rows")
    if rcond is None:
        most = trace.cast(trace.size_value(m if tall else n), F64)
        cut = trace.emit("mul", most, trace.literal(float(np.finfo(np.float64).eps), F64))
    else:
        cut = trace.cast(value_of(rcond), F64)
    x, rest, rank, values = _least_squares(trace, left, right, cut)
    if tall:
        full = trace.emit("equal", trace.cast(rank, I64), trace.size_value(n))
        require(trace, full, "TM274", "the matrix has no full rank")
    else:
        rest = slice_axis(trace, rest, 0, 0, 0)
    if flat:
        x = reshape(trace, x, x.tensor.shape[:-1])
    parts = trace.cast(x, given), trace.cast(rest, real)
    return (
        *[fresh(trace, part) for part in parts],
        result(trace, rank),
        fresh(trace, trace.cast(values, real)),
    )


def _least_squares(trace: Trace, left: Value, right: Value, cut: Value) -> Sequence[Value]:
    """LAPACK's four results. It takes no right side without columns, and of a matrix without
    rows it leaves the solution as it was."""
    (m, n), columns = left.tensor.shape, right.tensor.shape[1]
    some = trace.sizes.at_least(columns, 1, "a system has a right side")
    given = right if some else full(trace, (m, 1), 0, right.tensor.dtype)
    x, rest, *others = call_library(trace, "lstsq", [left, given, cut], p=minimum(m, n))
    if not trace.sizes.at_least(m, 1, "a matrix has a row"):
        x = full(trace, x.tensor.shape, 0, x.tensor.dtype)
    if not some:
        x, rest = slice_axis(trace, x, 1, 0, 0), slice_axis(trace, rest, 0, 0, 0)
    return x, rest, *others


def cond(x: Any, p: Any = None) -> Any:
    """np.linalg.cond"""
    trace = running()
    array = asarray(x)
    if not _has_elements(array):
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        s = svd(array, compute_uv=False)
        r = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        (value,), given, _ = wide(trace, array)
        inverse = call_library(trace, "inv_or_nan", [square(trace, value)])
        inverse_ = fresh(trace, trace.cast(inverse, given))
        axes = (-2, -1)
        r = np.linalg.norm(array, p, axis=axes) * np.linalg.norm(inverse_, p, axis=axes)
    whole = ~np.isnan(array).any(axis=(-2, -1))
    return np.where(np.isnan(r) & whole, np.inf, r)[()]


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """np.linalg.matrix_rank"""
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    array = asarray(A)
    if array.ndim < 2:
        some = np.any(array != 0).astype(int)
        return running().dispatch.python_number(value_of(some))
    s = svd(array, compute_uv=False, hermitian=hermitian)
    if tol is None:
        if rtol is None:
            rtol = _most(array) * np.finfo(s.dtype).eps
        else:
            rtol = asarray(rtol)[..., None]
        limit = s.max(axis=-1, keepdims=True, initial=0) * rtol
    else:
        limit = asarray(tol)[..., None]
    return np.count_nonzero(s > limit, axis=-1)


def _most(array: Any) -> Any:
    """The larger of a matrix's sizes."""
    trace = running()
    m, n = value_of(array).tensor.shape[-2:]
    return user_size(trace, m if trace.sizes.at_least(m, n, "a matrix has more rows") else n)


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = _MISSING) -> Any:
    """np.linalg.pinv"""
    array = asarray(a)
    if rcond is not None and rtol is not _MISSING:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    if rcond is None:
        if rtol is _MISSING:
            rcond = 1e-15
        elif rtol is None:
            rcond = _most(array) * np.finfo(array.dtype).eps
        else:
            rcond = rtol
    if not _has_elements(array):
        return np.swapaxes(array, -1, -2)
    u, s, vt = svd(np.conjugate(array), full_matrices=False, hermitian=hermitian)
    cutoff = asarray(rcond)[..., None] * np.max(s, axis=-1, keepdims=True)
    large = s > cutoff
    s = np.where(large, 1 / np.where(large, s, 1), 0).astype(s.dtype)
    return np.matmul(np.swapaxes(vt, -1, -2), s[..., None] * np.swapaxes(u, -1, -2))


def _has_elements(array: Any) -> bool:
    """Whether a matrix has a row and a column."""
    sizes = running().sizes
    return all(
        sizes.at_least(size, 1, "a matrix has elements")
        for size in value_of(array).tensor.shape[-2:]
    )


def tensorinv(a: Any, ind: int = 2) -> Any:
    """np.linalg.tensorinv"""
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    trace = running()
    value = value_of(a)
    shape = value.tensor.shape
    count = product(shape[ind:])
    flat = fresh(trace, reshape(trace, value, reshape_argument(trace, shape, (count, -1))))
    made = inv(flat)
    return fresh(trace, reshape(trace, made.value, (*shape[ind:], *shape[:ind])))


def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Any:
    """np.linalg.tensorsolve"""
    trace = running()
    left, right = value_of(a), value_of(b)
    rank = left.tensor.rank
    if axes is not None:
        order = list(range(rank))
        for axis in axes:
            order.remove(axis)
            order.insert(rank, axis)
        left = transpose(trace, left, order)
    shape = left.tensor.shape[right.tensor.rank :]
    count = product(shape)
    if not trace.sizes.equal(product(left.tensor.shape), count * count, "a tensor is square"):
        raise np.linalg.LinAlgError(
            "Input arrays must satisfy the requirement "
            "prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
        )
    made = solve(
        fresh(trace, reshape(trace, left, (count, count))),
        fresh(trace, reshape(trace, right, (count,))),
    )
    return fresh(trace, reshape(trace, made.value, shape))


FUNCTIONS: dict[Any, Any] = {
    np.linalg.solve: solve, np.linalg.inv: inv, np.linalg.det: det, np.linalg.slogdet: slogdet,
    np.linalg.lstsq: lstsq, np.linalg.cond: cond, np.linalg.matrix_rank: matrix_rank,
    np.linalg.pinv: pinv, np.linalg.tensorinv: tensorinv, np.linalg.tensorsolve: tensorsolve,
}  # fmt: skip
