"""Decompositions of np.linalg, by the LAPACK that NumPy uses.

As NumPy does, everything is computed in double precision, and results of single precision are
rounded. Whether eigenvalues of a real matrix are real, NumPy decides by its content: that is
refused (np.linalg.eig).

Invariants: results of several arrays are NumPy's own named tuples.
Not here: solvers (solving.py), products (linear.py), the routines (library.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import minimum
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import C64, C128, F16, F32, F64, DType

from ..tracing.concrete import require
from ..tracing.integer import user_size
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import fresh
from .library import call_library
from .memory_order import in_order
from .operands import value_of


def named(name: str, *parts: Any) -> Any:
    """NumPy's tuple of results."""
    return getattr(np.linalg._linalg, name)(*parts)


def wide(trace: Trace, *items: Any) -> tuple[list[Value], DType, DType]:
    """Operands in double precision; the dtype of results, and that of their sizes."""
    values = [value_of(item) for item in items]
    for value in values:
        if value.tensor.dtype is F16:  # bfloat16 is to NumPy no inexact number, as integers
            raise TypeError("array type float16 is unsupported in linalg")
    dtypes = [value.tensor.dtype for value in values]
    single = all(dtype in (F32, C64) for dtype in dtypes)
    is_complex = any(dtype.is_complex for dtype in dtypes)
    wide = C128 if is_complex else F64
    given = (C64 if is_complex else F32) if single else wide
    return [trace.cast(v, wide) for v in values], given, F32 if single else F64


def stacked(value: Value) -> None:
    if value.tensor.rank < 2:
        raise np.linalg.LinAlgError(
            f"{value.tensor.rank}-dimensional array given. Array must be at least two-dimensional"
        )


def square(trace: Trace, value: Value) -> Value:
    stacked(value)
    rows, columns = value.tensor.shape[-2:]
    if not trace.sizes.equal(rows, columns, "a matrix is square"):
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    return value


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """np.linalg.cholesky"""
    trace = running()
    (value,), given, _ = wide(trace, a)
    name = "cholesky_upper" if upper else "cholesky"
    made = call_library(trace, name, [square(trace, value)])
    return fresh(trace, trace.cast(made, given))


def _triangle(uplo: Any, name: str) -> str:
    wanted = str(uplo).upper()
    if wanted not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return name if wanted == "L" else f"{name}_upper"


def eigh(a: Any, UPLO: Any = "L") -> Any:
    """np.linalg.eigh"""
    trace = running()
    (value,), given, real = wide(trace, a)
    w, v = call_library(trace, _triangle(UPLO, "eigh"), [square(trace, value)])
    parts = trace.cast(w, real), trace.cast(v, given)
    return named("EighResult", *[fresh(trace, part) for part in parts])


def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    """np.linalg.eigvalsh"""
    trace = running()
    (value,), _, real = wide(trace, a)
    made = call_library(trace, _triangle(UPLO, "eigvalsh"), [square(trace, value)])
    return fresh(trace, trace.cast(made, real))


def _complex_matrix(trace: Trace, a: Any, name: str) -> tuple[Value, DType]:
    (value,), given, _ = wide(trace, a)
    if not given.is_complex:
        raise fail(
            "TM110",
            f"np.linalg.{name} of a real matrix gives real or complex numbers as their values "
            "turn out",
            hint=f"np.linalg.{name}(a.astype(complex)) always gives complex ones; np.linalg."
            f"{'eigh' if name == 'eig' else 'eigvalsh'} is for symmetric matrices",
        )
    finite = value_of(np.all(np.isfinite(fresh(trace, square(trace, value)))))
    require(trace, finite, "TM275", "Array must not contain infs or NaNs")
    return value, given


def eig(a: Any) -> Any:
    """np.linalg.eig of a complex matrix"""
    trace = running()
    value, given = _complex_matrix(trace, a, "eig")
    parts = call_library(trace, "eig", [value])
    return named("EigResult", *[fresh(trace, trace.cast(part, given)) for part in parts])


def eigvals(a: Any) -> Any:
    """np.linalg.eigvals of a complex matrix"""
    trace = running()
    value, given = _complex_matrix(trace, a, "eigvals")
    return fresh(trace, trace.cast(call_library(trace, "eigvals", [value]), given))


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """np.linalg.svd"""
    if hermitian:
        return _svd_of_hermitian(a) if compute_uv else _values_of_hermitian(a)
    trace = running()
    (value,), given, real = wide(trace, a)
    stacked(value)
    count = minimum(*value.tensor.shape[-2:])
    if not compute_uv:
        return fresh(trace, trace.cast(call_library(trace, "svdvals", [value], p=count), real))
    name = "svd_full" if full_matrices else "svd"
    u, s, vh = call_library(trace, name, [value], p=count)
    parts = trace.cast(u, given), trace.cast(s, real), trace.cast(vh, given)
    return named("SVDResult", *[fresh(trace, part) for part in parts])


def _svd_of_hermitian(a: Any) -> Any:
    values, u = eigh(a)
    sign = np.copysign(1.0, values)
    size = abs(values)
    order = np.flip(np.argsort(size), -1)
    sign = np.take_along_axis(sign, order, axis=-1)
    size = np.take_along_axis(size, order, axis=-1)
    u = np.take_along_axis(u, order[..., None, :], axis=-1)
    vh = np.conjugate(np.swapaxes(u * sign[..., None, :], -1, -2))
    return named("SVDResult", u, size, vh)


def _values_of_hermitian(a: Any) -> Any:
    return np.flip(np.sort(abs(eigvalsh(a))), -1)


def svdvals(x: Any, /) -> Any:
    """np.linalg.svdvals"""
    return svd(x, compute_uv=False)


def qr(a: Any, mode: str = "reduced") -> Any:
    """np.linalg.qr"""
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    trace = running()
    (value,), given, _ = wide(trace, a)
    stacked(value)
    m, n = value.tensor.shape[-2:]
    tall = mode == "complete" and trace.sizes.at_least(m, n + 1, "a matrix has more rows")
    few = n if tall else minimum(m, n)
    raw, scales = call_library(trace, "qr_raw", [value], p=few)
    whole = in_order(fresh(trace, trace.cast(raw, given)), "K", a)  # NumPy overwrites a copy
    if mode == "raw":
        return np.swapaxes(whole, -1, -2), fresh(trace, trace.cast(scales, given))
    if mode == "r":
        return np.triu(whole[..., : user_size(trace, few), :])
    if tall:
        q, count = call_library(trace, "qr_complete", [raw, scales]), m
    else:
        q, count = call_library(trace, "qr_reduced", [raw, scales]), few
    above = np.triu(whole[..., : user_size(trace, count), :])
    return named("QRResult", fresh(trace, trace.cast(q, given)), above)


FUNCTIONS: dict[Any, Any] = {
    np.linalg.cholesky: cholesky, np.linalg.eigh: eigh, np.linalg.eigvalsh: eigvalsh,
    np.linalg.eig: eig, np.linalg.eigvals: eigvals, np.linalg.svd: svd,
    np.linalg.svdvals: svdvals, np.linalg.qr: qr,
}  # fmt: skip
