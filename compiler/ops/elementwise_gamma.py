"""The gamma function's logarithm and its derivatives, and inverses of erf and ndtr.

All are computed in float64 and rounded once to the operand's type. NumPy has no ufunc for these;
the references are series and Newton's method in plain Python.
Not here: the scalar bodies (math/gamma_function.py, math/normal_quantile.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..types import BF16, F16, F32, F64
from .definition import Facts, OpDef
from .elementwise_special import by_element, log_ndtr_of
from .math.gamma_function import digamma, gammaln, trigamma
from .math.normal_quantile import erfinv, ndtri
from .record import literal, record, through
from .scalar import Scalar, convert
from .signature import each

_FLOATS = (F16, BF16, F32, F64)
_ROOT_PI = math.sqrt(math.pi)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def _wide(body: Callable[[Scalar], Scalar]) -> Callable[[Scalar], Scalar]:
    """A body of float64 for every float."""
    return lambda x: convert(body(convert(x, F64)), x.dtype)


def _gammaln_of(x: float) -> float:
    if math.isinf(x):
        return x
    if x <= 0 and x == math.floor(x) or x > 1e305:
        return math.inf
    return math.lgamma(x)


def _digamma_of(x: float) -> float:
    if not math.isfinite(x):
        return x if x > 0 else math.nan
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0 and x == math.floor(x):
        return math.nan
    if x < 0:
        return _digamma_of(1 - x) - math.pi / math.tan(math.pi * (x - round(x)))
    total = 0.0
    while x < 30:
        total -= 1 / x
        x += 1
    z = 1 / (x * x)
    return total + math.log(x) - 0.5 / x - z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z / 240)))


def _trigamma_of(x: float) -> float:
    if not math.isfinite(x):
        return 0.0 if x > 0 else -x if x < 0 else x
    if x <= 0 and x == math.floor(x):
        return math.inf
    if x < 0:
        ratio = math.pi / math.sin(math.pi * (x - round(x)))
        return ratio * ratio - _trigamma_of(1 - x)
    total = 0.0
    while x < 30:
        total += (1 / x) * (1 / x)
        x += 1
    z = 1 / (x * x)
    return total + 1 / x + z / 2 + z / x * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z / 30)))


def _ndtri_of(p: float) -> float:
    """Newton's method on the logarithm of the distribution function, which is concave."""
    if not 0 < p < 1 or p == 0.5:
        return {0.0: -math.inf, 0.5: 0.0, 1.0: math.inf}.get(p, math.nan)
    if p > 0.5:
        return -_ndtri_of(1 - p)
    x = -math.sqrt(-2 * math.log(p))
    for _ in range(60):
        found = log_ndtr_of(x)
        x -= (found - math.log(p)) * math.exp(found + 0.5 * x * x) * _ROOT_TWO_PI
    return x


def _erfinv_of(y: float) -> float:
    if abs(y) >= 0.5 or math.isnan(y):
        tail = (1 - abs(y)) / 2
        return math.copysign(-_ndtri_of(tail) * math.sqrt(0.5), y)
    x = y
    for _ in range(20):
        x -= (math.erf(x) - y) * math.exp(x * x) * _ROOT_PI / 2
    return x


def _inverse_bell(emit: Any, y: Any, spread: float, factor: float) -> Any:
    """factor * exp(spread * y**2): the slope where the density is its inverse."""
    power = emit.exp(emit.mul(emit.square(y), literal(emit, y, spread)))
    return emit.mul(power, literal(emit, y, factor))


_GROWS = Facts(monotone=True)

OPS: tuple[OpDef, ...] = (
    record("gammaln", by_element(_gammaln_of), _wide(gammaln),
           "The logarithm of the gamma function's absolute value.",
           taken=each(_FLOATS), gradient=through(lambda emit, x, y: emit.digamma(x))),
    record("digamma", by_element(_digamma_of), _wide(digamma),
           "The derivative of the gamma function's logarithm; NaN at negative integers.",
           taken=each(_FLOATS), gradient=through(lambda emit, x, y: emit.trigamma(x))),
    record("trigamma", by_element(_trigamma_of), _wide(trigamma),
           "The derivative of digamma.", taken=each(_FLOATS), facts=Facts()),
    record("ndtri", by_element(_ndtri_of), _wide(ndtri),
           "The inverse of the normal distribution function; NaN outside [0, 1].",
           taken=each(_FLOATS), facts=_GROWS,
           gradient=through(lambda emit, x, y: _inverse_bell(emit, y, 0.5, _ROOT_TWO_PI))),
    record("erfinv", by_element(_erfinv_of), _wide(erfinv),
           "The inverse of the error function; NaN outside [-1, 1].",
           taken=each(_FLOATS), facts=_GROWS,
           gradient=through(lambda emit, x, y: _inverse_bell(emit, y, 1.0, _ROOT_PI / 2))),
)  # fmt: skip
