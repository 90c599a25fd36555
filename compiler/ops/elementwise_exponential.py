"""Exponentials, logarithms, powers and roots.

Conventions of the gradients: a zero cotangent passes zero back, also where the slope is infinite
or undefined, so what a select discards stays discarded. x**0 has slope 0 in x everywhere, x**1
slope 1; 0**y has slope 0 in y for y > 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .definition import Facts, OpDef
from .math import complex_functions as c
from .math.constants import LN2, LN10
from .math.exponential import exp, exp2, expm1
from .math.logarithm import log, log1p, log2, log10
from .math.power import power
from .math.roots import cbrt, hypot
from .record import (
    conjugate,
    dtype_of_value,
    literal,
    real_or_complex,
    record,
    through,
    where_zero,
)
from .scalar import Scalar, constant, is_nan, loop, select, sqrt

Ct = Sequence[Any]
_LN2, _LN10 = float(LN2), float(LN10)


def integer_power(base: Scalar, exponent: Scalar) -> Scalar:
    """base**exponent by squaring, wrapping; 1 where the exponent is negative."""
    one = constant(1, base.dtype)
    return loop(
        (one, base, exponent),
        lambda total, square, left: left > 0,
        lambda total, square, left: (
            select((left & 1).differs(0), total * square, total), square * square, left >> 1,
        ),
    )[0]  # fmt: skip


def power_body(a: Scalar, b: Scalar) -> Scalar:
    """a**b of any one dtype."""
    if a.dtype.is_integer:
        return integer_power(a, b)
    return c.complex_power(a, b) if a.dtype.is_complex else power(a, b)


def power_array(a: Any, b: Any) -> Any:
    """NumPy's power; integers to a negative power, which NumPy refuses, give 1."""
    if np.asarray(b).dtype.kind == "i":
        b = np.maximum(b, np.zeros((), np.asarray(b).dtype))
    made = np.power(a, b)
    if np.result_type(made).char in "fd":  # for one exponent of 0.5 NumPy takes the root instead
        odd = (np.asarray(b) == 0.5) & ((np.asarray(a) == 0) | (np.asarray(a) == -np.inf))
        made = np.where(odd, np.abs(a), made)
    return made


def logaddexp_body(x: Scalar, y: Scalar) -> Scalar:
    """log(e**x + e**y), NumPy's order of operations."""
    return _log_add(x, y, lambda d: log1p(exp(d)), _LN2)


def logaddexp2_body(x: Scalar, y: Scalar) -> Scalar:
    """log2(2**x + 2**y)."""
    return _log_add(x, y, lambda d: log1p(exp2(d)) * (1 / _LN2), 1.0)


def _log_add(x: Scalar, y: Scalar, tail: Any, at_equal: float) -> Scalar:
    above = x > y
    high, low = select(above, x, y), select(above, y, x)
    difference = low - high
    made = high + tail(difference)
    made = select(is_nan(difference), difference, made)
    return select(x.equals(y), x + at_equal, made)


def _power_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    a, b = node.operands
    ct, y = cts[0], node.results[0]
    zero, one = literal(emit, a, 0), literal(emit, a, 1)
    flat = emit.equal(b, zero)
    # b * a**(b-1), with the exponent 1 where b is 0: the product is 0 then, not 0 * inf.
    lowered = emit.power(a, emit.select(flat, one, emit.sub(b, one)))
    to_a = emit.mul(ct, conjugate(emit, emit.mul(b, lowered)))
    to_a = where_zero(emit, emit.logical_not(flat), to_a)
    if dtype_of_value(a).is_complex:
        at_zero = emit.equal(a, zero)
    else:
        at_zero = emit.less_equal(a, zero)
    # Below zero there is no derivative in the exponent; at zero it is 0.
    logarithm = emit.log(emit.select(at_zero, one, a))
    return [to_a, emit.mul(ct, conjugate(emit, emit.mul(y, logarithm)))]


def _share(emit: Any, node: Any, cts: Ct) -> Ct:
    """Each operand's share of the sum inside the logarithm."""
    x, y = node.operands
    to_x = emit.mul(cts[0], emit.expit(emit.sub(x, y)))
    return [to_x, emit.sub(cts[0], to_x)]


