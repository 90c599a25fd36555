"""What each step of a sort does, written with NumPy: the interpreter's part of sorting.py.

Invariants: every step leaves in every buffer exactly what machine code leaves there, apart from
`other` and `moved` where their content is over, so steps can be compared one by one.
Not here: the steps' launches (sorting.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..types import DType, dtype_of
from .kernel import Search, Select, Sort
from .sorting import BUCKETS, DIGIT, PIECES, SAMPLE, KeyForm, key_form

Array = np.ndarray[Any, Any]
_PLACE_BITS = 32


def sort_step(s: Sort, buffers: Mapping[str, Array]) -> None:
    """Run one step on all rows, in place."""
    source, result = buffers[s.source], buffers[s.result]
    dtype = dtype_of(source.dtype)
    assert dtype is not None
    form = key_form(dtype, s.gives)
    keys = result if s.keys is None else buffers[s.keys]
    keys = keys.view(form.dtype.numpy)

    def rows(name: str | None, keep: int) -> Array:
        """A buffer with one axis of rows in front, or rows of nothing."""
        if name is None:
            return np.empty((source.size // max(source.shape[-1], 1), 0))
        array = buffers[name]
        return array.reshape(-1, *array.shape[array.ndim - keep :])

    views = {
        "source": source.reshape(-1, source.shape[-1]),
        "result": result.reshape(-1, source.shape[-1]),
        "keys": keys.reshape(-1, source.shape[-1]),
        "other": rows(s.other, 1), "moved": rows(s.moved, 1),
        "counts": rows(s.counts, 2), "ends": rows(s.ends, 1),
    }  # fmt: skip
    step = _STEPS[s.stage]
    for row in range(source.size // max(source.shape[-1], 1)):
        step(form, dtype, s.gives, {name: view[row] for name, view in views.items()})


def search(s: Search, buffers: Mapping[str, Array]) -> None:
    """Where elements go in a sorted row."""
    source, wanted = buffers[s.source], buffers[s.wanted]
    dtype = dtype_of(source.dtype)
    assert dtype is not None
    row, keys = keys_of(source, dtype)[0], keys_of(wanted, dtype)[0]
    for at in np.ndindex(keys.shape):
        before = row < keys[at] if s.side == "left" else row <= keys[at]
        buffers[s.result][at] = np.count_nonzero(before)


def select(s: Select, buffers: Mapping[str, Array]) -> None:
    """Where the greatest elements of each row stand."""
    source = buffers[s.source]
    dtype = dtype_of(source.dtype)
    assert dtype is not None
    keys, _ = keys_of(source, dtype)
    buffers[s.result][...] = np.argsort(~keys, axis=-1, kind="stable")[..., : s.size]


def keys_of(elements: Array, dtype: DType) -> tuple[Array, Array]:
    """Keys of the elements, of their own width, and where elements are not told from others."""
    if not dtype.is_float:
        bits = elements.view(f"u{elements.itemsize}")
        sign = np.array(1 << (8 * elements.itemsize - 1), bits.dtype)
        return (bits ^ sign if dtype.kind == "i" else bits), np.zeros(bits.shape, bool)
    bits = elements.view(f"u{elements.itemsize}")
    one = np.array(1, bits.dtype)
    sign = one << np.array(8 * elements.itemsize - 1, bits.dtype)
    wide = elements.astype(np.float32) if elements.itemsize == 2 else elements
    negative = (bits & sign) != 0
    keys = np.where(negative, ~bits, bits | sign)
    keys = np.where(wide == 0, sign, keys)
    keys = np.where(np.isnan(wide), ~np.zeros_like(bits), keys)
    return keys, np.isnan(wide) | (bits == sign)


def elements_of(keys: Array, dtype: DType) -> Array:
    """The elements that have these keys: 0.0 and one NaN where there are several."""
    bits = keys.astype(f"u{dtype.itemsize}")
    sign = np.array(1, bits.dtype) << np.array(8 * dtype.itemsize - 1, bits.dtype)
    if dtype.is_float:
        bits = np.where((bits & sign) != 0, bits ^ sign, ~bits)
    elif dtype.kind == "i":
        bits = bits ^ sign
    return bits.view(dtype.numpy)


def bits_in(number: int) -> int:
    """How many bits a number has, as a float sees it."""
    return int(np.frexp(float(number))[1]) if number else 0


def first_digit(sample: Array, form: KeyForm) -> tuple[int, int]:
    """The least key of the first bucket and the shift of the first digit."""
    low, high = int(sample.min()), int(sample.max())
    free = _PLACE_BITS if form.packed else 0
    shift = max(bits_in(high - low) - DIGIT, free)
    return low >> free << free, shift


def _digits(keys: Array, low: int, shift: int) -> Array:
    above = np.where(keys < low, keys.dtype.type(low), keys) - keys.dtype.type(low)
    found: Array = np.minimum(above >> keys.dtype.type(shift), keys.dtype.type(BUCKETS - 1))
    return found.astype(int)


def _rows(form: KeyForm, dtype: DType, gives: str, row: dict[str, Array]) -> None:
    keys, _ = keys_of(row["source"], dtype)
    order = np.argsort(keys, kind="stable")
    row["result"][:] = row["source"][order] if gives == "elements" else order


def _count(form: KeyForm, dtype: DType, gives: str, row: dict[str, Array]) -> None:
    keys, special = keys_of(row["source"], dtype)
    size = keys.size
    keys = keys.astype(form.dtype.numpy)
    if form.packed:
        keys = keys << np.uint64(_PLACE_BITS) | np.arange(size, dtype=np.uint64)
    if form.carried:
        row["result"][:] = np.arange(size)
    low, shift = first_digit(keys[_sampled(size)], form)
    for piece in range(PIECES):
        part = slice(piece * size // PIECES, (piece + 1) * size // PIECES)
        counted = np.bincount(_digits(keys[part], low, shift), minlength=BUCKETS)
        row["counts"][piece, :BUCKETS] = counted
        row["counts"][piece, BUCKETS] = special[part].any()
    row["keys"][:] = keys


def _spread(form: KeyForm, dtype: DType, gives: str, row: dict[str, Array]) -> None:
    keys = row["keys"]
    low, shift = first_digit(keys[_sampled(keys.size)], form)
    digits = _digits(keys, low, shift)
    order = np.argsort(digits, kind="stable")
    row["other"][:] = keys[order]
    if form.carried:
        row["moved"][:] = row["result"][order]
    row["ends"][:] = np.cumsum(np.bincount(digits, minlength=BUCKETS))


def _buckets(form: KeyForm, dtype: DType, gives: str, row: dict[str, Array]) -> None:
    order = np.argsort(row["other"], kind="stable")
    keys = row["other"][order]
    if form.carried:
        row["result"][:] = row["moved"][order]
    elif form.packed:
        row["result"][:] = keys & np.uint64((1 << _PLACE_BITS) - 1)
    else:
        row["result"][:] = elements_of(keys, dtype)


def _mend(form: KeyForm, dtype: DType, gives: str, row: dict[str, Array]) -> None:
    source, result = row["source"], row["result"]
    zeros, nans = source == 0, np.isnan(source.astype(np.float64))
    if zeros.any():
        first = int(np.argmax(result == 0))
        result[first : first + int(zeros.sum())] = source[zeros]
    if nans.any():
        result[-int(nans.sum()) :] = source[nans]


def _sampled(size: int) -> Array:
    return np.arange(SAMPLE) * size // SAMPLE


_STEPS: dict[str, Callable[[KeyForm, DType, str, dict[str, Array]], None]] = {
    "rows": _rows,
    "count": _count,
    "spread": _spread,
    "buckets": _buckets,
    "mend": _mend,
}
