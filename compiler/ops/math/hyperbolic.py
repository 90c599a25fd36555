"""sinh, cosh, tanh and their inverses."""

from __future__ import annotations

from ...types import F32
from ..scalar import Scalar, absolute, bitcast, constant, copysign, fma, select, sqrt
from .bits import format_of
from .coefficients import COSH, EXP_TWICE, SINH, TANH
from .constants import LN2, parts
from .exponential import clamped, reduced
from .logarithm import log, log1p_of_pair
from .pairs import quick_two_sum, two_product
from .polynomial import polynomial


def sinh(x: Scalar) -> Scalar:
    """Hyperbolic sine: odd and even parts of e**r, put together with 2**k and 2**-k."""
    even, odd, up, down = _halves(x)
    difference = up - down
    product, product_low = two_product(odd, up + down)
    total, total_low = quick_two_sum(difference, product)
    # Below k = 1 the difference is 0 and the product is the sum.
    result = (total + fma(even, difference, product_low + total_low)) * 2.0
    return select(absolute(x) < 2.0**-30, x, copysign(result, x))


def cosh(x: Scalar) -> Scalar:
    """Hyperbolic cosine."""
    even, odd, up, down = _halves(x)
    total = up + down
    return (total + fma(even, total, odd * (up - down))) * 2.0


def _halves(x: Scalar) -> tuple[Scalar, Scalar, Scalar, Scalar]:
    """(cosh(r) - 1, sinh(r), 2**k / 4, 2**-k / 4) for |x| = k log(2) + r."""
    form = format_of(x)
    a = clamped(absolute(x), 0.0, 89.6 if x.dtype.bits == 32 else 710.6)
    r, _, bits = reduced(a)
    z = r * r
    even = z * polynomial(z, COSH[x.dtype])
    odd = fma(r * z, polynomial(z, SINH[x.dtype]), r)
    up = bitcast((bits + (form.bias - 2)) << form.mantissa, x.dtype)
    # 2**-k vanishes beside 2**k long before its exponent leaves the range.
    count = bits << form.mantissa
    down = bitcast(constant((form.bias - 2) << form.mantissa, form.integer) - count, x.dtype)
    down = select(a > 40.0, constant(0.0, x.dtype), down)
    return even, odd, up, down


def tanh(x: Scalar) -> Scalar:
    """Hyperbolic tangent: a polynomial near 0, then 1 - 2 / (e**(2|x|) + 1)."""
    form = format_of(x)
    a = absolute(x)
    limit = 10.0 if x.dtype is F32 else 20.0
    inside = select(a > limit, constant(limit, x.dtype), a)
    # One part of log(2) is enough: what e**2x lacks, the result does not feel.
    magic = 1.5 * 2.0**form.mantissa
    total = fma(inside, 2.8853900817779268, magic)
    r = fma(total - magic, -float(LN2) / 2, inside)
    p = polynomial(r, (1.0, *EXP_TWICE[x.dtype]))
    power = bitcast(bitcast(p, form.integer) + (bitcast(total, form.integer) << form.mantissa),
                    x.dtype)  # fmt: skip
    far = fma(1.0 / (power + 1.0), -2.0, 1.0)
    z = x * x
    near = fma(a, z * polynomial(z, TANH[x.dtype]), a)
    return copysign(select(a >= 0.6, far, near), x)


def arcsinh(x: Scalar) -> Scalar:
    """Inverse hyperbolic sine."""
    a = absolute(x)
    large = a > 2.0**30
    inside = select(large, constant(1.0, x.dtype), a)
    square = inside * inside
    small = log1p_of_pair(*quick_two_sum(inside, square / (sqrt(square + 1.0) + 1.0)))
    return copysign(select(large, _log_of_twice(a), small), x)


def arccosh(x: Scalar) -> Scalar:
    """Inverse hyperbolic cosine; NaN below 1."""
    large = x > 2.0**30
    t = select(large, constant(1.0, x.dtype), x - 1.0)
    square = fma(t, t, t + t)
    root = sqrt(square)
    lost = fma(-root, root, square) * 0.5 / select(root.equals(0.0), 1.0, root)
    high, low = quick_two_sum(root, t)
    small = log1p_of_pair(high, low + lost)
    return select(x < 1.0, float("nan"), select(large, _log_of_twice(x), small))


def arctanh(x: Scalar) -> Scalar:
    """Inverse hyperbolic tangent."""
    a = absolute(x)
    inside = select(a < 1.0, a, constant(0.5, x.dtype))
    doubled = inside + inside
    # 2a / (1 - a) in two parts.
    divisor = 1.0 - inside
    divisor_low = (1.0 - divisor) - inside
    inverse = 1.0 / divisor
    ratio = doubled * inverse
    ratio_low = (fma(-ratio, divisor, doubled) - ratio * divisor_low) * inverse
    found = log1p_of_pair(ratio, ratio_low) * 0.5
    edge = select(a.equals(1.0), constant(float("inf"), x.dtype), float("nan"))
    tiny = a < 2.0**-30
    return select(tiny, x, copysign(select(a < 1.0, found, edge), x))


def _log_of_twice(x: Scalar) -> Scalar:
    return log(x) + parts(LN2, x.dtype, 1)[0]
