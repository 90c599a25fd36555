"""Comparisons, logic, and questions about a number.

Mixed i64/u64 comparisons compare the integers themselves. Complex numbers are ordered by real
part, then imaginary part, as NumPy orders them.
Not here: bitwise logic (elementwise_bits).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..types import BOOL, I64, U64
from .definition import Facts, OpDef
from .record import record
from .scalar import Scalar, absolute, bitcast, constant, convert, eq, imag, is_nan, ne, real

Comparison = Callable[[Scalar, Scalar], Scalar]


def _less(a: Scalar, b: Scalar) -> Scalar:
    if a.dtype is BOOL:
        return ~a & b
    if a.dtype.is_complex:
        return _ordered_by_parts(a, b, lambda x, y: x < y)
    if a.dtype is not b.dtype:
        return _mixed(a, b, lambda x, y: x < y)
    return a < b


def _less_equal(a: Scalar, b: Scalar) -> Scalar:
    if a.dtype is BOOL:
        return ~a | b
    if a.dtype.is_complex:
        return _ordered_by_parts(a, b, lambda x, y: x <= y)
    if a.dtype is not b.dtype:
        return _mixed(a, b, lambda x, y: x <= y)
    return a <= b


def _equal(a: Scalar, b: Scalar) -> Scalar:
    if a.dtype is BOOL:
        return ~(a ^ b)
    if a.dtype is not b.dtype:
        return bitcast(a, U64).equals(bitcast(b, U64)) & (_signed_of(a, b) >= 0)
    return eq(a, b)


def _not_equal(a: Scalar, b: Scalar) -> Scalar:
    if a.dtype is BOOL:
        return a ^ b
    return ~_equal(a, b) if a.dtype is not b.dtype else ne(a, b)


def _ordered_by_parts(a: Scalar, b: Scalar, last: Comparison) -> Scalar:
    """Real parts decide, equal ones leave it to the imaginary parts; NaN compares false."""
    ar, ai, br, bi = real(a), imag(a), real(b), imag(b)
    decided = (ar < br) & ~is_nan(ai) & ~is_nan(bi)
    return decided | (eq(ar, br) & last(ai, bi))


def _mixed(a: Scalar, b: Scalar, compare: Comparison) -> Scalar:
    """An i64 with a u64: a negative one is below every unsigned number."""
    unsigned = compare(bitcast(a, U64), bitcast(b, U64))
    if a.dtype is I64:
        return (a < 0) | unsigned
    return (b >= 0) & unsigned


def _signed_of(a: Scalar, b: Scalar) -> Scalar:
    return a if a.dtype is I64 else b


def _flipped(compare: Comparison) -> Comparison:
    return lambda a, b: compare(b, a)


def _logical(combine: Comparison) -> Comparison:
    return lambda a, b: combine(convert(a, BOOL), convert(b, BOOL))


def isnan_body(x: Scalar) -> Scalar:
    """True for a NaN, in either part."""
    if x.dtype.is_complex:
        return is_nan(real(x)) | is_nan(imag(x))
    return is_nan(x) if x.dtype.is_float else constant(False, BOOL)


def isinf_body(x: Scalar) -> Scalar:
    """True for an infinity, in either part."""
    if x.dtype.is_complex:
        return isinf_body(real(x)) | isinf_body(imag(x))
    return absolute(x).equals(float("inf")) if x.dtype.is_float else constant(False, BOOL)


def isfinite_body(x: Scalar) -> Scalar:
    """True for what is neither NaN nor infinite, in both parts."""
    if x.dtype.is_complex:
        return isfinite_body(real(x)) & isfinite_body(imag(x))
    return absolute(x) < float("inf") if x.dtype.is_float else constant(True, BOOL)


_SYMMETRIC = Facts(commutative=True, differentiable=False)
_BOOLEAN = Facts(commutative=True, associative=True, differentiable=False)

OPS: tuple[OpDef, ...] = (
    record("equal", np.equal, _equal, "True where the operands are equal.", facts=_SYMMETRIC),
    record("not_equal", np.not_equal, _not_equal,
           "True where the operands differ; a NaN differs from everything.", facts=_SYMMETRIC),
    record("less", np.less, _less, "True where the first operand is below the second."),
    record("less_equal", np.less_equal, _less_equal,
           "True where the first operand is not above the second."),
    record("greater", np.greater, _flipped(_less),
           "True where the first operand is above the second."),
    record("greater_equal", np.greater_equal, _flipped(_less_equal),
           "True where the first operand is not below the second."),
    record("logical_and", np.logical_and, _logical(lambda a, b: a & b),
           "True where both operands are non-zero.", facts=_BOOLEAN),
    record("logical_or", np.logical_or, _logical(lambda a, b: a | b),
           "True where an operand is non-zero.", facts=_BOOLEAN),
    record("logical_xor", np.logical_xor, _logical(lambda a, b: a ^ b),
           "True where exactly one operand is non-zero.", facts=_BOOLEAN),
    record("logical_not", np.logical_not, lambda x: ~convert(x, BOOL),
           "True where the operand is zero."),
    record("isnan", np.isnan, isnan_body, "True for a NaN."),
    record("isinf", np.isinf, isinf_body, "True for an infinity of either sign."),
    record("isfinite", np.isfinite, isfinite_body, "True for what is neither NaN nor infinite."),
)  # fmt: skip
