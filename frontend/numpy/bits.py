"""Bits of bytes: packbits, unpackbits.

Not here: bitwise arithmetic (ufuncs.py).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..tracing.state import running
from ..tracing.tensor import fresh
from .axes import one_axis
from .creation import asarray

_ORDERS = ("big", "little")


def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Any:
    """np.packbits"""
    shifts = _shifts(bitorder)
    array = asarray(a)
    if array.dtype.kind not in "biu":
        raise TypeError("Expected an input array of integer or boolean data type")
    rows = _rows(array != 0, axis)
    count = rows.shape[-1]
    bytes_ = (count + 7) // 8
    behind = [(0, 0)] * (rows.ndim - 1) + [(0, bytes_ * 8 - count)]
    bits = np.pad(rows.astype(np.uint8), behind)
    bits = np.reshape(bits, (*rows.shape[:-1], bytes_, 8)) << shifts
    return _turned(np.sum(bits, axis=-1, dtype=np.uint8), axis, array.ndim)


def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    """np.unpackbits"""
    shifts = _shifts(bitorder)
    array = asarray(a)
    if array.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    rows = _rows(array, axis)
    bits = (rows[..., None] >> shifts) & np.uint8(1)
    total = rows.shape[-1] * 8
    bits = np.reshape(bits, (*rows.shape[:-1], total))
    if count is not None:
        bits = _of_length(bits, total, operator.index(count))
    return _turned(bits, axis, array.ndim)


def _of_length(bits: Any, total: Any, count: int) -> Any:
    """The first `count` bits, zeros where there are none; a negative count leaves bits out."""
    if count < 0:
        if -count > total:
            raise ValueError(f"-count must be at most the number of bits, got {count}")
        return bits[..., :count]
    if count <= total:
        return bits[..., :count]
    return np.pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, count - total)])


def _rows(array: Any, axis: Any) -> Any:
    """The axis of the bits at the end; all elements in one row for None."""
    if axis is None or array.ndim == 0:
        one_axis(axis or 0, 1)  # a number is taken as a row of one
        return np.ravel(array)
    return np.moveaxis(array, one_axis(axis, array.ndim), -1)


def _turned(made: Any, axis: Any, rank: int) -> Any:
    return made if axis is None or rank == 0 else np.moveaxis(made, -1, one_axis(axis, rank))


def _shifts(bitorder: str) -> Any:
    if bitorder not in _ORDERS:
        raise ValueError("'order' must be either 'little' or 'big'")
    places = np.arange(8, dtype=np.uint8)
    constant = running().builder.constant(places if bitorder == "little" else places[::-1].copy())
    return fresh(running(), constant)


FUNCTIONS: dict[Any, Any] = {np.packbits: packbits, np.unpackbits: unpackbits}
