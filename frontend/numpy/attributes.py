"""Attributes of arrays that are computed: T, real, flags, strides, flat.

Not here: shape, dtype and their like (tracing/tensor.py).
"""

from __future__ import annotations

from typing import Any

from ..tracing.integer import user_size
from ..tracing.state import fail
from ..tracing.tensor import TracedArray
from . import conversion, movement
from .memory_order import lies_in, settle_layout


class Flags:
    """What can be asked of ``x.flags`` while tracing."""

    __slots__ = ("_array",)

    def __init__(self, array: TracedArray) -> None:
        self._array = array

    @property
    def c_contiguous(self) -> bool:
        """Whether the array lies in memory in C order."""
        return lies_in(self._array, "C")

    @property
    def f_contiguous(self) -> bool:
        """Whether the array lies in memory in Fortran order."""
        return lies_in(self._array, "F")

    contiguous = c_contiguous
    forc = property(lambda self: self.c_contiguous or self.f_contiguous)

    @property
    def writeable(self) -> bool:
        """Whether the array may be written."""
        return self._array.is_writeable

    @writeable.setter
    def writeable(self, wanted: Any) -> None:
        if wanted and not self._array.is_writeable:
            raise ValueError("cannot set WRITEABLE flag to True of this array")
        self._array.base_memory.writeable = bool(wanted)

    @property
    def owndata(self) -> bool:
        """Whether the memory is the array's own."""
        return not self._array.steps

    aligned = True

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name.lower())


def flags(a: Any) -> Any:
    """ndarray.flags"""
    return Flags(movement.view_of(a))


def strides(a: Any) -> Any:
    """ndarray.strides, in bytes."""
    array = movement.view_of(a)
    settle_layout(array)
    return tuple(user_size(array.tracing, s * array.itemsize) for s in array.element_strides())


def flat(a: Any) -> Any:
    """ndarray.flat of a contiguous array: a view."""
    array = movement.view_of(a)
    made = movement.ravel(array)
    if made.base_memory is not array.base_memory:
        raise fail(
            "TM111",
            "flat of an array that is not contiguous is not supported",
            hint="use ravel() to read and a[...] = to write",
        )
    return made


ATTRIBUTES = {
    **movement.ATTRIBUTES,
    **conversion.ATTRIBUTES,
    "flags": flags,
    "strides": strides,
    "flat": flat,
}
