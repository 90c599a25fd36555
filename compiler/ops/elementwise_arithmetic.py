"""Sums, products, quotients, magnitudes, signs and extremes.

Conventions of the gradients here: at a tie `maximum`, `minimum`, `fmax`, `fmin` pass the whole
cotangent to their first operand; `abs` and `sign` have slope 0 at 0.
Not here: floor division and its relatives (elementwise_division), complex division and
magnitude (elementwise_complex holds their bodies).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import BOOL, F16, F32, I32, I64
from .definition import Facts, OpDef
from .math.complex_arithmetic import (
    complex_absolute,
    complex_divide,
    complex_reciprocal,
    complex_sign,
    not_below,
)
from .record import conjugate, dtype_of_value, literal, record, through, where_zero
from .scalar import (
    HALVES,
    Scalar,
    absolute,
    add,
    constant,
    convert,
    div,
    imag,
    is_nan,
    mul,
    neg,
    quot,
    real,
    select,
    sub,
)

Ct = Sequence[Any]


def add_body(a: Scalar, b: Scalar) -> Scalar:
    """a + b; `or` of bools."""
    return a | b if a.dtype is BOOL else add(a, b)


def mul_body(a: Scalar, b: Scalar) -> Scalar:
    """a * b; `and` of bools."""
    return a & b if a.dtype is BOOL else mul(a, b)


def div_body(a: Scalar, b: Scalar) -> Scalar:
    """a / b."""
    return complex_divide(a, b) if a.dtype.is_complex else div(a, b)


def abs_body(a: Scalar) -> Scalar:
    """Magnitude."""
    if a.dtype is BOOL or a.dtype.kind == "u":
        return a
    return complex_absolute(a) if a.dtype.is_complex else absolute(a)


def sign_body(a: Scalar) -> Scalar:
    """-1, 0 or 1; NaN stays."""
    if a.dtype.is_complex:
        return complex_sign(a)
    one = constant(1, a.dtype)
    if a.dtype.kind == "u":
        return select(a.differs(0), one, 0)
    signed = select(a > 0, one, select(a < 0, neg(one), 0))
    return select(is_nan(a), a, signed) if a.dtype.is_float else signed


def reciprocal_body(a: Scalar) -> Scalar:
    """1 / a; of integers truncated, 0 gives what x86 makes of it: 0, or the minimum of i32, i64."""
    one = constant(1, a.dtype)
    if a.dtype.is_integer:
        lowest = -(1 << (a.dtype.bits - 1)) if a.dtype in (I32, I64) else 0
        return select(a.equals(0), lowest, quot(one, a))
    return complex_reciprocal(a) if a.dtype.is_complex else one / a


def square_body(a: Scalar) -> Scalar:
    """a * a."""
    return mul(a, a)


def _extreme(larger: bool, nan_wins: bool) -> Callable[[Scalar, Scalar], Scalar]:
    """maximum, minimum, fmax or fmin. Equal operands: the second, of f16 and complex the first,
    as NumPy does it (it shows in the sign of a zero)."""

    def body(a: Scalar, b: Scalar) -> Scalar:
        if a.dtype is BOOL:
            return a | b if larger else a & b
        if not (a.dtype.is_float or a.dtype.is_complex):
            return select(b < a if larger else a < b, a, b)
        keep_a, nan_a, nan_b = _preference(a, b, larger)
        if nan_wins:
            # A NaN in b is kept by the comparison, which it makes false.
            return select(nan_a, a, select(keep_a, a, b))
        return select(nan_b, a, select(keep_a, a, b))

    return body


def _preference(a: Scalar, b: Scalar, larger: bool) -> tuple[Scalar, Scalar, Scalar]:
    """Whether a is taken, whether a is NaN, whether b is."""
    if a.dtype.is_complex:
        nan_a, nan_b = is_nan(real(a)) | is_nan(imag(a)), is_nan(real(b)) | is_nan(imag(b))
        return (not_below(a, b) if larger else not_below(b, a)), nan_a, nan_b
    if a.dtype in HALVES:
        x, y = convert(a, F32), convert(b, F32)
        above = y < x if larger else x < y
        return (above | x.equals(y) if a.dtype is F16 else above), is_nan(x), is_nan(y)
    return (b < a if larger else a < b), is_nan(a), is_nan(b)


def _add_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [cts[0], cts[0]]


def _sub_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [cts[0], emit.neg(cts[0])]


def _mul_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    a, b = node.operands
    return [emit.mul(cts[0], conjugate(emit, b)), emit.mul(cts[0], conjugate(emit, a))]


def _div_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    to_a = emit.div(cts[0], conjugate(emit, node.operands[1]))
    return [to_a, emit.neg(emit.mul(to_a, conjugate(emit, node.results[0])))]


def _abs_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    x = node.operands[0]
    slope = emit.sign(x)
    if dtype_of_value(x).is_complex:
        zero = literal(emit, cts[0], 0)
        return [emit.mul(emit.complex(cts[0], zero), slope)]
    return [emit.mul(cts[0], slope)]


def _abs_tangent(emit: Any, node: Any, tangents: Ct) -> Ct:
    """What of the tangent of a complex number lies along it."""
    slope = emit.sign(node.operands[0])
    along = emit.mul(conjugate(emit, slope), tangents[0])
    return [emit.real(along) if dtype_of_value(slope).is_complex else along]


def _sign_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    """None for a real number. z / |z| turns with z: the part of ct across it counts, by 1 / |z|."""
    z, y, ct = node.operands[0], node.results[0], cts[0]
    if not dtype_of_value(z).is_complex:
        return [None]
    along = emit.real(emit.mul(conjugate(emit, y), ct))
    zero = literal(emit, along, 0)
    across = emit.sub(ct, emit.mul(y, emit.complex(along, zero)))
    return [emit.div(across, emit.complex(emit.abs(z), zero))]


def _square_slope(emit: Any, x: Any, y: Any) -> Any:
    return emit.add(x, x)


def _reciprocal_slope(emit: Any, x: Any, y: Any) -> Any:
    return emit.neg(emit.square(y))


def _extreme_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    """The operand that is the result gets the cotangent, the first one at a tie."""
    a = node.operands[0]
    y = node.results[0]
    # A NaN in a came out unless fmax or fmin preferred b.
    first = emit.select(emit.not_equal(a, a), emit.not_equal(y, y), emit.equal(a, y))
    return [where_zero(emit, first, cts[0]),
            where_zero(emit, emit.logical_not(first), cts[0])]  # fmt: skip


def _heaviside_body(x: Scalar, middle: Scalar) -> Scalar:
    step = select(x < 0, constant(0, x.dtype), 1)
    return select(is_nan(x), x, select(x.equals(0), middle, step))


def _heaviside_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    at_zero = emit.equal(node.operands[0], literal(emit, node.operands[0], 0))
    return [None, where_zero(emit, at_zero, cts[0])]


_ORDERED = Facts(idempotent=True, monotone=True)

OPS: tuple[OpDef, ...] = (
    record("add", np.add, add_body, "Sum of two operands; of bools, their `or`.",
           gradient=_add_gradient,
           facts=Facts(commutative=True, identity=0, identity_kinds="biu")),
    record("sub", np.subtract, sub, "Difference of two operands.",
           gradient=_sub_gradient, facts=Facts(identity=0, identity_kinds="iufc")),
    record("mul", np.multiply, mul_body, "Product of two operands; of bools, their `and`.",
           gradient=_mul_gradient,
           facts=Facts(commutative=True, identity=1, identity_kinds="biuf")),
    record("div", np.divide, div_body,
           "Quotient of two operands. Complex ones by Smith's method, as NumPy.",
           gradient=_div_gradient, facts=Facts(identity=1, identity_kinds="f")),
    record("neg", np.negative, neg, "The operand with its sign changed; integers wrap.",
           gradient=lambda emit, node, cts: [emit.neg(cts[0])], facts=Facts(involution=True)),
    record("positive", np.positive, lambda x: x, "The operand itself.",
           gradient=lambda emit, node, cts: [cts[0]],
           canonical=lambda emit, operands, attrs: operands[0],
           facts=Facts(idempotent=True, involution=True, monotone=True)),
    record("abs", np.absolute, abs_body,
           "Magnitude. The least value of a signed type stays itself; slope 0 at 0.",
           gradient=_abs_gradient, tangent=_abs_tangent, facts=Facts(idempotent=True)),
    record("fabs", np.fabs, abs_body, "Magnitude of a real floating operand; slope 0 at 0.",
           gradient=_abs_gradient, tangent=_abs_tangent, facts=Facts(idempotent=True)),
    record("sign", np.sign, sign_body,
           "-1, 0 or 1 by sign; z / |z| of complex numbers; NaN stays NaN.",
           gradient=_sign_gradient, tangent=_sign_gradient, facts=Facts(idempotent=True)),
    record("square", np.square, square_body, "The operand times itself.",
           gradient=through(_square_slope)),
    record("reciprocal", np.reciprocal, reciprocal_body,
           "1 over the operand. Integers truncate; 1 over 0 is the least value of i32 and i64, "
           "0 of the other integers.",
           gradient=through(_reciprocal_slope)),
    record("maximum", np.maximum, _extreme(True, True),
           "The larger operand; NaN if either is NaN. At a tie the gradient goes to the first.",
           gradient=_extreme_gradient, facts=_ORDERED,
           exact_halves=True),
    record("minimum", np.minimum, _extreme(False, True),
           "The smaller operand; NaN if either is NaN. At a tie the gradient goes to the first.",
           gradient=_extreme_gradient, facts=_ORDERED,
           exact_halves=True),
    record("fmax", np.fmax, _extreme(True, False),
           "The larger operand, a NaN only where both are. Ties: the gradient goes to the first.",
           gradient=_extreme_gradient, facts=_ORDERED,
           exact_halves=True),
    record("fmin", np.fmin, _extreme(False, False),
           "The smaller operand, a NaN only where both are. Ties: the gradient goes to the first.",
           gradient=_extreme_gradient, facts=_ORDERED,
           exact_halves=True),
    record("heaviside", np.heaviside, _heaviside_body,
           "0 below zero, 1 above, the second operand at zero; NaN stays NaN.",
           gradient=_heaviside_gradient),
)  # fmt: skip
