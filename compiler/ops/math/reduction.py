"""Multiples of pi taken away from an angle: three products for usual ones, all bits for huge.

The remainder of |x| comes as high + low with the parity bits of the multiple. Huge angles follow
Payne and Hanek: the mantissa times the 192 bits of 2/pi that matter.
"""

from __future__ import annotations

from ...types import F32, F64, I32, I64, U64
from ..scalar import Scalar, bitcast, constant, convert, fma, lookup, mulhi, select
from .bits import format_of
from .constants import PI, parts
from .pairs import Pair, two_product, two_sum

# Up to this angle three parts of pi leave no error that shows.
LIMIT = {32: 1.0e5, 64: 2.0**30}

# 2/pi, 1216 bits behind the point.
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0"
    "06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4"
    "9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d"
    "7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)
_LEADING = 128  # zero bits put in front, for angles whose unit is a fraction
_WORDS = 21


def _table() -> tuple[int, ...]:
    total = _LEADING + 1216
    mask = (1 << 64) - 1
    return tuple((_TWO_OVER_PI >> (total - 64 * (i + 1))) & mask for i in range(_WORDS))


def take_away(a: Scalar, k: Scalar) -> Pair:
    """a - k * pi / 2 as high + low, for k exact in few bits."""
    first, second, third = parts(PI / 2, a.dtype, 3)
    product, product_low = two_product(k, constant(second, a.dtype))
    high, low = two_sum(fma(k, -first, a), -product)
    return high, fma(k, -third, low - product_low)


def take_away_rounded(a: Scalar, k: Scalar) -> Scalar:
    """a - k * pi / 2 in one number."""
    first, second, third = parts(PI / 2, a.dtype, 3)
    return fma(k, -third, fma(k, -second, fma(k, -first, a)))


def nearest(a: Scalar, per_unit: float) -> tuple[Scalar, Scalar]:
    """(k, bits): the integer nearest a * per_unit; the low bits of `bits` are that integer."""
    form = format_of(a)
    magic = 1.5 * 2.0**form.mantissa
    total = fma(a, per_unit, magic)
    return total - magic, bitcast(total, form.integer)


def huge(a: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    """(high, low, k) with a = k * pi / 2 + high + low, k right modulo 4."""
    product, below = _turns(convert(a, F64))
    k = (product + (1 << 61)) >> 62
    rest = bitcast(product - (k << 62), I64)
    count = convert(rest, F64)
    lost = convert(rest - convert(count, I64), F64)
    high, low = _times_half_pi(*two_sum(count, fma(convert(below, F64), 2.0**-64, lost)))
    index = bitcast(k, I64)
    if a.dtype is F32:
        narrow = convert(high, F32)
        return narrow, convert((high - convert(narrow, F64)) + low, F32), convert(index, I32)
    return high, low, index


def _turns(a: Scalar) -> tuple[Scalar, Scalar]:
    """a * 2/pi modulo 4 in two words: the first counts 2**-62, the second 2**-126."""
    bits = bitcast(a, U64)
    mantissa = (bits & ((1 << 52) - 1)) | (1 << 52)
    exponent = bitcast(bits >> 52, I64) - 1075
    # The first bit of 2/pi whose product does not vanish modulo 4.
    start = exponent + (_LEADING - 2)
    start = start & 0x7FF
    word, shift = start >> 6, bitcast(start & 63, U64)
    table = _table()
    last = constant(_WORDS - 4, I64)
    word = select(last < word, last, word)
    words = [lookup(word + i, table, U64) for i in range(4)]
    w2, w1, w0 = (
        (words[i] << shift) | (words[i + 1] >> (constant(64, U64) - shift)) for i in range(3)
    )
    middle = mantissa * w1
    low_high = mulhi(mantissa, w0)
    second = middle + low_high
    carry = convert(second < middle, U64)
    return mantissa * w2 + mulhi(mantissa, w1) + carry, second


def _times_half_pi(high: Scalar, low: Scalar) -> Pair:
    """(high + low) / 2**62 times pi / 2."""
    first, second = parts(PI / 2, F64, 2)
    product = high * first
    rest = fma(high, first, -product) + fma(high, second, low * first)
    total = product + rest
    return total * 2.0**-62, (rest - (total - product)) * 2.0**-62
