"""Structures of the native language in memory, written from Python.

Invariants: memory of a `Record` lives as long as the record; whoever gives its address away keeps
it.
Not here: what the structures mean (`control`, `layout`).
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from .language import Struct, layout_of

_ALIGNMENT = 64


class Record:
    """Zeroed memory for one structure or a row of them, 64-byte aligned; fields are set by name."""

    def __init__(self, kind: type[Struct], count: int = 1) -> None:
        self._layout = layout_of(kind)
        self._buffer = ctypes.create_string_buffer(self._layout.size * max(count, 1) + _ALIGNMENT)
        start = ctypes.addressof(self._buffer)
        self.address = -(-start // _ALIGNMENT) * _ALIGNMENT
        self._shift = self.address - start

    def __setitem__(self, name: str, value: int) -> None:
        self.set(0, name, value)

    def __getitem__(self, name: str) -> int:
        place = self._shift + self._layout.fields[name].offset
        value: int = struct.unpack_from("<q", self._buffer, place)[0]
        return value

    def set(self, index: int, name: str, value: int) -> None:
        """Write an eight-byte field of the structure number `index`."""
        place = self._shift + index * self._layout.size + self._layout.fields[name].offset
        struct.pack_into("<q", self._buffer, place, value)

    def at(self, index: int) -> int:
        """Address of the structure number `index`."""
        return self.address + index * self._layout.size

    def field(self, name: str) -> int:
        """Address of a field."""
        return self.address + self._layout.fields[name].offset


class Words:
    """A row of 64-bit words; an empty row has an address too."""

    def __init__(self, values: Sequence[int]) -> None:
        self._buffer = (ctypes.c_int64 * max(len(values), 1))(*values)
        self.address = ctypes.addressof(self._buffer)

    def __getitem__(self, index: int) -> int:
        return int(self._buffer[index])


def address_of_function(function: Any) -> int:
    """The address of a C function ctypes has found."""
    found = ctypes.cast(function, ctypes.c_void_p).value
    if found is None:
        raise OSError(f"the process has no function {function!r}")
    return found
