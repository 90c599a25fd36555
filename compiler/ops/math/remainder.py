"""The exact remainder of the truncated quotient (C's fmod)."""

from __future__ import annotations

from ..scalar import (
    Scalar,
    absolute,
    constant,
    convert,
    copysign,
    fma,
    is_nan,
    loop,
    rarely,
    scale,
    select,
    trunc,
)
from .bits import format_of, split

# Bits a step of the long division settles: the quotient must stay exact in the format.
_STEP = {24: 22, 53: 50}


def exact_remainder(a: Scalar, b: Scalar) -> Scalar:
    """a - b * trunc(a / b) without rounding, sign of a; NaN for b = 0 or a infinite."""
    x, y = absolute(a), absolute(b)
    ratio = x / y
    form = format_of(a)
    step = _STEP[form.mantissa + 1]
    fast = _reduced(x, y, ratio)
    # Too large a quotient, or products below the normal range, take the long way.
    tiny = form.least_normal * 2.0 ** (form.mantissa + 2)
    hard = ~(ratio < 2.0**step) | ((y < tiny) & (x >= y))
    (found,) = rarely(hard, (_long_remainder(x, y, step),), (fast,))
    found = select(x < y, x, found)
    infinity = float("inf")
    valid = (y > 0.0) & (x < infinity) & ~is_nan(y)
    return copysign(select(valid, found, constant(float("nan"), a.dtype)), a)


def _reduced(x: Scalar, y: Scalar, ratio: Scalar) -> Scalar:
    """x mod y where the rounded ratio is exact or one too large."""
    rest = fma(-trunc(ratio), y, x)
    return select(rest < 0.0, rest + y, rest)


def _long_remainder(x: Scalar, y: Scalar, step: int) -> Scalar:
    """Long division on mantissas, `step` bits of the quotient at a time."""
    xm, xe = split(x)
    ym, ye = split(y)
    integer = xe.dtype
    positive = constant(0, integer)
    distance = xe - ye
    start = select(xm >= ym, xm - ym, xm)
    start = select((y > 0.0) & (x < float("inf")) & (y < float("inf")), start, 0.0)

    def divide(rest: Scalar, left: Scalar) -> tuple[Scalar, Scalar]:
        count = select(left < step, left, step)
        grown = scale(rest, convert(count, rest.dtype))
        return _reduced(grown, ym, grown / ym), left - count

    rest, _ = loop(
        (start, select(distance > 0, distance, positive)),
        lambda rest, left: (left > 0) & rest.differs(0.0),
        divide,
    )
    return scale(rest, convert(ye, rest.dtype))
