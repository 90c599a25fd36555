"""Floor division, remainders, and common divisors.

Floats follow NumPy: the exact remainder of the truncated quotient decides, so 1.0 // 0.1 is 9.
Integers by zero give 0; the least value by -1 gives itself, remainder 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import I8, I16, I32, I64, U8, U16, U32, U64, DType
from .definition import Facts, OpDef
from .math.remainder import exact_remainder
from .record import record
from .scalar import (
    Scalar,
    absolute,
    bitcast,
    constant,
    convert,
    copysign,
    floor,
    loop,
    quot,
    rem,
    select,
)

Ct = Sequence[Any]
_UNSIGNED: dict[DType, DType] = {I8: U8, I16: U16, I32: U32, I64: U64}


def _floor_quotient(a: Scalar, b: Scalar) -> Scalar:
    """Of integers, or of floats by their exact remainder."""
    if a.dtype.is_integer:
        quotient = quot(a, b)
        if a.dtype.kind == "u":
            return quotient
        return quotient - convert(_signs_differ(rem(a, b), b), a.dtype)
    return _float_divmod(a, b)[0]


def _remainder(a: Scalar, b: Scalar) -> Scalar:
    if a.dtype.is_integer:
        rest = rem(a, b)
        return rest if a.dtype.kind == "u" else select(_signs_differ(rest, b), rest + b, rest)
    return _float_divmod(a, b)[1]


def _divmod(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    if a.dtype.is_integer:
        return _floor_quotient(a, b), _remainder(a, b)
    return _float_divmod(a, b)


def _fmod(a: Scalar, b: Scalar) -> Scalar:
    return rem(a, b) if a.dtype.is_integer else exact_remainder(a, b)


def _signs_differ(rest: Scalar, b: Scalar) -> Scalar:
    """The truncated quotient is one above the floor: a remainder of the other sign."""
    return rest.differs(0) & ((rest ^ b) < 0)


def _float_divmod(a: Scalar, b: Scalar) -> tuple[Scalar, Scalar]:
    """NumPy's quotient and remainder, operation by operation."""
    truncated = exact_remainder(a, b)
    plain = a / b
    by_zero = b.equals(0.0)
    quotient = (a - truncated) / b
    wrong_side = truncated.differs(0.0) & ((b < 0.0) ^ (truncated < 0.0))
    rest = select(wrong_side, truncated + b, truncated)
    quotient = select(wrong_side, quotient - 1.0, quotient)
    rest = select(truncated.equals(0.0), copysign(constant(0.0, b.dtype), b), rest)
    whole = floor(quotient)
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    signed_zero = copysign(constant(0.0, a.dtype), plain)
    whole = select(quotient.equals(0.0), signed_zero, whole)
    return select(by_zero, plain, whole), select(by_zero, truncated, rest)


def _gcd(a: Scalar, b: Scalar) -> Scalar:
    return bitcast(_unsigned_gcd(_magnitude(a), _magnitude(b)), a.dtype)


def _lcm(a: Scalar, b: Scalar) -> Scalar:
    x, y = _magnitude(a), _magnitude(b)
    return bitcast(quot(x, _unsigned_gcd(x, y)) * y, a.dtype)


def _magnitude(a: Scalar) -> Scalar:
    return bitcast(absolute(a), _UNSIGNED[a.dtype]) if a.dtype.kind == "i" else a


def _unsigned_gcd(a: Scalar, b: Scalar) -> Scalar:
    """Euclid's algorithm."""
    return loop((a, b), lambda x, y: y.differs(0), lambda x, y: (y, rem(x, y)))[0]


def _remainder_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    """a - b * q with the integer q held fixed."""
    a, b = node.operands
    return [cts[0], emit.neg(emit.mul(cts[0], emit.floor_divide(a, b)))]


def _fmod_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    a, b = node.operands
    return [cts[0], emit.neg(emit.mul(cts[0], emit.trunc(emit.div(a, b))))]


def _divmod_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    if cts[1] is None:
        return [None, None]
    return [cts[1], emit.neg(emit.mul(cts[1], node.results[0]))]


_FLAT = Facts(differentiable=False)
_SYMMETRIC = Facts(commutative=True, associative=True, differentiable=False)

OPS: tuple[OpDef, ...] = (
    record("floor_divide", np.floor_divide, _floor_quotient,
           "The largest integer not above the quotient; integers by zero give 0.",
           gradient=lambda emit, node, cts: [None, None], facts=_FLAT),
    record("remainder", np.remainder, _remainder,
           "The remainder of floor division, with the sign of the divisor.",
           gradient=_remainder_gradient),
    record("fmod", np.fmod, _fmod,
           "The remainder of truncated division, with the sign of the dividend.",
           gradient=_fmod_gradient),
    record("divmod", np.divmod, _divmod, "Floor quotient and remainder.",
           gradient=_divmod_gradient),
    record("gcd", np.gcd, _gcd, "Greatest common divisor of integers.", facts=_SYMMETRIC),
    record("lcm", np.lcm, _lcm, "Least common multiple of integers; it wraps.",
           facts=Facts(commutative=True, differentiable=False)),
)  # fmt: skip
