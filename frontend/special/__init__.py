"""Special functions, and stable forms of expressions that lose digits when written out.

All are elementwise, take anything array-like, keep float16/32/64 and compute integers in floats.
They work inside compiled functions and, compiled by themselves, on plain arrays.

Invariants: names and values are SciPy's where SciPy has the function.
Not here: what NumPy has already (``np.log1p``, ``np.expm1``, ``np.logaddexp``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..differentiation import stop_gradient
from ..lifted import apply, lifted, read

__all__ = [
    "erf", "erfc", "expit", "log_expit", "log_ndtr", "logit", "logsumexp", "ndtr", "softplus",
    "xlogy",
]  # fmt: skip


@lifted
def erf(x: Any) -> Any:
    """The error function, 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x."""
    return apply("erf", x)


@lifted
def erfc(x: Any) -> Any:
    """1 - erf(x), with all its digits where that is small."""
    return apply("erfc", x)


@lifted
def ndtr(x: Any) -> Any:
    """The distribution function of the standard normal law."""
    return apply("ndtr", x)


@lifted
def log_ndtr(x: Any) -> Any:
    """log(ndtr(x)), finite for every finite x."""
    return apply("log_ndtr", x)


@lifted
def expit(x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x))."""
    return apply("expit", x)


@lifted
def log_expit(x: Any) -> Any:
    """log(expit(x)), finite for every finite x."""
    return -softplus(-read(x))


@lifted
def logit(p: Any) -> Any:
    """log(p / (1 - p)), the inverse of `expit`; NaN outside [0, 1]."""
    return apply("logit", p)


@lifted
def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return apply("softplus", x)


@lifted
def xlogy(x: Any, y: Any) -> Any:
    """x * log(y), and 0 where x is 0."""
    return apply("xlogy", x, y)


@lifted
def logsumexp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(a))) over `axis` (all axes for None) without overflow; -inf for no weight."""
    a = read(a)
    largest = stop_gradient(np.max(a, axis=axis, keepdims=True))
    shift = np.where(np.isfinite(largest), largest, np.zeros_like(largest))
    total = np.sum(np.exp(a - shift), axis=axis, keepdims=True)
    some = total > 0
    found = np.where(some, np.log(np.where(some, total, 1)), -np.inf) + shift
    return found if keepdims else np.squeeze(found, axis=axis)
