"""erf, erfc and the normal distribution.

For a >= 0, erfc(a) = e**(-a*a) R(t) / (a + 3) with one polynomial R in t = (a - 3) / (a + 3);
a*a is kept in two parts, because e**(-a*a) feels its last bits.
"""

from __future__ import annotations

from ..scalar import Scalar, absolute, bitcast, constant, copysign, fma, scale, select
from .bits import format_of
from .coefficients import ERF, ERFC, ERFC_MIDDLE
from .exponential import clamped, exp_less_one, exp_polynomial, reduced
from .logarithm import log, log1p
from .pairs import Pair, quick_two_sum, two_product, two_sum
from .polynomial import chain, polynomial

SQRT_HALF = 0.7071067811865476


def erf(x: Scalar) -> Scalar:
    """The error function."""
    a = absolute(x)
    near = fma(x, _erf_over_x_less_one(x * x), x)
    inside = select(a > 6.5, constant(6.5, x.dtype), a)
    far = 1.0 - _rough_tail(inside)
    return select(a >= 1.0, copysign(far, x), near)


def erfc(x: Scalar) -> Scalar:
    """1 - erf(x), also where that is nearly 0."""
    a = absolute(x)
    limit = _limit(x)
    inside = select(a > limit, constant(limit, x.dtype), a)
    tail = _tail(inside, two_product(inside, inside))
    high, low = quick_two_sum(constant(1.0, x.dtype), -x)
    near = high + fma(-x, _erf_over_x_less_one(x * x), low)
    beyond = select(x < 0.0, 2.0 - tail, tail)
    return select(a < 0.75, near, beyond)


def ndtr(x: Scalar) -> Scalar:
    """The normal distribution function, erfc(-x / sqrt(2)) / 2."""
    a = absolute(x)
    limit = _limit(x) * 1.4142135623730951
    inside = select(a > limit, constant(limit, x.dtype), a)
    high, low = two_product(inside, inside)
    tail = _tail(inside * SQRT_HALF, (high * 0.5, low * 0.5), halvings=1.0)
    reduced_x = x * SQRT_HALF
    near = fma(fma(reduced_x, _erf_over_x_less_one(reduced_x * reduced_x), reduced_x), 0.5, 0.5)
    beyond = select(x < 0.0, tail, 1.0 - tail)
    return select(a < 0.66, near, beyond)


def log_ndtr(x: Scalar) -> Scalar:
    """log(ndtr(x)), without underflow for negative x."""
    a = absolute(x)
    inside = select(a > 2.0**60, constant(2.0**60, x.dtype), a)
    far = fma(-a, a * 0.5, log(_scaled_erfc(inside * SQRT_HALF)[0] * 0.5))
    # log1p(-upper tail) for positive x comes from the distribution function of -x.
    upper = ndtr(-a)
    return select(x < -1.0, far, select(x > 0.0, log1p(-upper), log(ndtr(x))))


def _limit(x: Scalar) -> float:
    return 11.0 if x.dtype.bits == 32 else 28.0


def _tail(a: Scalar, square: Pair, halvings: float = 0.0) -> Scalar:
    """erfc(a) / 2**halvings for a >= 0, the square of a being given in two parts."""
    high, low = square
    value, rest = _scaled_erfc(a)
    r, k, _ = reduced(clamped(-high, -800.0, 0.0))
    one = constant(1.0, a.dtype)
    p, p_rest = quick_two_sum(one, exp_less_one(r - low))
    if halvings:
        k = k - halvings
    return scale(fma(value, p, fma(rest, p, value * p_rest)), k)


def _rough_tail(a: Scalar) -> Scalar:
    """erfc(a) for 1 <= a <= 6.5 to a few units, enough for what is taken from 1."""
    q = 1.0 / (a + 3.0)
    series = polynomial(fma(q, -6.0, 1.0), ERFC_MIDDLE[a.dtype]) * q
    r, _, bits = reduced(-(a * a))
    form = format_of(a)
    raised = bitcast(exp_polynomial(r), form.integer) + (bits << form.mantissa)
    return series * bitcast(raised, a.dtype)


def _scaled_erfc(a: Scalar) -> Pair:
    """erfc(a) e**(a*a) for a >= 0, in two parts."""
    divisor = a + 3.0
    lost = a - (divisor - 3.0)
    q = 1.0 / divisor
    lack = fma(-q, divisor, 1.0) - q * lost
    # t = 1 - 6 / (a + 3), rounded once: the series feels its last bit.
    six, six_low = two_product(q, constant(6.0, a.dtype))
    t, t_low = two_sum(constant(1.0, a.dtype), -six)
    t = t + (t_low - fma(q * lack, 6.0, six_low))
    first, *rest = ERFC[a.dtype]
    sum_ = chain(t, rest)
    series = fma(t, sum_, first)
    series_rest = fma(t, sum_, first - series)
    value, value_rest = two_product(series, q)
    return value, fma(q, fma(series, lack, series_rest), value_rest)


def _erf_over_x_less_one(z: Scalar) -> Scalar:
    """erf(x) / x - 1 at z = x * x <= 1."""
    first, *rest = ERF[z.dtype]
    return fma(z, polynomial(z, rest), first)
