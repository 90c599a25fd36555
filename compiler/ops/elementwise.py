"""All elementwise ops, gathered from their families.

Not here: the records (elementwise_*.py), other structures of ops.
"""

from __future__ import annotations

from . import (
    elementwise_arithmetic,
    elementwise_bits,
    elementwise_cast,
    elementwise_comparison,
    elementwise_complex,
    elementwise_division,
    elementwise_exponential,
    elementwise_gamma,
    elementwise_gradient,
    elementwise_rounding,
    elementwise_special,
    elementwise_stable,
    elementwise_trigonometric,
)
from .definition import OpDef

ELEMENTWISE: tuple[OpDef, ...] = (
    *elementwise_arithmetic.OPS,
    *elementwise_division.OPS,
    *elementwise_comparison.OPS,
    *elementwise_bits.OPS,
    *elementwise_rounding.OPS,
    *elementwise_cast.OPS,
    *elementwise_complex.OPS,
    *elementwise_exponential.OPS,
    *elementwise_trigonometric.OPS,
    *elementwise_gradient.OPS,
    *elementwise_stable.OPS,
    *elementwise_special.OPS,
    *elementwise_gamma.OPS,
)
