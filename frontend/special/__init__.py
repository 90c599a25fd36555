"""Special functions, and stable forms of expressions that lose digits when written out.

All are elementwise, take anything array-like, keep float16/32/64 and compute integers in floats.
They work inside compiled functions and, compiled by themselves, on plain arrays.

Invariants: names and values are SciPy's where SciPy has the function.
Not here: what NumPy has already (``np.log1p``, ``np.expm1``, ``np.logaddexp``).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..differentiation import stop_gradient
from ..lifted import apply, lifted, read
from ..tracing.state import fail

__all__ = [
    "betaln", "digamma", "entr", "erf", "erfc", "erfinv", "expit", "gammaln", "log_expit",
    "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri", "polygamma", "psi", "softmax",
    "softplus", "xlog1py", "xlogy",
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
def xlog1py(x: Any, y: Any) -> Any:
    """x * log(1 + y), and 0 where x is 0."""
    return apply("xlog1py", x, y)


@lifted
def entr(x: Any) -> Any:
    """-x * log(x), 0 at 0 and -inf below: summed over shares it is their entropy."""
    return apply("entr", x)


@lifted
def erfinv(y: Any) -> Any:
    """The inverse of `erf`; NaN outside [-1, 1]."""
    return apply("erfinv", y)


@lifted
def ndtri(p: Any) -> Any:
    """The inverse of `ndtr`, the quantile of the standard normal law; NaN outside [0, 1]."""
    return apply("ndtri", p)


@lifted
def gammaln(x: Any) -> Any:
    """log(abs(gamma(x)))."""
    return apply("gammaln", x)


@lifted
def betaln(a: Any, b: Any) -> Any:
    """log(abs(beta(a, b))), from three `gammaln`: digits are lost where a and b differ much."""
    a, b = read(a), read(b)
    return gammaln(a) + gammaln(b) - gammaln(np.add(a, b))


@lifted
def digamma(x: Any) -> Any:
    """The derivative of `gammaln`."""
    return apply("digamma", x)


psi = digamma


@lifted
def polygamma(n: int, x: Any) -> Any:
    """The derivative of order n + 1 of `gammaln`, for n = 0 and n = 1."""
    order = operator.index(n)
    if order not in (0, 1):
        raise fail("TM111", f"tm.special.polygamma of order {order} is not supported",
                   hint="orders 0 and 1 are")  # fmt: skip
    return apply(("digamma", "trigamma")[order], x)


@lifted
def softmax(x: Any, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) over `axis` (all axes for None), without overflow."""
    x = read(x)
    power = np.exp(x - stop_gradient(np.max(x, axis=axis, keepdims=True)))
    return power / np.sum(power, axis=axis, keepdims=True)


@lifted
def log_softmax(x: Any, axis: Any = None) -> Any:
    """log(softmax(x)), finite where softmax rounds to 0."""
    x = read(x)
    shifted = x - stop_gradient(np.max(x, axis=axis, keepdims=True))
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


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
