"""The inverse of the normal distribution function and of the error function, in float64.

The rational approximations are those of M. J. Wichura, Algorithm AS 241: The Percentage Points of
the Normal Distribution, Applied Statistics 37 (1988), PPND16.

Invariants: operands and results are float64.
Not here: the functions themselves (error_function.py).
"""

from __future__ import annotations

from ..scalar import Scalar, absolute, constant, copysign, eq, select, sqrt
from .logarithm import log
from .polynomial import chain

_SQRT_HALF = 0.7071067811865476
# Numerator and denominator in .180625 - q**2, in r - 1.6 and in r - 5, for r = sqrt(-log(tail)).
_MIDDLE = (
    (3.387132872796366608, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
     45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
    (1.0, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077,
     21213.794301586595867, 39307.89580009271061, 28729.085735721942674, 5226.495278852545925),
)  # fmt: skip
_SIDE = (
    (1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
     1.27045825245236838258, 0.24178072517745061177, 0.0227238449892691845833,
     7.7454501427834140764e-4),
    (1.0, 2.05319162663775882187, 1.6763848301838038494, 0.68976733498510000455,
     0.14810397642748007459, 0.0151986665636164571966, 5.475938084995344946e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_FAR = (
    (6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 0.29656057182850489123,
     0.026532189526576123093, 0.0012426609473880784386, 2.71155556874348757815e-5,
     2.01033439929228813265e-7),
    (1.0, 0.59983220655588793769, 0.13692988092273580531, 0.0148753612908506148525,
     7.868691311456132591e-4, 1.8463183175100546818e-5, 1.4215117583164458887e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def ndtri(p: Scalar) -> Scalar:
    """The number below which a share p of the normal distribution lies; NaN outside [0, 1]."""
    q = p - 0.5
    return _quantile(q, select(q < 0.0, p, 1.0 - p))


def erfinv(y: Scalar) -> Scalar:
    """The number whose erf is y; NaN outside [-1, 1]."""
    return _quantile(y * 0.5, (1.0 - absolute(y)) * 0.5) * _SQRT_HALF


def _quantile(q: Scalar, tail: Scalar) -> Scalar:
    """The quantile of 1/2 + q, `tail` being what lies on the other side of it."""
    middle = q * _ratio(_MIDDLE, 0.180625 - q * q)
    r = sqrt(-log(tail))
    beyond = select(r <= 5.0, _ratio(_SIDE, r - 1.6), _ratio(_FAR, r - 5.0))
    beyond = select(eq(tail, constant(0.0, q.dtype)), constant(float("inf"), q.dtype), beyond)
    return select(absolute(q) <= 0.425, middle, copysign(beyond, q))


def _ratio(parts: tuple[tuple[float, ...], tuple[float, ...]], x: Scalar) -> Scalar:
    top, bottom = parts
    return chain(x, top) / chain(x, bottom)