def _share2(emit: Any, node: Any, cts: Ct) -> Ct:
    x, y = node.operands
    scaled = emit.mul(emit.sub(x, y), literal(emit, x, _LN2))
    to_x = emit.mul(cts[0], emit.expit(scaled))
    return [to_x, emit.sub(cts[0], to_x)]


def _hypot_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    used = emit.not_equal(node.results[0], literal(emit, node.results[0], 0))
    return [
        where_zero(emit, used, emit.mul(cts[0], emit.div(x, node.results[0])))
        for x in node.operands
    ]


def _times(emit: Any, x: Any, factor: float) -> Any:
    return emit.mul(x, literal(emit, x, factor))


def _reciprocal_of(emit: Any, x: Any, factor: float = 1.0) -> Any:
    return emit.div(literal(emit, x, factor), x)


_GROWS = Facts(monotone=True)
_REAL_POWER = "Integers wrap and need a non-negative exponent (the caller checks; here 1 results)."

OPS: tuple[OpDef, ...] = (
    record("exp", np.exp, real_or_complex(exp, c.complex_exp), "e to the operand.",
           gradient=through(lambda emit, x, y: y), facts=_GROWS),
    record("exp2", np.exp2, real_or_complex(exp2, c.complex_exp2), "2 to the operand.",
           gradient=through(lambda emit, x, y: _times(emit, y, _LN2)), facts=_GROWS),
    record("expm1", np.expm1, real_or_complex(expm1, c.complex_expm1),
           "e to the operand, less 1, accurate near 0.",
           gradient=through(lambda emit, x, y: emit.add(y, literal(emit, y, 1))), facts=_GROWS),
    record("log", np.log, real_or_complex(log, c.complex_log), "Natural logarithm.",
           gradient=through(lambda emit, x, y: _reciprocal_of(emit, x)), facts=_GROWS),
    record("log2", np.log2, real_or_complex(log2, c.complex_log2), "Logarithm to base 2.",
           gradient=through(lambda emit, x, y: _reciprocal_of(emit, x, 1 / _LN2)), facts=_GROWS),
    record("log10", np.log10, real_or_complex(log10, c.complex_log10), "Logarithm to base 10.",
           gradient=through(lambda emit, x, y: _reciprocal_of(emit, x, 1 / _LN10)),
           facts=_GROWS),
    record("log1p", np.log1p, real_or_complex(log1p, c.complex_log1p),
           "Logarithm of 1 plus the operand, accurate near 0.",
           gradient=through(
               lambda emit, x, y: _reciprocal_of(emit, emit.add(x, literal(emit, x, 1)))),
           facts=_GROWS),
    record("sqrt", np.sqrt, real_or_complex(sqrt, c.complex_sqrt), "Square root.",
           gradient=through(lambda emit, x, y: _reciprocal_of(emit, y, 0.5)), facts=_GROWS),
    record("cbrt", np.cbrt, cbrt, "Cube root, of negative numbers too.",
           gradient=through(lambda emit, x, y: _reciprocal_of(emit, emit.square(y), 1 / 3)),
           facts=_GROWS),
    record("power", power_array, power_body,
           "The first operand to the power of the second. " + _REAL_POWER,
           ufunc=np.power, gradient=_power_gradient),
    record("float_power", np.float_power, power_body,
           "The first operand to the power of the second, in f64 or c128.",
           gradient=_power_gradient),
    record("hypot", np.hypot, hypot, "The length of a vector with two components.",
           gradient=_hypot_gradient, facts=Facts(commutative=True)),
    record("logaddexp", np.logaddexp, logaddexp_body,
           "Logarithm of the sum of two exponentials.",
           gradient=_share, facts=Facts(commutative=True)),
    record("logaddexp2", np.logaddexp2, logaddexp2_body,
           "Logarithm to base 2 of the sum of two powers of 2.",
           gradient=_share2, facts=Facts(commutative=True)),
)  # fmt: skip
