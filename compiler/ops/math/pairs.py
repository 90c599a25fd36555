"""Unevaluated sums of two numbers, high + low, for what one number cannot hold."""

from __future__ import annotations

from ..scalar import Scalar, fma

Pair = tuple[Scalar, Scalar]


def two_sum(a: Scalar, b: Scalar) -> Pair:
    """a + b exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def quick_two_sum(a: Scalar, b: Scalar) -> Pair:
    """a + b exactly, for |a| >= |b| or a = 0."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Scalar, b: Scalar) -> Pair:
    """a * b exactly."""
    product = a * b
    return product, fma(a, b, -product)


def pair_product(a: Pair, b: Pair) -> Pair:
    """a * b to about twice the format's digits, not renormalised."""
    high, low = two_product(a[0], b[0])
    return high, fma(a[1], b[0], fma(a[0], b[1], low))
