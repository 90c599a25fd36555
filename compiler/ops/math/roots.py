"""Cube root, and the length of a vector."""

from __future__ import annotations

from ...types import F32
from ..scalar import (
    Scalar,
    absolute,
    constant,
    convert,
    copysign,
    fma,
    is_nan,
    scale,
    select,
    sqrt,
)
from .bits import split
from .coefficients import CBRT
from .polynomial import polynomial


def cbrt(x: Scalar) -> Scalar:
    """Cube root, without division: z near m**(-1/3) is refined, then m z**2 corrected."""
    a = absolute(x)
    m, e = split(a)
    # e + 1200 is positive and small: a product and a shift divide it by 3.
    third = ((e + 1200) * 43691) >> 17
    rest = e + 1200 - third * 3
    z = polynomial(m, CBRT[x.dtype])
    one, two = rest.equals(1), rest.equals(2)
    unit = constant(1.0, x.dtype)
    z = z * select(one, unit * 2 ** (-1 / 3), select(two, unit * 4 ** (-1 / 3), unit))
    m = select(one, m + m, select(two, m * 4.0, m))
    h = fma(-(z * z), z * m, 1.0)
    z = fma(z * h, fma(h, 2 / 9, 1 / 3), z)
    square = z * z
    y = m * square
    # (m - y**3) / (3 y**2), with z**2 for 1 / y**2.
    y = fma(fma(-(y * y), y, m) * square, 1 / 3, y)
    root = scale(y, convert(third - 400, x.dtype))
    ordinary = (a > 0.0) & (a < float("inf"))
    return copysign(select(ordinary, root, a), x)


def hypot(a: Scalar, b: Scalar) -> Scalar:
    """The length of the vector (a, b); an infinity wins over a NaN."""
    infinity = float("inf")
    x, y = absolute(a), absolute(b)
    swap = x < y
    high, low = select(swap, y, x), select(swap, x, y)
    # Bring the larger one near 1 where its square, or the smaller one's, would be lost.
    span = 40.0 if a.dtype is F32 else 480.0
    up, down = high < 2.0**-span, high > 2.0**span
    one = constant(1.0, a.dtype)
    grow, shrink = 2.0 ** (2 * span), 2.0 ** (-2 * span)
    factor = select(up, grow * one, select(down, shrink * one, one))
    undo = select(up, shrink * one, select(down, grow * one, one))
    length = _root_of_squares(high * factor, low * factor) * undo
    infinite = x.equals(infinity) | y.equals(infinity)
    return select(infinite, infinity, select(is_nan(x), x, select(is_nan(y), y, length)))


def _root_of_squares(high: Scalar, low: Scalar) -> Scalar:
    """sqrt(high**2 + low**2), the sum kept in two parts so that one rounding remains."""
    square = high * high
    rest = fma(high, high, -square)
    other = low * low
    total = square + other
    error = ((square - total) + other) + (fma(low, low, -other) + rest)
    root = sqrt(total)
    # One Newton step on what total leaves out; root is 0 only for 0.
    safe = select(root.equals(0.0), constant(1.0, root.dtype), root)
    correction = (fma(-root, root, total) + error) / (safe + safe)
    return root + correction
