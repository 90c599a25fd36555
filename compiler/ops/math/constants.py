"""Constants in several parts, each part the rounding of what the former ones leave."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ...types import F32, DType

# Scaled by 2**-200, far beyond what any part needs.
_LN2 = 0xB17217F7D1CF79ABC9E3B39803F2F6AF40F343267298B62D8A
_LN10 = 0x24D763776AAA2B05BA95B58AE0B4C28A38A3FB3E76977E43A0F
_PI = 0x3243F6A8885A308D313198A2E03707344A4093822299F31D008


def _scaled(numerator: int) -> Fraction:
    return Fraction(numerator, 1 << 200)


LN2 = _scaled(_LN2)
LN10 = _scaled(_LN10)
PI = _scaled(_PI)


def parts(value: Fraction, dtype: DType, count: int, spare: int = 0) -> tuple[float, ...]:
    """`count` numbers of `dtype` that add up to `value`; the first leaves `spare` low bits 0."""
    kind = np.float32 if dtype is F32 else np.float64
    digits = (24 if dtype is F32 else 53) - spare
    found = []
    for index in range(count):
        piece = _rounded(value, digits) if index == 0 and spare else float(kind(float(value)))
        found.append(piece)
        value -= Fraction(piece)
    return tuple(found)


def _rounded(value: Fraction, digits: int) -> float:
    exponent = 0
    while abs(value) * Fraction(2) ** -exponent >= 1:
        exponent += 1
    while abs(value) * Fraction(2) ** -exponent < Fraction(1, 2):
        exponent -= 1
    unit = Fraction(2) ** (exponent - digits)
    return float(round(value / unit) * unit)
