"""The error function and the normal distribution, and the logit.

NumPy has no ufunc for these; the references ask the C library through `math`, in float64.
Not here: expit and softplus (elementwise_stable).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..types import BF16, F16, F32, F64
from .definition import Facts, OpDef
from .math.constants import PI
from .math.error_function import erf, erfc, log_ndtr, ndtr
from .math.logarithm import log, log1p
from .record import literal, record, through
from .scalar import Scalar, select
from .signature import each

_FLOATS = (F16, BF16, F32, F64)
_TWO_OVER_ROOT_PI = 2 / math.sqrt(float(PI))
_ONE_OVER_ROOT_TWO_PI = 1 / math.sqrt(2 * float(PI))
_ROOT_HALF, _ROOT_HALF_LOW = 0.7071067811865476, -4.833646656726457e-17


def by_element(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of floats on arrays, through float64."""

    def reference(x: Any) -> Any:
        values = np.array([function(float(v)) for v in np.ravel(x)], np.float64)
        return values.reshape(np.shape(x)).astype(x.dtype)

    return reference


def _ndtr_of(x: float) -> float:
    """erfc(-x / sqrt(2)) / 2, with what rounding -x / sqrt(2) lost put back."""
    a = -x * _ROOT_HALF
    if not math.isfinite(a) or abs(a) > 30 or abs(a) < 1e-8:
        return 0.5 * math.erfc(a)
    lost = _product_error(-x, _ROOT_HALF, a) - x * _ROOT_HALF_LOW
    return 0.5 * (math.erfc(a) - _TWO_OVER_ROOT_PI * math.exp(-a * a) * lost)


def _product_error(a: float, b: float, product: float) -> float:
    """a * b - product, exactly."""
    a_high, b_high = a * 134217729.0, b * 134217729.0
    a_high, b_high = a_high - (a_high - a), b_high - (b_high - b)
    a_low, b_low = a - a_high, b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def log_ndtr_of(x: float) -> float:
    if x > -5:
        return math.log1p(-_ndtr_of(-x)) if x > 0 else math.log(_ndtr_of(x))
    if x < -1e150:
        return -math.inf if x < -1.9e154 else -0.5 * x * x
    # The continued fraction of the upper tail, from far out inwards.
    total = -x
    for n in range(200, 0, -1):
        total = -x + n / total
    return -0.5 * x * x - math.log(total) + math.log(_ONE_OVER_ROOT_TWO_PI)


def _logit(p: Scalar) -> Scalar:
    """log(p) - log(1 - p), without cancellation around 1/2."""
    # Between 1/4 and 3/4, log1p of (2p - 1) / (1 - p), whose numerator is exact.
    near = (p > 0.25) & (p < 0.75)
    inside = select(near, p, 0.5)
    middle = log1p((inside * 2.0 - 1.0) / (1.0 - inside))
    return select(near, middle, log(p) - log1p(-p))


def _logit_of(p: float) -> float:
    if not 0 < p < 1:
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)
    if 0.25 < p < 0.75:
        return math.log1p((2 * p - 1) / (1 - p))
    return math.log(p) - math.log1p(-p)


def _bell(emit: Any, x: Any, spread: float, factor: float) -> Any:
    """factor * exp(-spread * x**2)."""
    power = emit.exp(emit.mul(emit.square(x), literal(emit, x, -spread)))
    return emit.mul(power, literal(emit, x, factor))


def _log_ndtr_slope(emit: Any, x: Any, y: Any) -> Any:
    """The density over the distribution, as one exponential."""
    half_square = emit.mul(emit.square(x), literal(emit, x, 0.5))
    power = emit.neg(emit.add(half_square, y))
    return emit.mul(emit.exp(power), literal(emit, x, _ONE_OVER_ROOT_TWO_PI))


def _logit_slope(emit: Any, x: Any, y: Any) -> Any:
    one = literal(emit, x, 1)
    return emit.div(one, emit.mul(x, emit.sub(one, x)))


_GROWS = Facts(monotone=True)

OPS: tuple[OpDef, ...] = (
    record("erf", by_element(math.erf), erf, "The error function.",
           taken=each(_FLOATS), facts=_GROWS,
           gradient=through(lambda emit, x, y: _bell(emit, x, 1.0, _TWO_OVER_ROOT_PI))),
    record("erfc", by_element(math.erfc), erfc,
           "1 less the error function, accurate where that is nearly 0.",
           taken=each(_FLOATS), facts=_GROWS,
           gradient=through(lambda emit, x, y: _bell(emit, x, 1.0, -_TWO_OVER_ROOT_PI))),
    record("ndtr", by_element(_ndtr_of), ndtr,
           "The distribution function of the standard normal distribution.",
           taken=each(_FLOATS), facts=_GROWS,
           gradient=through(lambda emit, x, y: _bell(emit, x, 0.5, _ONE_OVER_ROOT_TWO_PI))),
    record("log_ndtr", by_element(log_ndtr_of), log_ndtr,
           "Logarithm of the normal distribution function; no underflow for negative operands.",
           taken=each(_FLOATS), facts=_GROWS, gradient=through(_log_ndtr_slope)),
    record("logit", by_element(_logit_of), _logit,
           "log(p / (1 - p)), the inverse of expit; NaN outside [0, 1].",
           taken=each(_FLOATS), facts=_GROWS, gradient=through(_logit_slope)),
)  # fmt: skip
