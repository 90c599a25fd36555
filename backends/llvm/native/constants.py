"""Inputs that must have one value: how each kind of Python constant is tested.

Invariants: a value matches if it has the same type and the same value; numbers with a fraction
compare by their bits, so -0.0 is not 0.0 and a NaN matches itself. What stands for an array (a
Variable) matches itself only.
Not here: what a function reads from outside (the frontend's trace says).
"""

from __future__ import annotations

import struct

import numpy as np

from ....compiler.records import replace
from .encoder import Frame, InputSpec, SizeSpec
from .layout import Kind, Size


def constant_input(
    frame: Frame, place: InputSpec, value: object
) -> tuple[InputSpec, list[SizeSpec]]:
    """`place` with the test for this value, and the size rows that complete it."""
    if value is None or isinstance(value, bool | type) or is_like_an_array(value):
        return replace(place, kind=Kind.IDENTICAL, type=value), []
    if type(value) is float:
        slot = frame.slot()
        return replace(place, kind=Kind.FLOAT, value=slot), [_bits(frame, slot, value)]
    if type(value) is complex:
        slot = frame.slot(2)
        rows = [_bits(frame, slot, value.real), _bits(frame, slot + 1, value.imag)]
        return replace(place, kind=Kind.COMPLEX, value=slot), rows
    if isinstance(value, np.inexact):
        return _numpy_constant(frame, place, value)
    return replace(place, kind=Kind.SAME, type=value), []


def is_like_an_array(value: object) -> bool:
    """Whether ``==`` of the object tells about its elements: it is then compared by identity."""
    return hasattr(type(value), "__array__") and not isinstance(value, np.generic)


def _bits(frame: Frame, slot: int, value: float) -> SizeSpec:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return SizeSpec(Size.EQUAL, slot, frame.constant(bits))


def _numpy_constant(
    frame: Frame, place: InputSpec, value: np.inexact[np.typing.NBitBase]
) -> tuple[InputSpec, list[SizeSpec]]:
    """A NumPy scalar, compared word by word where it lies, without the bytes behind it."""
    address, rows = frame.slot(), []
    stored = value.tobytes()
    for start in range(0, len(stored), 8):
        part = stored[start : start + 8]
        word, at = frame.slot(), frame.slot()
        rows.append(SizeSpec(Size.ADD, address, frame.constant(start), at))
        rows.append(SizeSpec(Size.LOAD, at, target=word))
        if len(part) < 8:
            rows.append(SizeSpec(Size.MOD, word, frame.constant(1 << 8 * len(part)), word))
        expected = int.from_bytes(part, "little", signed=len(part) == 8)
        rows.append(SizeSpec(Size.EQUAL, word, frame.constant(expected)))
    return replace(place, kind=Kind.SCALAR, type=type(value), data=address), rows
