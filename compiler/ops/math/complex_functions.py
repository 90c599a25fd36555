"""Functions of a complex variable, in real arithmetic; right in the norm, edges as C99 has them
where that costs little. Inverse functions follow Kahan (1987).
"""

from __future__ import annotations

import math

from ..scalar import (
    Scalar,
    absolute,
    complex_,
    constant,
    copysign,
    fma,
    imag,
    is_nan,
    loop,
    mul,
    real,
    scale,
    select,
    sqrt,
    trunc,
)
from .complex_arithmetic import annex_g_product, complex_divide
from .constants import LN2, LN10, PI
from .exponential import clamped, exp, exp_polynomial, expm1, reduced
from .hyperbolic import arcsinh, cosh, sinh
from .logarithm import log, log1p, log1p_of_pair
from .pairs import two_product, two_sum
from .roots import hypot
from .trigonometric import arctan2, cos, sin, tan

INFINITY, NAN = float("inf"), float("nan")


def times_real(z: Scalar, factor: float) -> Scalar:
    """z times a real number, part by part."""
    return complex_(real(z) * factor, imag(z) * factor)


def times_i(z: Scalar) -> Scalar:
    """i z, exactly."""
    return complex_(-imag(z), real(z))


def over_i(z: Scalar) -> Scalar:
    """z / i, exactly."""
    return complex_(imag(z), -real(z))


def complex_exp(z: Scalar) -> Scalar:
    """e**z. The power of two goes on last, so that large parts do not overflow early."""
    x, y = real(z), imag(z)
    bound = 210.0 if x.dtype.bits == 32 else 1500.0
    r, k, _ = reduced(clamped(x, -bound, bound))
    p = exp_polynomial(r)
    still = ~(absolute(y) < INFINITY)
    vanishing = x.equals(-INFINITY)
    c = select(still & vanishing, 0.0, cos(y))
    s = select(still & vanishing, copysign(constant(0.0, x.dtype), y), sin(y))
    first = trunc(k * 0.5)
    re, im = (scale(scale(p * t, first), k - first) for t in (c, s))
    re = select(still & x.equals(INFINITY), INFINITY, re)
    return complex_(re, select(y.equals(0.0), y, im))


def complex_expm1(z: Scalar) -> Scalar:
    """e**z - 1, also near 0."""
    x, y = real(z), imag(z)
    s = sin(y * 0.5)
    re = expm1(x) * cos(y) - 2.0 * s * s
    return complex_(re, exp(x) * sin(y))


def complex_log(z: Scalar) -> Scalar:
    """Natural logarithm: log|z| and the angle."""
    return complex_(_log_of_length(real(z), imag(z)), arctan2(imag(z), real(z)))


def _log_of_length(x: Scalar, y: Scalar) -> Scalar:
    """log(hypot(x, y)), by log1p(|z|**2 - 1) / 2 where the length is near 1."""
    a, b = absolute(x), absolute(y)
    swap = a < b
    high, low = select(swap, b, a), select(swap, a, b)
    near = (high > 0.5) & (high < 2.0)
    inside, small = select(near, high, 1.0), select(near, low, 0.0)
    square, square_low = two_product(inside - 1.0, inside + 1.0)
    other, other_low = two_product(small, small)
    total, total_low = two_sum(square, other)
    rest = total_low + square_low + other_low
    # inside + 1 is exact up to a last place that only matters far from 1.
    by_square = log1p_of_pair(total, rest) * 0.5
    tiny = high < (2.0**-100 if x.dtype.bits == 32 else 2.0**-900)
    lift = 2.0 ** (60 if x.dtype.bits == 32 else 200)
    shift = 60 if x.dtype.bits == 32 else 200
    length = hypot(select(tiny, x * lift, x), select(tiny, y * lift, y))
    huge = high > (2.0**126 if x.dtype.bits == 32 else 2.0**1022)
    length = select(huge, hypot(x * 0.25, y * 0.25), length)
    offset = select(tiny, constant(-shift * float(LN2), x.dtype),
                    select(huge, constant(2 * float(LN2), x.dtype), 0.0))  # fmt: skip
    return select(near & (by_square > -0.5), by_square, log(length) + offset)


