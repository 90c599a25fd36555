"""Functions of samples in order: interp, unwrap.

Invariants: NumPy's steps in its order, so values are its bits.
Not here: the search (searching.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracing.state import running
from ..tracing.tensor import result
from .axes import one_axis
from .creation import asarray
from .operands import value_of


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """np.interp"""
    fp = asarray(fp)
    kind = np.complex128 if np.iscomplexobj(fp) else np.float64
    if period is None and any(np.iscomplexobj(item) for item in (x, xp)):
        raise TypeError("Cannot cast array data from complex to float according to the rule 'safe'")
    x, xp, fp = asarray(x, np.float64), asarray(xp, np.float64), asarray(fp, kind)
    if xp.ndim != 1 or fp.ndim != 1:
        deep = "Data points must be 1-D sequences" if period is not None else "object too deep"
        raise ValueError(deep)
    if xp.shape[0] != fp.shape[0]:
        raise ValueError("fp and xp are not of the same length.")
    if xp.shape[0] == 0:
        raise ValueError("array of sample points is empty")
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    left = fp[0] if left is None else left
    right = fp[-1] if right is None else right
    trace = running()
    if kind is np.float64:
        return result(trace, value_of(_between(x, xp, fp, left, right, np.true_divide)))
    parts = [
        _between(x, xp, part(fp), part(left), part(right), _by_reciprocal)
        for part in (np.real, np.imag)
    ]
    if xp.shape[0] > 1:
        parts[1] = np.where(np.isnan(x), 0.0, parts[1])
    return result(trace, trace.emit("complex", *map(value_of, parts)))


def _by_reciprocal(a: Any, b: Any) -> Any:
    """a / b as NumPy divides complex samples."""
    return a * (1.0 / b)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """The samples within one period, in order, with a neighbour at each end."""
    if type(period) in (int, float) and period == 0:
        raise ValueError("period must be a non-zero value")
    period = abs(period)
    x, xp = x % period, xp % period
    order = np.argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = np.concatenate((xp[-1:] - period, xp, xp[0:1] + period))
    return x, xp, np.concatenate((fp[-1:], fp, fp[0:1]))


def _between(x: Any, xp: Any, fp: Any, left: Any, right: Any, divide: Callable[..., Any]) -> Any:
    """On the line through the samples on either side of x, from whichever gives a number."""
    last = xp.shape[0] - 1
    if last == 0:
        made = np.where(x > xp[0], right, fp[0])
    else:
        low = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, last - 1)
        x0, x1, y0, y1 = xp[low], xp[low + 1], fp[low], fp[low + 1]
        slope = divide(y1 - y0, x1 - x0)
        made = slope * (x - x0) + y0
        made = np.where(np.isnan(made), slope * (x - x1) + y1, made)
        made = np.where(np.isnan(made) & (y0 == y1), y0, made)
        made = np.where(x == x0, y0, made)
        made = np.where(x == xp[-1], fp[-1], made)
        made = np.where(np.isnan(x), x, np.where(x > xp[-1], right, made))
    return np.where(x < xp[0], left, made)


def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 6.283185307179586) -> Any:
    """np.unwrap"""
    p = asarray(p)
    step = np.diff(p, axis=axis)
    discont = period / 2 if discont is None else discont
    dtype = np.result_type(step, period)
    if dtype.kind in "iu":
        high, rest = divmod(period, 2)
        ambiguous = rest == 0
    else:
        high, ambiguous = period / 2, True
    within = np.mod(step - -high, period) + -high
    if ambiguous:  # half a period up and down are the same place: the way up stays one up
        within = np.where((within == -high) & (step > 0), high, within).astype(within.dtype)
    correction = np.where(np.abs(step) < discont, 0, within - step).astype(within.dtype)
    made = p.astype(dtype)
    rest = (slice(None),) * one_axis(axis, p.ndim) + (slice(1, None),)
    made[rest] = p[rest] + np.cumsum(correction, axis)
    return made


FUNCTIONS: dict[Any, Any] = {np.interp: interp, np.unwrap: unwrap}
