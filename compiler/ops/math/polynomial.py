"""Polynomials as few fused multiply-adds, with enough of them independent of each other."""

from __future__ import annotations

from collections.abc import Sequence

from ..scalar import Scalar, constant, fma

# Up to this degree a plain Horner chain: a loop over arrays has other lanes to work on meanwhile.
_CHAIN = 6


def polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """sum(c[i] * x**i); longer ones as two chains in x**2 that run side by side.

    Where the even and odd halves are large and cancel, `chain` is the better one.
    """
    if len(coefficients) <= _CHAIN + 1:
        return chain(x, coefficients)
    square = x * x
    even, odd = chain(square, coefficients[0::2]), chain(square, coefficients[1::2])
    return fma(odd, x, even)


def chain(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """sum(c[i] * x**i) by Horner's rule."""
    total = constant(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, c)
    return total
