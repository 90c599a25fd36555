"""The bits of floating numbers: formats, exponents, mantissas.

Not here: conversions (a word does them).
"""

from __future__ import annotations

from ...records import dataclass
from ...types import BF16, F16, F32, F64, I16, I32, I64, DType
from ..scalar import Scalar, bitcast, constant, select


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: the integer of its width, stored mantissa bits, exponent bias."""

    integer: DType
    mantissa: int
    bias: int

    @property
    def infinity(self) -> int:
        """The bits of infinity."""
        return (2 * self.bias + 1) << self.mantissa

    @property
    def least_normal(self) -> float:
        """The least normal number."""
        return float(2.0 ** (1 - self.bias))


FORMATS: dict[DType, Format] = {
    F16: Format(I16, 10, 15),
    BF16: Format(I16, 7, 127),
    F32: Format(I32, 23, 127),
    F64: Format(I64, 52, 1023),
}


def format_of(x: Scalar) -> Format:
    """The format of a float scalar."""
    return FORMATS[x.dtype]


def split(x: Scalar) -> tuple[Scalar, Scalar]:
    """(m, e) with x = m * 2**e and 1 <= m < 2, e an integer scalar, for finite x > 0."""
    form = format_of(x)
    small = x < form.least_normal
    lift = form.mantissa + 1
    bits = bitcast(select(small, x * 2.0**lift, x), form.integer)
    exponent = (bits >> form.mantissa) - select(
        small, constant(form.bias + lift, form.integer), form.bias
    )
    mantissa = (bits & ((1 << form.mantissa) - 1)) | (form.bias << form.mantissa)
    return bitcast(mantissa, x.dtype), exponent


def sign_bit(x: Scalar) -> Scalar:
    """True where the sign bit is set, NaN and -0 included."""
    return bitcast(x, format_of(x).integer) < 0
