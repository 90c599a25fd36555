"""Rounding, and the parts and neighbours of floating numbers.

Integers and bools round to themselves. `frexp` of infinity and NaN has exponent 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..types import BF16, F16, I32
from .definition import Facts, OpDef
from .math.bits import format_of, sign_bit, split
from .record import literal, record
from .scalar import (
    Scalar,
    absolute,
    bitcast,
    ceil,
    complex_,
    constant,
    convert,
    copysign,
    floor,
    imag,
    real,
    rint,
    scale,
    select,
    trunc,
)

Ct = Sequence[Any]


def _rounding(word: Callable[[Scalar], Scalar]) -> Callable[[Scalar], Scalar]:
    def body(x: Scalar) -> Scalar:
        if x.dtype.is_complex:
            return complex_(word(real(x)), word(imag(x)))
        return word(x) if x.dtype.is_float else x

    return body


def _modf(x: Scalar) -> tuple[Scalar, Scalar]:
    """Fraction and whole part, both with the sign of x."""
    whole = trunc(x)
    infinite = absolute(x).equals(float("inf"))
    fraction = select(infinite, constant(0.0, x.dtype), x - whole)
    return copysign(fraction, x), whole


def _frexp(x: Scalar) -> tuple[Scalar, Scalar]:
    size = absolute(x)
    mantissa, exponent = split(size)
    ordinary = (size > 0.0) & (size < float("inf"))
    part = select(ordinary, copysign(mantissa * 0.5, x), x)
    return part, convert(select(ordinary, exponent + 1, 0), I32)


def _ldexp(x: Scalar, exponent: Scalar) -> Scalar:
    """In three steps of `scale`; all but the last are exact for a finite, non-zero result."""
    form = format_of(x)
    most = 240 if form.mantissa < 52 else 1900
    limit = 3 * most
    if exponent.dtype.bits > 16:
        low, high = constant(-limit, exponent.dtype), constant(limit, exponent.dtype)
        exponent = select(exponent < low, low, select(high < exponent, high, exponent))
    count = convert(exponent, x.dtype)
    normal = absolute(x) >= form.least_normal
    lift = float(form.mantissa + 2)
    mantissa = select(normal, x, x * 2.0**lift)
    count = select(normal, count, count - lift)
    # A normal number times 2**step stays exact while its exponent stays in range.
    bias = float(form.bias)
    own = convert((bitcast(absolute(mantissa), form.integer) >> form.mantissa) - form.bias, x.dtype)
    room = select(count < 0.0, _clamped(1.0 - bias - own, -most, 0.0),
                  _clamped(bias - own, 0.0, most))  # fmt: skip
    first = select(count < 0.0, select(count < room, room, count), count)
    first = _clamped(first, -most, most)
    rest = count - first
    return scale(scale(mantissa, first), _clamped(rest, -most, most))


def _clamped(x: Scalar, low: float, high: float) -> Scalar:
    return select(x < low, constant(low, x.dtype), select(x > high, constant(high, x.dtype), x))


def _toward(x: Scalar, target: Scalar) -> Scalar:
    """The next number from x towards target, by stepping the bits."""
    form = format_of(x)
    bits, goal = bitcast(x, form.integer), bitcast(target, form.integer)
    top = constant(-1 << (form.mantissa + _exponent_bits(form.bias)), form.integer)
    magnitude, goal_magnitude = bits & ~top, goal & ~top
    is_zero, both_zero = magnitude.equals(0), (magnitude | goal_magnitude).equals(0)
    invalid = (magnitude > form.infinity) | (goal_magnitude > form.infinity)
    # Order of sign-magnitude numbers as integers: negative ones reversed.
    place, goal_place = _place(bits, top), _place(goal, top)
    away = (place < goal_place) ^ (bits < 0)
    step = bits + select(away, constant(1, form.integer), -1)
    from_zero = (goal & top) | 1
    moved = select(is_zero, from_zero, step)
    same = place.equals(goal_place) | both_zero
    # Equal operands give the second, as C; NumPy's halves give the first.
    result = select(same, bits if x.dtype is F16 else goal, moved)
    nan = constant(form.infinity | (1 << (form.mantissa - 1)), form.integer)
    return bitcast(select(invalid, nan, result), x.dtype)


def _place(bits: Scalar, top: Scalar) -> Scalar:
    return select(bits < 0, top - bits, bits)


def _exponent_bits(bias: int) -> int:
    return (2 * bias + 1).bit_length()


def _spacing(x: Scalar) -> Scalar:
    """The distance to the next number away from zero, with the sign of x (+ of f32 and f64 zeros).

    NumPy's halves: the distance to the next number above, always positive.
    """
    form = format_of(x)
    bits = bitcast(x, form.integer)
    top = constant(-1 << (form.mantissa + _exponent_bits(form.bias)), form.integer)
    sign, magnitude = bits & top, bits & ~top
    nothing = constant(0, form.integer)
    if x.dtype is F16:
        magnitude = magnitude - select((bits < 0) & magnitude.differs(0), nothing + 1, 0)
        sign = nothing
    exponent = (magnitude >> form.mantissa) - form.mantissa
    shift = (magnitude >> form.mantissa) - 1
    denormal = select(shift > 0, constant(1, form.integer) << shift, 1)
    gap = select(exponent > 0, exponent << form.mantissa, denormal)
    gap = select(magnitude.equals(form.infinity - 1), form.infinity, gap)
    plus_zero = magnitude.equals(0) if x.dtype is not BF16 else bits.equals(0)
    gap = gap | select(plus_zero, nothing, sign)
    nan = constant(form.infinity | (1 << (form.mantissa - 1)), form.integer)
    return bitcast(select((bits & ~top) >= form.infinity, nan, gap), x.dtype)


def _copysign(a: Scalar, b: Scalar) -> Scalar:
    form = format_of(a)
    top = constant(-1 << (form.mantissa + _exponent_bits(form.bias)), form.integer)
    magnitude = bitcast(a, form.integer) & ~top
    return bitcast(magnitude | (bitcast(b, form.integer) & top), a.dtype)


def _flat(emit: Any, node: Any, cts: Ct) -> Ct:
    return [None]


def _copysign_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    a, b = node.operands
    one = literal(emit, a, 1)
    flip = emit.mul(emit.copysign(one, a), emit.copysign(one, b))
    return [emit.mul(cts[0], flip), None]


def _modf_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [cts[0]]


def _frexp_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [None if cts[0] is None else emit.ldexp(cts[0], emit.neg(node.results[1]))]


def _ldexp_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    return [emit.ldexp(cts[0], node.operands[1]), None]


_ROUND = Facts(idempotent=True, monotone=True, differentiable=False)

OPS: tuple[OpDef, ...] = (
    record("floor", np.floor, _rounding(floor), "Round down.", gradient=_flat, facts=_ROUND),
    record("ceil", np.ceil, _rounding(ceil), "Round up.", gradient=_flat, facts=_ROUND),
    record("trunc", np.trunc, _rounding(trunc), "Round towards zero.",
           gradient=_flat, facts=_ROUND),
    record("rint", np.rint, _rounding(rint), "Round to the nearest integer, ties to even.",
           gradient=_flat, facts=_ROUND),
    record("modf", np.modf, _modf, "Fraction and whole part, both with the operand's sign.",
           gradient=_modf_gradient),
    record("frexp", np.frexp, _frexp, "Mantissa in [0.5, 1) and power of two.",
           gradient=_frexp_gradient),
    record("ldexp", np.ldexp, _ldexp, "The first operand times 2 to the second.",
           gradient=_ldexp_gradient),
    record("nextafter", np.nextafter, _toward,
           "The next number from the first operand towards the second.",
           gradient=lambda emit, node, cts: [cts[0], None], exact_halves=True),
    record("spacing", np.spacing, _spacing,
           "The distance to the next number away from zero, with the operand's sign.",
           exact_halves=True),
    record("copysign", np.copysign, _copysign,
           "The magnitude of the first operand with the sign of the second.",
           gradient=_copysign_gradient, exact_halves=True),
    record("signbit", np.signbit, sign_bit, "True where the sign bit is set, also of -0 and NaN.",
           exact_halves=True),
)  # fmt: skip
