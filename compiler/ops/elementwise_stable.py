"""Functions whose plain spelling loses digits, overflows or has a gradient of 0 * inf.

Written around exp(-|x|), which is at most 1. Their gradients are spelled out, because the
derivative of such a spelling is wrong at its seams.
Not here: erf and its relatives, exp and log themselves (elementwise_math families).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import BF16, F16, F32, F64
from .definition import OpDef
from .math.exponential import exp
from .math.logarithm import log, log1p
from .record import literal, record, through, where_zero
from .scalar import Scalar, absolute, constant, is_nan, select
from .signature import each

Ct = Sequence[Any]

_FLOATS = (F16, BF16, F32, F64)


def _expit(x: Scalar) -> Scalar:
    small = exp(-absolute(x))
    one = constant(1.0, x.dtype)
    return select(x < 0.0, small, one) / (small + 1.0)


def _expit_of_array(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))).astype(x.dtype)


def _expit_slope(emit: Any, x: Any, y: Any) -> Any:
    """y (1 - y), with 1 - y = expit(-x) exactly where y rounds to 1."""
    return emit.mul(y, emit.expit(emit.neg(x)))


def _softplus(x: Scalar) -> Scalar:
    return select(x < 0.0, constant(0.0, x.dtype), x) + log1p(exp(-absolute(x)))


def _softplus_of_array(x: Any) -> Any:
    return np.logaddexp(x, np.zeros((), x.dtype))


def _xlogy(x: Scalar, y: Scalar) -> Scalar:
    nothing = constant(0.0, x.dtype)
    return select(x.equals(0.0) & ~is_nan(y), nothing, x * log(y))


def _xlogy_of_arrays(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where((x == 0) & ~np.isnan(y), np.zeros((), x.dtype), x * np.log(y))


def _xlogy_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    x, y = node.operands
    used = emit.not_equal(x, literal(emit, x, 0))
    to_y = where_zero(emit, used, emit.mul(cts[0], emit.div(x, y)))
    return [emit.mul(cts[0], emit.log(y)), to_y]


def _xlog1py(x: Scalar, y: Scalar) -> Scalar:
    nothing = constant(0.0, x.dtype)
    return select(x.equals(0.0) & ~is_nan(y), nothing, x * log1p(y))


def _xlog1py_of_arrays(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where((x == 0) & ~np.isnan(y), np.zeros((), x.dtype), x * np.log1p(y))


def _xlog1py_gradient(emit: Any, node: Any, cts: Ct) -> Ct:
    x, y = node.operands
    used = emit.not_equal(x, literal(emit, x, 0))
    slope = emit.div(x, emit.add(y, literal(emit, y, 1)))
    to_y = where_zero(emit, used, emit.mul(cts[0], slope))
    return [emit.mul(cts[0], emit.log1p(y)), to_y]


def _entr(x: Scalar) -> Scalar:
    lowest = constant(float("-inf"), x.dtype)
    return select(x.equals(0.0), constant(0.0, x.dtype), select(x < 0.0, lowest, -(x * log(x))))


def _entr_of_array(x: Any) -> Any:
    with np.errstate(all="ignore"):
        inside = np.where(x == 0, np.zeros((), x.dtype), -x * np.log(np.where(x < 0, 1, x)))
        return np.where(x < 0, -np.inf, inside).astype(x.dtype)


def _entr_slope(emit: Any, x: Any, y: Any) -> Any:
    return emit.sub(literal(emit, x, -1), emit.log(x))


OPS: tuple[OpDef, ...] = (
    record("expit", _expit_of_array, _expit,
           "The logistic function 1 / (1 + exp(-x)); small values keep their digits.",
           taken=each(_FLOATS), gradient=through(_expit_slope)),
    record("softplus", _softplus_of_array, _softplus,
           "log(1 + exp(x)), a smooth ramp; neither overflows nor rounds to 0 early.",
           taken=each(_FLOATS), gradient=through(lambda emit, x, y: emit.expit(x))),
    record("xlogy", _xlogy_of_arrays, _xlogy,
           "x * log(y), and 0 where x is 0, whatever y is, except NaN.",
           taken=each(_FLOATS, 2), gradient=_xlogy_gradient),
    record("xlog1py", _xlog1py_of_arrays, _xlog1py,
           "x * log(1 + y), and 0 where x is 0, whatever y is, except NaN.",
           taken=each(_FLOATS, 2), gradient=_xlog1py_gradient),
    record("entr", _entr_of_array, _entr,
           "-x * log(x), the share of one outcome in an entropy; 0 at 0, -inf below.",
           taken=each(_FLOATS), gradient=through(_entr_slope)),
)  # fmt: skip
