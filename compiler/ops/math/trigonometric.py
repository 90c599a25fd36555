"""sin, cos, tan and their inverses."""

from __future__ import annotations

from ...types import BOOL
from ..scalar import (
    Scalar,
    absolute,
    bitcast,
    constant,
    copysign,
    fma,
    is_nan,
    rarely,
    select,
    sqrt,
)
from .bits import format_of
from .coefficients import ASIN, ATAN, COS_SMALL, SIN_SMALL
from .constants import PI, parts
from .pairs import quick_two_sum
from .polynomial import polynomial
from .reduction import LIMIT, huge, nearest, take_away, take_away_rounded

TWO_OVER_PI = 0.6366197723675814


def sin(x: Scalar) -> Scalar:
    """Sine."""
    r, quadrant = _angle(x)
    sign = ((quadrant & 2) << (quadrant.dtype.bits - 2)) ^ _sign_of(x)
    return _flip(_sine_or_cosine(r, quadrant), sign)


def cos(x: Scalar) -> Scalar:
    """Cosine: the sine a quarter turn on."""
    r, quadrant = _angle(x)
    quadrant = quadrant + 1
    return _flip(_sine_or_cosine(r, quadrant), (quadrant & 2) << (quadrant.dtype.bits - 2))


def _angle(x: Scalar) -> tuple[Scalar, Scalar]:
    """(r, k modulo 4) with |x| = k pi/2 + r and |r| <= pi/4."""
    a = absolute(x)
    k, bits = nearest(a, TWO_OVER_PI)
    r = take_away_rounded(a, k)
    high, low, huge_bits = huge(a)
    r, bits = rarely(_too_large(a), (_finite_or_nan(a, high + low), huge_bits), (r, bits))
    return r, bits


def _sine_or_cosine(r: Scalar, quadrant: Scalar) -> Scalar:
    """cos(r) in odd quadrants, else sin(r)."""
    z = r * r
    sine = fma(r, z * polynomial(z, SIN_SMALL[r.dtype]), r)
    cosine = fma(z * z, polynomial(z, COS_SMALL[r.dtype]), fma(z, -0.5, 1.0))
    return select((quadrant & 1).differs(0), cosine, sine)


def tan(x: Scalar) -> Scalar:
    """Tangent: sin(r) / cos(r), or -cos(r) / sin(r) after an odd number of quarter turns."""
    a = absolute(x)
    k, bits = nearest(a, TWO_OVER_PI)
    high, low = take_away(a, k)
    high, low, bits = rarely(_too_large(a), huge(a), (high, low, bits))
    high = _finite_or_nan(a, high)
    z = high * high
    sine = quick_two_sum(high, fma(high, z * polynomial(z, SIN_SMALL[x.dtype]), low))
    half = z * 0.5
    near = 1.0 - half
    tail = fma(z * z, polynomial(z, COS_SMALL[x.dtype]), ((1.0 - near) - half) - high * low)
    cosine = quick_two_sum(near, tail)
    odd = (bits & 1).differs(0)
    upper, upper_low = (select(odd, -c, s) for s, c in zip(sine, cosine))
    lower, lower_low = (select(odd, s, c) for s, c in zip(sine, cosine))
    inverse = 1.0 / lower
    quotient = upper * inverse
    rest = fma(-quotient, lower, upper) + fma(-quotient, lower_low, upper_low)
    # A tangent too large for `rest` to mean anything does not occur; 1/0 does, for NaN only.
    return _flip(fma(rest, inverse, quotient), _sign_of(x))


def _too_large(a: Scalar) -> Scalar:
    return ~(a < LIMIT[a.dtype.bits])


def _finite_or_nan(a: Scalar, r: Scalar) -> Scalar:
    return select(a < float("inf"), r, float("nan"))


def _sign_of(x: Scalar) -> Scalar:
    integer = format_of(x).integer
    return bitcast(x, integer) & (-1 << (integer.bits - 1))


def _flip(x: Scalar, sign: Scalar) -> Scalar:
    """x with its sign changed where the sign bit of `sign` is set."""
    return bitcast(bitcast(x, sign.dtype) ^ sign, x.dtype)


