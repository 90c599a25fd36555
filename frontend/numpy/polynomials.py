"""Polynomials as rows of coefficients, the highest power first: polyadd, polyder, poly, ...

Invariants: fits are by the LAPACK that NumPy uses, in its steps.
Not here: what depends on which coefficients are zero (known_only.py), values (signals.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tracemill.compiler.dims import minimum
from tracemill.compiler.types import F64

from ..tracing.state import fail, require_dtype, running
from ..tracing.tensor import fresh
from .creation import asarray
from .library import call_library
from .operands import value_of
from .ranges import arange


def _combined(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """polyadd, polysub: the shorter one begins with zeros."""

    def handler(a1: Any, a2: Any) -> Any:
        first, second = np.atleast_1d(asarray(a1)), np.atleast_1d(asarray(a2))
        more = second.shape[0] - first.shape[0]
        if more > 0:
            first = np.concatenate((np.zeros_like(first, shape=(more,)), first))
        elif more < 0:
            second = np.concatenate((np.zeros_like(second, shape=(-more,)), second))
        return function(first, second)

    return handler


def polyder(p: Any, m: Any = 1) -> Any:
    """np.polyder"""
    times = operator.index(m)
    if times < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = _row(p)
    for _ in range(times):
        p = p[:-1] * arange(p.shape[0] - 1, 0, -1)
    return p


def polyint(p: Any, m: Any = 1, k: Any = None) -> Any:
    """np.polyint"""
    times = operator.index(m)
    if times < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = np.atleast_1d(asarray(np.zeros(times) if k is None else k))
    given = operator.index(constants.shape[0])
    if given == 1 and times > 1:
        constants = constants * np.ones(times)
    elif given < times:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    p = asarray(p) if times == 0 else _row(p)
    for i in range(times):
        rising = np.true_divide(p, arange(p.shape[0], 0, -1))
        p = np.concatenate((rising, constants[i : i + 1]))
    return p


def poly(seq_of_zeros: Any) -> Any:
    """np.poly of real roots: a factor for each, so their number is fixed."""
    roots = np.atleast_1d(asarray(seq_of_zeros))
    if roots.ndim != 1:
        raise fail("TM111", "np.poly of a matrix is not supported", hint="it needs eigenvalues")
    if roots.dtype.kind == "c":
        raise fail("TM111", "np.poly of complex roots is not supported",
                   hint="whether its result is real is data: call it outside")  # fmt: skip
    dtype = np.dtype(np.mintypecode([roots.dtype.char]))
    count = operator.index(roots.shape[0])
    if not count:
        return 1.0
    made = np.ones_like(roots, dtype=dtype, shape=(1,))
    zero = np.zeros_like(made)
    for i in range(count):
        lower = made * roots[i].astype(dtype)
        made = np.concatenate((made, zero)) - np.concatenate((zero, lower))
    return made


def polyfit(
    x: Any,
    y: Any,
    deg: Any,
    rcond: Any = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    """np.polyfit, without NumPy's warning where the points do not determine the polynomial."""
    order = int(deg) + 1
    x, y = asarray(x) + 0.0, asarray(y) + 0.0
    _check_points(x, y, order)
    if rcond is None:
        rcond = x.shape[0] * np.finfo(x.dtype).eps
    powers, right = np.vander(x, order), y
    if w is not None:
        weights = _weights(w, y)
        powers = (powers * weights[:, None]).astype(powers.dtype)
        right = (y * (weights[:, None] if y.ndim == 2 else weights)).astype(y.dtype)
    scale = np.sqrt(np.sum(powers * powers, axis=0))
    powers = (powers / scale).astype(powers.dtype)
    if not full and not cov:
        return (_least_squares(powers, right, rcond).T / scale).T
    found, rest, rank, values = np.linalg.lstsq(powers, right, rcond)
    found = (found.T / scale).T
    if full:
        return found, rest, rank, values, rcond
    base = np.linalg.inv(np.dot(powers.T, powers)) / np.outer(scale, scale)
    base = base if y.ndim == 1 else base[:, :, None]
    if cov == "unscaled":
        return found, base
    count = x.shape[0]
    if count <= order:
        raise ValueError(
            "the number of data points must exceed order to scale the covariance matrix"
        )
    return found, base * (rest / (count - order))


def _least_squares(a: Any, b: Any, rcond: Any) -> Any:
    """The shortest of the best solutions: what np.linalg.lstsq has first, for any rank."""
    trace = running()
    for array in (a, b):
        if array.dtype.itemsize == 2:
            raise TypeError(f"array type {array.dtype} is unsupported in linalg")
    given = np.result_type(a, b)
    wide = require_dtype(np.complex128 if given.kind == "c" else np.float64)
    left = trace.cast(value_of(a), wide)
    right = trace.cast(value_of(b if b.ndim == 2 else b[:, None]), wide)
    cut = trace.cast(value_of(rcond), F64)
    made = call_library(trace, "lstsq", [left, right, cut], p=minimum(*left.tensor.shape))[0]
    found: Any = fresh(trace, trace.cast(made, require_dtype(given)))
    return found if b.ndim == 2 else found[:, 0]


def _check_points(x: Any, y: Any, order: int) -> None:
    if order < 1:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.shape[0] == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim < 1 or y.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")


def _weights(w: Any, y: Any) -> Any:
    weights = asarray(w) + 0.0
    if weights.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    if weights.shape[0] != y.shape[0]:
        raise TypeError("expected w and y to have the same length")
    return weights


def _row(p: Any) -> Any:
    array = asarray(p)
    if array.ndim == 0:
        raise TypeError("len() of unsized object")
    return array


FUNCTIONS: dict[Any, Any] = {
    np.polyadd: _combined(np.add), np.polysub: _combined(np.subtract), np.polyder: polyder,
    np.polyint: polyint, np.poly: poly, np.polyfit: polyfit,
}  # fmt: skip
