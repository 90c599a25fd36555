"""What a float becomes as an integer, by NumPy, for every value: NaN and what does not fit, too.

Not here: the same in the scalar language (elementwise_cast.py), other scalar words
(scalar_reference.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..types import I32, I64, DType

Lanes = np.ndarray[Any, np.dtype[Any]]


def float_to_integer(a: Lanes, target: DType) -> Lanes:
    """The one meaning of float64 to integer, also for NaN and what does not fit."""
    if target.bits < 32:
        return _float_to_signed(a, I32).astype(target.numpy)
    if target.kind == "i":
        return _float_to_signed(a, target)
    low = _float_to_signed(a, I64).astype(target.numpy)
    if target.bits < 64:
        return low
    high = _float_to_signed(a - 2.0**63, I64).astype(np.uint64) ^ np.uint64(1 << 63)
    return np.where(a >= 2.0**63, high, low)


def _float_to_signed(a: Lanes, target: DType) -> Lanes:
    limit = 2.0 ** (target.bits - 1)
    whole = np.trunc(a)
    fits = (whole >= -limit) & (whole < limit)
    lowest = np.asarray(-int(limit), target.numpy)
    return np.where(fits, np.where(fits, whole, 0).astype(target.numpy), lowest)