def arcsin(x: Scalar) -> Scalar:
    """Inverse sine; beyond 1/2 by way of the half angle."""
    a = absolute(x)
    large = a > 0.5
    _, root, tail = _arcsine_core(a, large)
    high, low = parts(PI / 2, x.dtype, 2)
    doubled = root + root
    rough = high - doubled
    lost = (high - rough) - doubled
    near_one = rough - fma(doubled, tail, -low - lost)
    return copysign(select(large, near_one, fma(root, tail, root)), x)


def arccos(x: Scalar) -> Scalar:
    """Inverse cosine."""
    a = absolute(x)
    large = a > 0.5
    z, root, tail = _arcsine_core(a, large)
    high, low = parts(PI / 2, x.dtype, 2)
    turn_high, turn_low = parts(PI, x.dtype, 2)
    # What the square root lost: z - root**2 over 2 root. Where z is 0, so is the root.
    lost = fma(-root, root, z) / select(root.equals(0.0), constant(1.0, x.dtype), root)
    doubled = fma(root * 2.0, tail, lost) + root * 2.0
    by_half = select(x < 0.0, turn_high - (doubled - turn_low), doubled)
    signed = copysign(root, x)
    direct = high - (signed + fma(signed, tail, -low))
    return select(large, by_half, direct)


def _arcsine_core(a: Scalar, large: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(z, r, t) with arcsin(r) = r + r t and z = r**2; r is a, or sqrt((1 - a) / 2) if large."""
    z = select(large, fma(a, -0.5, 0.5), a * a)
    root = select(large, sqrt(z), a)
    return z, root, z * polynomial(z, ASIN[a.dtype])


def arctan(x: Scalar) -> Scalar:
    """Inverse tangent, brought below tan(pi/8) by turning by pi/4 or pi/2."""
    a = absolute(x)
    one = constant(1.0, x.dtype)
    far, middle = a > 2.414213562373095, a > 0.4142135623730950
    upper = select(far, -one, select(middle, a - 1.0, a))
    lower = select(far, a, select(middle, a + 1.0, one))
    t = upper / lower
    return copysign(_turned(t, far, middle), x)


def _turned(t: Scalar, far: Scalar, middle: Scalar) -> Scalar:
    """arctan(t) for |t| <= tan(pi/8), plus pi/2 where `far`, else pi/4 where `middle`."""
    half, half_low = parts(PI / 2, t.dtype, 2)
    quarter, quarter_low = parts(PI / 4, t.dtype, 2)
    nothing = constant(0.0, t.dtype)
    base = select(far, constant(half, t.dtype), select(middle, constant(quarter, t.dtype), nothing))
    base_low = select(
        far, constant(half_low, t.dtype), select(middle, constant(quarter_low, t.dtype), nothing)
    )
    z = t * t
    return base + (t + fma(t, z * polynomial(z, ATAN[t.dtype]), base_low))


def arctan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y), in all four quadrants, zeros and infinities included."""
    across, up = absolute(x), absolute(y)
    steep = up > across
    high, low = select(steep, up, across), select(steep, across, up)
    infinity = float("inf")
    one, nothing = constant(1.0, x.dtype), constant(0.0, x.dtype)
    # high + low must not overflow, high * tan(pi/8) not round coarsely.
    least = format_of(x).least_normal
    factor = select(high > 1.0 / least, one * 0.25, one)
    factor = select(high < least * 2.0**30, one * 2.0**60, factor)
    high, low = high * factor, low * factor
    both = low.equals(infinity)
    high, low = select(both, one, high), select(both, one, low)
    middle = low > high * 0.4142135623730950
    upper = select(middle, low - high, low)
    lower = select(middle, high + low, high)
    t = select(high.equals(0.0), nothing, upper / lower)
    angle = _turned(t, constant(False, BOOL), middle)
    negative = bitcast(x, format_of(x).integer) < 0
    base, base_low = (
        select(steep, half * one, select(negative, whole * one, nothing))
        for half, whole in zip(parts(PI / 2, x.dtype, 2), parts(PI, x.dtype, 2))
    )
    # From either axis the angle is rounded once: pi/2 exactly, from both sides of it.
    angle = base + (select(steep ^ negative, -angle, angle) + base_low)
    invalid = is_nan(x) | is_nan(y)
    return select(invalid, x + y, copysign(angle, y))
