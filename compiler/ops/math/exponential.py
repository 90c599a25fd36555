"""exp, exp2, expm1: x = k log(2) + r, a polynomial in r, then the exponent is put back.

The integer k is found by adding 1.5 * 2**mantissa, whose sum has k in its low bits.
"""

from __future__ import annotations

from ...types import F32, DType
from ..scalar import Scalar, absolute, bitcast, constant, fma, scale, select
from .bits import format_of
from .coefficients import EXP, EXP2, EXPM1
from .constants import LN2, parts
from .polynomial import polynomial

# Beyond these the result is 0 or infinite whatever the operand.
_LEAST = {32: -105.0, 64: -746.0}
_MOST = {32: 89.0, 64: 710.0}


def exp(x: Scalar) -> Scalar:
    """e**x."""
    r, k, _ = reduced(clamped(x, _LEAST[x.dtype.bits], _MOST[x.dtype.bits]))
    return scale(exp_polynomial(r), k)


def exp_polynomial(r: Scalar) -> Scalar:
    """e**r for |r| <= log(2) / 2."""
    if r.dtype is F32:
        return polynomial(r, (1.0, 1.0, *EXP[F32]))
    return exp_less_one(r) + 1.0


def exp_less_one(r: Scalar) -> Scalar:
    """e**r - 1 for |r| <= log(2) / 2, its error small beside 1."""
    return fma(r * r, polynomial(r, EXP[r.dtype]), r)


def exp2(x: Scalar) -> Scalar:
    """2**x."""
    form = format_of(x)
    top = float(form.bias + 1)
    x = clamped(x, -top - form.mantissa, top)
    k = (x + _magic(x.dtype)) - _magic(x.dtype)
    return scale(exp2_polynomial(x - k), k)


def exp2_polynomial(r: Scalar) -> Scalar:
    """2**r for |r| <= 1/2."""
    return fma(r, polynomial(r, EXP2[r.dtype]), 1.0)


def expm1(x: Scalar) -> Scalar:
    """e**x - 1, also near 0."""
    r, _, sum_bits = reduced(clamped(x, -60.0, _MOST[x.dtype.bits]))
    form = format_of(x)
    p = fma(r * r, polynomial(r, EXPM1[x.dtype]), r)
    # s = 2**(k-1): in range even where 2**k is not.
    s = bitcast((sum_bits + (form.bias - 1)) << form.mantissa, x.dtype)
    result = fma(p, s, s - 0.5) * 2.0
    return select(absolute(x) < 2.0 ** -(form.mantissa + 2), x, result)


def reduced(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(r, k, bits) with x = k log(2) + r; the low bits of `bits` are k as an integer."""
    form = format_of(x)
    magic = _magic(x.dtype)
    total = fma(x, 1.4426950408889634, magic)
    k = total - magic
    high, low = parts(LN2, x.dtype, 2, spare=10)
    r = fma(k, -low, fma(k, -high, x))
    return r, k, bitcast(total, form.integer)


def clamped(x: Scalar, least: float, most: float) -> Scalar:
    """x within bounds; NaN stays."""
    low, high = constant(least, x.dtype), constant(most, x.dtype)
    x = select(high < x, high, x)
    return select(low > x, low, x)


def _magic(dtype: DType) -> float:
    return 1.5 * 2.0 ** (23 if dtype is F32 else 52)
