"""Logarithm of the gamma function, and its first two derivatives, in float64.

From 10 on Stirling's series (Abramowitz and Stegun, Handbook of Mathematical Functions, 6.1.41,
6.3.18, 6.4.12); below, the recurrence brings an operand to where a polynomial is. Negative ones
are reflected (6.1.17, 6.3.7, 6.4.7), so there, near a zero of the function, digits are lost.

Invariants: operands and results are float64; both branches of a choice are finite or harmless.
Not here: other floats (elementwise_gamma.py converts them).
"""

from __future__ import annotations

from ..scalar import Scalar, absolute, constant, eq, fma, is_nan, rarely, rint, select
from .coefficients import DIGAMMA, LOG_GAMMA_AT_ONE, LOG_GAMMA_AT_TWO
from .constants import PI
from .logarithm import log
from .polynomial import chain, polynomial
from .trigonometric import sin, tan

_PI = float(PI)
_ONE_OVER_PI = float(1 / PI)
_FAR = 10.0  # from here on the series are right to the last place
_STEPS = 8  # that bring what is below to the polynomials
_HALF_LOG_2PI_LESS_HALF = 0.4189385332046727  # log(2 pi) / 2 - 1/2
# The zero of digamma, less 1: in two parts.
_ZERO, _ZERO_LOW = 0.46163214496836225, 9.549995429965697e-17

# In 1/x**2: what follows x log(x) - x, log(x) - 1/(2x), and 1/x + 1/(2 x**2).
_LOG_GAMMA_SERIES = (
    1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400,
)  # fmt: skip
_DIGAMMA_SERIES = (
    -1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12, 3617 / 8160,
)  # fmt: skip
_TRIGAMMA_SERIES = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
)  # fmt: skip


def gammaln(x: Scalar) -> Scalar:
    """log(|gamma(x)|)"""
    a, infinity = absolute(x), constant(float("inf"), x.dtype)
    part = _from_integer(a)
    own = _log_gamma(_reflection(x))
    reflected = -log(absolute(sin(part * _PI)) * _ONE_OVER_PI) - own
    reflected = select(_is_zero(part), infinity, reflected)
    (found,) = rarely(x < 0.0, (reflected,), (own,))
    return select(eq(a, infinity), x, found)  # of -inf SciPy's value


def digamma(x: Scalar) -> Scalar:
    """The derivative of log(gamma(x)); NaN at negative integers."""
    part = _from_integer(absolute(x))
    own = _digamma(_reflection(x))
    pole = constant(float("nan"), x.dtype)
    reflected = select(_is_zero(part), pole, own + _PI / tan(part * _PI))
    (found,) = rarely(x < 0.0, (reflected,), (own,))
    return select(_is_zero(x), -1.0 / x, found)


def trigamma(x: Scalar) -> Scalar:
    """The second derivative of log(gamma(x))."""
    own = _trigamma(_reflection(x))
    ratio = _PI / sin(_from_integer(absolute(x)) * _PI)
    (found,) = rarely(x < 0.0, (ratio * ratio - own,), (own,))
    return found


def _reflection(x: Scalar) -> Scalar:
    """Where the function is computed: at 1 - x for negative x."""
    return select(x < 0.0, 1.0 - x, x)


def _is_zero(x: Scalar) -> Scalar:
    return eq(x, constant(0.0, x.dtype))


def _from_integer(a: Scalar) -> Scalar:
    """The distance to the nearest integer; of those too large to have one, none."""
    part = a - rint(a)
    return select(is_nan(part) & ~is_nan(a), constant(0.0, a.dtype), part)


def _log_gamma(a: Scalar) -> Scalar:
    a = absolute(a)  # of -0.0, the one negative number
    small, far = a < 0.5, a >= _FAR
    b, product = a, constant(1.0, a.dtype)
    for _ in range(_STEPS):
        more, less = b >= 2.5, b - 1.0
        product = select(more, product * less, product)
        b = select(more, less, b)
    # The polynomials' operands are exact: 1 + a is never rounded.
    at_one, at_two = select(small, a, b - 1.0), b - 2.0
    near_one = at_one * polynomial(at_one, LOG_GAMMA_AT_ONE[a.dtype])
    near_two = at_two * polynomial(at_two, LOG_GAMMA_AT_TWO[a.dtype])
    base = select(small | (b < 1.5), near_one, near_two)
    logarithm = log(select(small | far, a, product))
    middle = select(small, base - logarithm, base + logarithm)
    r = 1.0 / a
    rest = r * chain(r * r, _LOG_GAMMA_SERIES)
    beyond = fma(a - 0.5, logarithm - 1.0, rest + _HALF_LOG_2PI_LESS_HALF)
    return select(far, beyond, middle)


def _digamma(a: Scalar) -> Scalar:
    small, far = a < 1.0, a >= _FAR
    b, top, bottom = a, constant(0.0, a.dtype), constant(1.0, a.dtype)
    for _ in range(_STEPS):
        more, less = b >= 2.0, b - 1.0
        top = select(more, fma(top, less, bottom), top)
        bottom = select(more, bottom * less, bottom)
        b = select(more, less, b)
    u = select(small, a, b - 1.0)
    series = (u - _ZERO - _ZERO_LOW) * polynomial(u - 0.5, DIGAMMA[a.dtype])
    shifts = select(small, constant(-1.0, a.dtype), top) / select(small, a, bottom)
    r = 1.0 / a
    rest = (r * r) * chain(r * r, _DIGAMMA_SERIES)
    return select(far, log(a) + fma(r, -0.5, rest), series + shifts)


def _trigamma(a: Scalar) -> Scalar:
    b = a
    terms = []
    for _ in range(int(_FAR)):
        more = b < _FAR
        inverse = 1.0 / b
        terms.append(select(more, inverse * inverse, constant(0.0, a.dtype)))
        b = select(more, b + 1.0, b)
    r = 1.0 / b
    square = r * r
    rest = fma(r, chain(square, _TRIGAMMA_SERIES), 0.5)
    total = fma(rest, square, r)
    for term in reversed(terms):  # the smallest first
        total = total + term
    return total