def complex_log1p(z: Scalar) -> Scalar:
    """log(1 + z), also near 0."""
    x, y = real(z), imag(z)
    usual = complex_log(complex_(x + 1.0, y))
    small = (absolute(x) < 0.5) & (absolute(y) < 0.5)
    a, b = select(small, x, 0.0), select(small, y, 0.0)
    square = fma(a, a, b * b)
    high, low = two_sum(a + a, square)
    return complex_(select(small, log1p_of_pair(high, low) * 0.5, real(usual)), imag(usual))


def complex_log2(z: Scalar) -> Scalar:
    """Logarithm to base 2."""
    return times_real(complex_log(z), 1 / float(LN2))


def complex_log10(z: Scalar) -> Scalar:
    """Logarithm to base 10."""
    return times_real(complex_log(z), 1 / float(LN10))


def complex_exp2(z: Scalar) -> Scalar:
    """2**z."""
    return complex_exp(times_real(z, float(LN2)))


def complex_sqrt(z: Scalar) -> Scalar:
    """The square root with a non-negative real part."""
    x, y = real(z), imag(z)
    a, b = absolute(x), absolute(y)
    large = (a > b) & (a > _big(x)) | (b > _big(x))
    small = (a < 1 / _big(x)) & (b < 1 / _big(x))
    one = constant(1.0, x.dtype)
    span = 2.0**40 if x.dtype.bits == 32 else 2.0**200
    factor = select(large, one * 0.25, select(small, one * span, one))
    undo = select(large, one * 2.0, select(small, one * span**-0.5, one))
    p, q = a * factor, b * factor
    w = sqrt((p + hypot(p, q)) * 0.5)
    zero = w.equals(0.0)
    v = select(zero, constant(0.0, x.dtype), q * 0.5 / select(zero, one, w))
    w, v = w * undo, v * undo
    negative = x < 0.0
    re, im = select(negative, v, w), copysign(select(negative, w, v), y)
    endless = b.equals(INFINITY)
    re, im = select(endless, b, re), select(endless, y, im)
    # A real infinity with a NaN keeps the infinite part alone.
    lone = x.equals(-INFINITY) & is_nan(y)
    re, im = select(lone, y, re), select(lone, INFINITY, im)
    return complex_(re, select(x.equals(INFINITY) & ~is_nan(y) & ~endless,
                               copysign(constant(0.0, x.dtype), y), im))  # fmt: skip


def _big(x: Scalar) -> float:
    return 2.0**100 if x.dtype.bits == 32 else 2.0**900


def complex_sinh(z: Scalar) -> Scalar:
    """Hyperbolic sine."""
    re, im = _sinh_and_turn(real(z), imag(z))
    return complex_(re, im)


def complex_sin(z: Scalar) -> Scalar:
    """Sine."""
    im, re = _sinh_and_turn(imag(z), real(z))
    return complex_(re, im)


