"""Circular and hyperbolic functions and their inverses, degrees and radians."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import F32
from .definition import Facts, OpDef
from .math import complex_functions as c
from .math import hyperbolic as h
from .math import trigonometric as t
from .math.constants import PI
from .record import literal, real_or_complex, record, through, where_zero
from .scalar import Scalar

Ct = Sequence[Any]
_TO_DEGREES, _TO_RADIANS = float(180 / PI), float(PI / 180)
_TO_DEGREES_F32 = float(np.float32(180) / np.float32(np.pi))  # NumPy divides in the type itself


def _one_plus(emit: Any, x: Any) -> Any:
    return emit.add(x, literal(emit, x, 1))


def _one_minus(emit: Any, x: Any) -> Any:
    return emit.sub(literal(emit, x, 1), x)


def _inverse(emit: Any, x: Any) -> Any:
    return emit.div(literal(emit, x, 1), x)


def _secant_square(emit: Any, x: Any, y: Any) -> Any:
    return _one_plus(emit, emit.square(y))


def _arcsin_slope(emit: Any, x: Any, y: Any) -> Any:
    product = emit.mul(_one_minus(emit, x), _one_plus(emit, x))
    return _inverse(emit, emit.sqrt(product))


def _arccos_slope(emit: Any, x: Any, y: Any) -> Any:
    return emit.neg(_arcsin_slope(emit, x, y))


def _arctan_slope(emit: Any, x: Any, y: Any) -> Any:
    return _inverse(emit, _one_plus(emit, emit.square(x)))


def _arcsinh_slope(emit: Any, x: Any, y: Any) -> Any:
    return _inverse(emit, emit.sqrt(_one_plus(emit, emit.square(x))))


def _arccosh_slope(emit: Any, x: Any, y: Any) -> Any:
    below, above = emit.sub(x, literal(emit, x, 1)), _one_plus(emit, x)
    return _inverse(emit, emit.mul(emit.sqrt(below), emit.sqrt(above)))


def _arctanh_slope(emit: Any, x: Any, y: Any) -> Any:
    return _inverse(emit, emit.mul(_one_minus(emit, x), _one_plus(emit, x)))


def _tanh_slope(emit: Any, x: Any, y: Any) -> Any:
    return emit.mul(_one_minus(emit, y), _one_plus(emit, y))


def _arctan2_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    """Zero at the origin, where the angle has no slope."""
    y, x = node.operands
    length = emit.hypot(x, y)
    used = emit.greater(length, literal(emit, x, 0))
    turn = emit.div(cts[0], length)
    to_y = emit.mul(turn, emit.div(x, length))
    to_x = emit.neg(emit.mul(turn, emit.div(y, length)))
    return [where_zero(emit, used, to_y), where_zero(emit, used, to_x)]


def _to_degrees(x: Scalar) -> Scalar:
    return x * (_TO_DEGREES_F32 if x.dtype is F32 else _TO_DEGREES)


def _to_radians(x: Scalar) -> Scalar:
    return x * _TO_RADIANS


def _scaled(factor: float) -> Any:
    return through(lambda emit, x, y: literal(emit, x, factor))


_GROWS = Facts(monotone=True)

OPS: tuple[OpDef, ...] = (
    record("sin", np.sin, real_or_complex(t.sin, c.complex_sin), "Sine, of any angle.",
           gradient=through(lambda emit, x, y: emit.cos(x))),
    record("cos", np.cos, real_or_complex(t.cos, c.complex_cos), "Cosine, of any angle.",
           gradient=through(lambda emit, x, y: emit.neg(emit.sin(x)))),
    record("tan", np.tan, real_or_complex(t.tan, c.complex_tan), "Tangent, of any angle.",
           gradient=through(_secant_square)),
    record("arcsin", np.arcsin, real_or_complex(t.arcsin, c.complex_arcsin), "Inverse sine.",
           gradient=through(_arcsin_slope), facts=_GROWS),
    record("arccos", np.arccos, real_or_complex(t.arccos, c.complex_arccos), "Inverse cosine.",
           gradient=through(_arccos_slope)),
    record("arctan", np.arctan, real_or_complex(t.arctan, c.complex_arctan), "Inverse tangent.",
           gradient=through(_arctan_slope), facts=_GROWS),
    record("arctan2", np.arctan2, t.arctan2,
           "The angle of the point (second operand, first operand), in all four quadrants.",
           gradient=_arctan2_gradient),
    record("sinh", np.sinh, real_or_complex(h.sinh, c.complex_sinh), "Hyperbolic sine.",
           gradient=through(lambda emit, x, y: emit.cosh(x)), facts=_GROWS),
    record("cosh", np.cosh, real_or_complex(h.cosh, c.complex_cosh), "Hyperbolic cosine.",
           gradient=through(lambda emit, x, y: emit.sinh(x))),
    record("tanh", np.tanh, real_or_complex(h.tanh, c.complex_tanh), "Hyperbolic tangent.",
           gradient=through(_tanh_slope), facts=_GROWS),
    record("arcsinh", np.arcsinh, real_or_complex(h.arcsinh, c.complex_arcsinh),
           "Inverse hyperbolic sine.",
           gradient=through(_arcsinh_slope), facts=_GROWS),
    record("arccosh", np.arccosh, real_or_complex(h.arccosh, c.complex_arccosh),
           "Inverse hyperbolic cosine.", gradient=through(_arccosh_slope), facts=_GROWS),
    record("arctanh", np.arctanh, real_or_complex(h.arctanh, c.complex_arctanh),
           "Inverse hyperbolic tangent.", gradient=through(_arctanh_slope), facts=_GROWS),
    record("degrees", np.degrees, _to_degrees, "Radians to degrees.",
           gradient=_scaled(_TO_DEGREES), facts=_GROWS),
    record("rad2deg", np.rad2deg, _to_degrees, "Radians to degrees.",
           gradient=_scaled(_TO_DEGREES), facts=_GROWS),
    record("radians", np.radians, _to_radians, "Degrees to radians.",
           gradient=_scaled(_TO_RADIANS), facts=_GROWS),
    record("deg2rad", np.deg2rad, _to_radians, "Degrees to radians.",
           gradient=_scaled(_TO_RADIANS), facts=_GROWS),
)  # fmt: skip
