"""log, log2, log10, log1p: x = 2**e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).

log(1 + f) is kept as f + rest, f being exact: what multiplies it or is added to it can then be
rounded once. f32 takes a polynomial in f; f64 one in s = f / (2 + f), which is shorter.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ...types import F32, U32, U64, DType
from ..scalar import Scalar, bitcast, convert, copysign, fma, rarely, select
from .bits import format_of
from .coefficients import LOG_BY_DIVISION, LOG_DIRECT
from .constants import LN2, LN10, parts
from .pairs import quick_two_sum
from .polynomial import polynomial

_SQRT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}

# (operand, power of two it was multiplied by) -> result, for normal operands
_Core = Callable[[Scalar, float], Scalar]


def log(x: Scalar) -> Scalar:
    """Natural logarithm."""

    def core(x: Scalar, lifted: float) -> Scalar:
        e, f, _ = decompose(x)
        return _sum_of_parts(e - lifted if lifted else e, f)

    return _everywhere(x, core)


def log2(x: Scalar) -> Scalar:
    """Logarithm to base 2; exact for powers of two."""

    def core(x: Scalar, lifted: float) -> Scalar:
        e, f, _ = decompose(x)
        e = e - lifted if lifted else e
        high, low = _scaled_parts(f, 1 / LN2)
        total = e + high
        return total + (((e - total) + high) + low)

    return _everywhere(x, core)


def log10(x: Scalar) -> Scalar:
    """Logarithm to base 10."""

    def core(x: Scalar, lifted: float) -> Scalar:
        e, f, _ = decompose(x)
        e = e - lifted if lifted else e
        high, low = _scaled_parts(f, 1 / LN10)
        two_high, two_low = parts(LN2 / LN10, x.dtype, 2, spare=11)
        whole = e * two_high
        total = whole + high
        return total + (((whole - total) + high) + fma(e, two_low, low))

    return _everywhere(x, core)


def log1p(x: Scalar) -> Scalar:
    """log(1 + x), also near 0."""
    return log1p_of_pair(x, None)


def log1p_of_pair(x: Scalar, low: Scalar | None) -> Scalar:
    """log(1 + x + low) for a `low` that is small beside x."""
    form = format_of(x)
    u = x + 1.0
    e, f, exponent = decompose(u)
    # What 1 + x lost, at the scale of 1 + f; beyond 2**mantissa it is wrong and does not matter.
    lost = x - (u - 1.0)
    shrink = bitcast((-exponent << form.mantissa) + (form.bias << form.mantissa), x.dtype)
    if low is None:
        fast = _sum_of_parts(e, fma(lost, shrink, f))
    else:
        whole, rest = quick_two_sum(f, (lost + low) * shrink)
        fast = _sum_of_parts(e, whole, rest)
    infinity = float("inf")
    slow = select(x < infinity, _sum_of_parts(e, f), x)
    slow = select(x.equals(-1.0), -infinity, select(x < -1.0, float("nan"), slow))
    (result,) = rarely(_outside(u, form.bias - 8), (slow,), (fast,))
    return copysign(result, x)


def _sum_of_parts(e: Scalar, f: Scalar, f_low: Scalar | None = None) -> Scalar:
    """e log(2) + log(1 + f + f_low)."""
    high, low = parts(LN2, f.dtype, 2, spare=11)
    rest = log1p_rest(f)
    if f_low is not None:
        rest = rest + fma(-f, f_low, f_low)
    return fma(e, high, f) + fma(e, low, rest)


def decompose(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(e, f, e as an integer) of a normal x."""
    form = format_of(x)
    offset = _SQRT_HALF_BITS[x.dtype.bits]
    shifted = bitcast(x, form.integer) - offset
    exponent = shifted >> form.mantissa
    mantissa = (shifted & ((1 << form.mantissa) - 1)) + offset
    return convert(exponent, x.dtype), bitcast(mantissa, x.dtype) - 1.0, exponent


def log1p_rest(f: Scalar) -> Scalar:
    """log(1 + f) - f for 1 + f in [sqrt(1/2), sqrt(2)]."""
    half_square = f * f * 0.5
    if f.dtype is F32:
        cube = (half_square + half_square) * f
        return fma(cube, polynomial(f, LOG_DIRECT[F32]), -half_square)
    s = f / (f + 2.0)
    z = s * s
    tail = z * polynomial(z, LOG_BY_DIVISION[f.dtype])
    return fma(s, half_square + tail, -half_square)


def _scaled_parts(f: Scalar, factor: Fraction) -> tuple[Scalar, Scalar]:
    """(f + rest) * factor in two parts."""
    high_factor, low_factor = parts(factor, f.dtype, 2)
    high = f * high_factor
    low = fma(f, high_factor, -high) + f * low_factor
    return high, fma(log1p_rest(f), high_factor, low)


def _everywhere(x: Scalar, core: _Core) -> Scalar:
    """`core` for normal operands; the others (0, negative, denormal, inf, NaN) are rare."""
    form = format_of(x)
    hard = _outside(x, form.bias + 1)
    lift = float(form.mantissa + 1)
    slow = core(x * 2.0**lift, lift)
    infinity = float("inf")
    slow = select(x < infinity, slow, x)
    slow = select(x.equals(0.0), -infinity, select(x < 0.0, float("nan"), slow))
    (result,) = rarely(hard, (slow,), (core(x, 0.0),))
    return result


def _outside(x: Scalar, exponent: int) -> Scalar:
    """True unless x is a normal number below 2**exponent."""
    form = format_of(x)
    unsigned: DType = U32 if x.dtype is F32 else U64
    least = 1 << form.mantissa
    return bitcast(x, unsigned) - least >= ((exponent + form.bias) << form.mantissa) - least