def _sinh_and_turn(x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    """(sinh(x) cos(y), cosh(x) sin(y)): a zero x or y is a zero part whatever the other is, and
    an infinite x is one whose sign an angle that is none leaves open: positive, as in libm."""
    near, factor = _lowered(x)
    level, infinite, angle = x.equals(0.0), absolute(x).equals(INFINITY), absolute(y) < INFINITY
    side = select(infinite & ~angle, INFINITY, sinh(near))
    turn = select((infinite | level) & ~angle, 1.0, cos(y))
    across = cosh(near) * sin(y) * factor * factor
    return side * turn * factor * factor, select(y.equals(0.0), y, across)


def _lowered(x: Scalar) -> tuple[Scalar, Scalar]:
    """(w, f) with e**|x| = f f e**|w|: w is x where its exponential is a number, else smaller, so
    that the exponential's product with a small number is right where that is one."""
    a, one = absolute(x), constant(1.0, x.dtype)
    first, second, steps = (88.0, 150.0, (33, 55)) if x.dtype.bits == 32 else (
        709.0, 1300.0, (340, 400))  # fmt: skip
    far, farther = a > first, a > second
    step = select(farther, one * (2.0 * steps[1]), select(far, one * (2.0 * steps[0]), 0.0))
    factor = select(farther, one * math.exp(steps[1]), select(far, one * math.exp(steps[0]), one))
    return copysign(a - step, x), factor


def complex_cosh(z: Scalar) -> Scalar:
    """Hyperbolic cosine: beside a zero the other part is a zero, also if it is infinite or NaN."""
    x, y = real(z), imag(z)
    near, factor = _lowered(x)
    level, infinite, angle = x.equals(0.0), absolute(x).equals(INFINITY), absolute(y) < INFINITY
    turn = select(infinite & ~angle, 1.0, cos(y))
    still = select(is_nan(x), y, copysign(constant(1.0, x.dtype), x) * y)
    across = select(y.equals(0.0), still, sinh(near) * sin(y) * factor * factor)
    re = cosh(near) * turn * factor * factor
    return complex_(re, select(level & ~angle, 0.0, across))


def complex_cos(z: Scalar) -> Scalar:
    """Cosine."""
    return complex_cosh(times_i(z))


def complex_tanh(z: Scalar) -> Scalar:
    """Hyperbolic tangent; a zero part stays, whatever the other is."""
    x, y = real(z), imag(z)
    limit = 9.0 if x.dtype.bits == 32 else 20.0
    a = absolute(x)
    inside = select(a > limit, copysign(constant(limit, x.dtype), x), x)
    t = tan(y)
    s = sinh(inside)
    beta = fma(t, t, 1.0)
    divisor = fma(beta * s, s, 1.0)
    re = beta * sqrt(fma(s, s, 1.0)) * s / divisor
    # Far out the real part is 1 and the imaginary one 4 sin(y) cos(y) / e**2a.
    far, drop, nothing = a > limit, exp(-a), constant(0.0, x.dtype)
    far_im = select(a.equals(INFINITY), copysign(nothing, select(is_nan(t), y, t)),
                    4.0 * drop * drop * t / beta)  # fmt: skip
    valid = a.equals(INFINITY) | (absolute(y) < INFINITY)
    far_re = select(valid, copysign(constant(1.0, x.dtype), x), NAN)
    re, im = select(far, far_re, re), select(far, far_im, t / divisor)
    return complex_(select(x.equals(0.0), x, re), select(y.equals(0.0), y, im))


def complex_tan(z: Scalar) -> Scalar:
    """Tangent."""
    return over_i(complex_tanh(times_i(z)))


def complex_arcsin(z: Scalar) -> Scalar:
    """Inverse sine."""
    x, y = real(z), imag(z)
    minus, plus = _roots(z)
    width = real(minus) * real(plus) - imag(minus) * imag(plus)
    height = real(minus) * imag(plus) - imag(minus) * real(plus)
    endless = _is_infinite(x, y)
    re = arctan2(x, select(endless, absolute(y), width))
    im = copysign(arcsinh(select(endless, INFINITY, height)), y)
    return complex_(select(x.equals(0.0), x, re), im)


def complex_arccos(z: Scalar) -> Scalar:
    """Inverse cosine."""
    x, y = real(z), imag(z)
    minus, plus = _roots(z)
    height = real(plus) * imag(minus) - imag(plus) * real(minus)
    endless = _is_infinite(x, y)
    up = select(endless, absolute(y), real(minus))
    angle = arctan2(up, select(endless, x, real(plus)))
    re = select(endless, angle, angle + angle)
    im = copysign(arcsinh(select(endless, INFINITY, height)), -y)
    return complex_(select(x.equals(0.0), float(PI / 2), re), im)


def _is_infinite(x: Scalar, y: Scalar) -> Scalar:
    return absolute(x).equals(INFINITY) | absolute(y).equals(INFINITY)


def _roots(z: Scalar) -> tuple[Scalar, Scalar]:
    """sqrt(1 - z), sqrt(1 + z)."""
    x, y = real(z), imag(z)
    return complex_sqrt(complex_(1.0 - x, -y)), complex_sqrt(complex_(1.0 + x, y))


def complex_arccosh(z: Scalar) -> Scalar:
    """Inverse hyperbolic cosine: i arccos(z) with a non-negative real part."""
    found = complex_arccos(z)
    return complex_(absolute(imag(found)), copysign(real(found), imag(z)))


def complex_arcsinh(z: Scalar) -> Scalar:
    """Inverse hyperbolic sine."""
    return over_i(complex_arcsin(times_i(z)))


def complex_arctanh(z: Scalar) -> Scalar:
    """Inverse hyperbolic tangent."""
    x, y = real(z), imag(z)
    a = absolute(x)
    far = (a > _square_limit(x)) | (absolute(y) > _square_limit(x))
    one = constant(1.0, x.dtype)
    p, q = select(far, one, a), select(far, one, y)
    gap = 1.0 - p
    distance = fma(gap, gap, q * q)
    re = log1p(4.0 * p / distance) * 0.25
    # Beside a pole at 1 or -1 the quotient would overflow.
    pole = (gap.equals(0.0)) & (absolute(q) < 2.0**-30)
    re = select(pole, (float(LN2) - log(absolute(q))) * 0.5, re)
    high, low = two_product(gap, 1.0 + p)
    im = 0.5 * arctan2(q + q, fma(-q, q, high) + low)
    length = hypot(x * 2.0**-20, y * 2.0**-20)
    far_re = (a * 2.0**-20 / length) / length * 2.0**-20
    far_re = select(length.equals(INFINITY), constant(0.0, x.dtype), far_re)
    known = absolute(y).equals(INFINITY) | ~(is_nan(x) | is_nan(y))
    far_im = select(known, constant(float(PI / 2), x.dtype), NAN)
    re = select(far, far_re, select(a.equals(1.0) & y.equals(0.0), INFINITY, re))
    re, im = copysign(re, x), copysign(select(far, far_im, im), y)
    return complex_(select(x.equals(0.0), x, re), im)


def _square_limit(x: Scalar) -> float:
    return 2.0**40 if x.dtype.bits == 32 else 2.0**400


def complex_arctan(z: Scalar) -> Scalar:
    """Inverse tangent."""
    return over_i(complex_arctanh(times_i(z)))


def complex_power(a: Scalar, b: Scalar) -> Scalar:
    """a**b: by multiplication for small integral b, else e**(b log a)."""
    n = real(b)
    small = imag(b).equals(0.0) & trunc(n).equals(n) & (absolute(n) < 100.0)
    general = complex_exp(annex_g_product(b, complex_log(a)))
    count = select(small, absolute(n), 0.0)
    unit = constant(1.0, a.dtype)

    def step(left: Scalar, re: Scalar, im: Scalar, xr: Scalar, xi: Scalar) -> tuple[Scalar, ...]:
        half = trunc(left * 0.5)
        odd = half.differs(left * 0.5)
        total, factor = complex_(re, im), complex_(xr, xi)
        product = select(odd, mul(total, factor), total)
        square = mul(factor, factor)
        return half, real(product), imag(product), real(square), imag(square)

    state = loop(
        (count, real(unit), imag(unit), real(a), imag(a)), lambda left, *rest: left > 0.0, step
    )
    # NumPy multiplies these out, so a 1 + 0i takes no part in signs and infinities.
    square = mul(a, a)
    whole = select(n.equals(3.0), mul(a, square), complex_(state[1], state[2]))
    whole = select(n.equals(1.0), a, select(n.equals(2.0), square, whole))
    whole = select(n < 0.0, complex_divide(unit, whole), whole)
    nothing = real(a).equals(0.0) & imag(a).equals(0.0)
    at_zero = complex_(constant(0.0, n.dtype), constant(0.0, n.dtype))
    nan = complex_(constant(NAN, n.dtype), constant(NAN, n.dtype))
    at_zero = select(n > 0.0, at_zero, nan)
    made = select(nothing, at_zero, select(small, whole, general))
    return select(n.equals(0.0) & imag(b).equals(0.0), unit, made)
