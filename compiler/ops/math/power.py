"""x**y for real x and y: 2**(y log2(x)) with the logarithm in two parts.

f32 computes in f64, which has the digits to spare. f64 keeps what each step of consequence loses:
before the last rounding the error is below a quarter of a unit, so a result that f64 holds exactly
(x**1, squares of small integers) comes out exactly.
"""

from __future__ import annotations

from fractions import Fraction

from ...types import F32, F64
from ..scalar import (
    Scalar,
    absolute,
    bitcast,
    constant,
    convert,
    copysign,
    floor,
    fma,
    is_nan,
    rarely,
    scale,
    select,
)
from .bits import format_of
from .coefficients import EXP2_SINGLE, EXP2_TAIL, LOG_SINGLE, LOG_TAIL
from .constants import LN2, parts
from .exponential import clamped
from .logarithm import decompose
from .pairs import Pair, pair_product, quick_two_sum, two_product
from .polynomial import polynomial


def power(x: Scalar, y: Scalar) -> Scalar:
    """x**y with C's rules for zeros, infinities, NaN and negative x."""
    form = format_of(x)
    positive = _power_f32 if x.dtype is F32 else _power_f64
    largest = 2.0 ** (form.mantissa + 40)
    easy = (x >= form.least_normal) & (x < float("inf")) & (absolute(y) < largest)
    (result,) = rarely(~easy, (_every_case(x, y),), (positive(x, y),))
    return result


def _every_case(x: Scalar, y: Scalar) -> Scalar:
    form = format_of(x)
    infinity, nan = float("inf"), float("nan")
    a, size = absolute(x), absolute(y)
    one, zero = constant(1.0, x.dtype), constant(0.0, x.dtype)
    largest = constant(2.0 ** (form.mantissa + 40), x.dtype)
    inside = select(size < largest, y, copysign(largest, y))
    if x.dtype is F32:
        result = _power_f32(a, inside)
    else:
        lift = float(form.mantissa + 2)
        small = a < form.least_normal
        result = _power_f64(
            select(small, a * 2.0**lift, a), inside, select(small, lift * one, zero)
        )
    whole = floor(y).equals(y)
    half = y * 0.5
    odd = whole & floor(half).differs(half) & (size < infinity)
    up = y > 0.0
    result = select(a.equals(infinity), select(up, infinity, zero), result)
    result = select(a.equals(0.0), select(up, zero, infinity), result)
    result = select(a.equals(1.0), one, result)
    negative = bitcast(x, form.integer) < 0
    result = select(negative & odd, -result, result)
    result = select((x < 0.0) & ~whole & (a < infinity), nan, result)
    result = select(is_nan(x) | is_nan(y), x + y, result)
    return select(y.equals(0.0) | x.equals(1.0), one, result)


def _power_f32(x: Scalar, y: Scalar) -> Scalar:
    """For x > 0, in f64 up to the last rounding."""
    e, f, _ = decompose(convert(x, F64))
    s = f / (f + 2.0)
    z = s * s
    log = s * fma(z, polynomial(z, LOG_SINGLE[F64]), 2.0)
    w = clamped(convert(y, F64) * fma(log, 1 / float(LN2), e), -160.0, 160.0)
    magic = 1.5 * 2.0**52
    k = (w + magic) - magic
    r = w - k
    return convert(scale(polynomial(r, (1.0, *EXP2_SINGLE[F64])), k), F32)


def _power_f64(x: Scalar, y: Scalar, lifted: Scalar | None = None) -> Scalar:
    """For normal x > 0 that stands for x / 2**lifted."""
    high, low = _log2_pair(x, lifted)
    product, rest = two_product(y, high)
    rest = fma(y, low, rest)
    inside = clamped(product, -1100.0, 1100.0)
    rest = select(inside.equals(product), rest, 0.0)
    magic = 1.5 * 2.0**52
    k = (inside + magic) - magic
    return scale(_exp2_of_pair(*quick_two_sum(inside - k, rest)), k)


def _exp2_of_pair(r: Scalar, rest: Scalar) -> Scalar:
    """2**(r + rest) for |r| <= 1/2 and a rest below its last place, rounded only once in full."""
    first, second = parts(LN2, r.dtype, 2)
    linear, low = two_product(r, constant(first, r.dtype))
    total, lost = quick_two_sum(constant(1.0, r.dtype), linear)
    low = fma(r, second, fma(rest * first, total, low)) + lost
    return total + fma(r * r, polynomial(r, EXP2_TAIL[r.dtype]), low)


def _log2_pair(x: Scalar, lifted: Scalar | None) -> Pair:
    """log2(x) to about 66 bits."""
    e, f, _ = decompose(x)
    if lifted is not None:
        e = e - lifted
    divisor = f + 2.0
    divisor_low = f - (divisor - 2.0)
    inverse = 1.0 / divisor
    s = f * inverse
    s_low = (fma(-s, divisor, f) - s * divisor_low) * inverse
    square, square_low = two_product(s, s)
    square_low = fma(s + s, s_low, square_low)
    third, third_low = parts(Fraction(1, 3), x.dtype, 2)
    # atanh(s) / s = 1 + s**2 (1/3 + tail): the first term needs two parts.
    tail = square * polynomial(square, LOG_TAIL[x.dtype])
    series = quick_two_sum(constant(third, x.dtype), tail + third_low)
    cubic = pair_product((s, s_low), pair_product((square, square_low), series))
    high, low = quick_two_sum(s, cubic[0])
    low = low + (s_low + cubic[1])
    first, second = parts(2 / LN2, x.dtype, 2)
    scaled = pair_product((high, low), (constant(first, x.dtype), constant(second, x.dtype)))
    total, rest = quick_two_sum(e, scaled[0])
    return total, rest + scaled[1]
