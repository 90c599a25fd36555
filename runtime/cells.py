"""Cells: where the storage of a variable is, laid out so that native code can reach it.

A compiled plan does not keep the address of a variable's data; it keeps the address of the
variable's cell, six 64-bit words that never move while anything holds the `Cell`:

    byte  0  data     address of the elements, C-contiguous, 64-byte aligned; 0: no value
          8  spare    a second buffer of that size for plans that swap the two; 0: none, also
                      after a value of another shape, until `Cell.add_spare`
         16  ndim
         24  dims     address of `ndim` int64 extents
         32  version  number of values the variable has had
         40  lock     low half: 0 free, n readers, -1 a writer; high half: native code's own

(`backends/llvm/native/layout.py` states the same struct; a test compares them.)

Invariants: data, spare, dims and version change only while a writer holds the lock; version
never goes down; a deleted variable has data 0 for ever. Cells are locked in the order of their
addresses, so no two callers wait for each other.
Not here: names (store.py); the atomic exchange on the lock word, which Python does not have:
native code hands its own in as a `CellLocks`, and `PythonLocks` serves a store that no native
code touches.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from ..compiler.types import TensorType

Array = np.ndarray[Any, Any]

ALIGNMENT = 64
_WRITER = 0xFFFFFFFF  # -1 in the low half


class CellLayout(ctypes.Structure):
    """The cell as native code sees it."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("spare", ctypes.c_uint64),
        ("ndim", ctypes.c_int64),
        ("dims", ctypes.c_uint64),
        ("version", ctypes.c_int64),
        ("lock", ctypes.c_uint64),
    )

    data: int
    spare: int
    ndim: int
    dims: int
    version: int
    lock: int


class CellLocks(Protocol):
    """How a cell's lock word is taken from Python; waits without holding the GIL."""

    def acquire(self, address: int, write: bool) -> None:
        """Wait until the lock of the cell at `address` can be taken, and take it."""
        ...

    def release(self, address: int, write: bool) -> None:
        """Give it back."""
        ...


class PythonLocks:
    """Locks for cells that only Python touches: one condition for all, the words kept true.

    Once native code touches them too, `hand_over` makes its atomic locks the only ones.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._successor: CellLocks | None = None

    def acquire(self, address: int, write: bool) -> None:
        """See `CellLocks`."""
        layout = CellLayout.from_address(address)
        with self._changed:
            self._changed.wait_for(lambda: self._successor is not None or _free(layout, write))
            successor = self._successor
            if successor is None:
                layout.lock = _WRITER if write else layout.lock + 1
        if successor is not None:
            successor.acquire(address, write)

    def release(self, address: int, write: bool) -> None:
        """See `CellLocks`."""
        layout = CellLayout.from_address(address)
        with self._changed:
            if self._successor is not None:
                self._successor.release(address, write)
            else:
                layout.lock = 0 if write else layout.lock - 1
            self._changed.notify_all()

    def hand_over(self, successor: CellLocks) -> None:
        """From now on `successor` takes and frees the words, those held now included."""
        with self._changed:
            self._successor = successor
            self._changed.notify_all()


def _free(layout: CellLayout, write: bool) -> bool:
    return layout.lock == 0 if write else layout.lock != _WRITER


class Cell:
    """The storage of one variable. `address` is that of its six words."""

    __slots__ = ("_buffers", "_dims", "address", "container", "layout", "name", "type")

    def __init__(self, name: str, type: TensorType, container: str) -> None:
        self.name = name
        self.type = type
        self.container = container
        self.layout = CellLayout()
        self.address = ctypes.addressof(self.layout)
        self._dims = np.zeros(max(1, type.rank), np.int64)
        self._buffers: dict[int, Array] = {}  # by the address of their data
        self.layout.ndim = type.rank
        self.layout.dims = address_of(self._dims)

    @property
    def version(self) -> int:
        """How many values the variable has had."""
        return self.layout.version

    @property
    def initialised(self) -> bool:
        """Whether it has a value."""
        return self.layout.data != 0

    @property
    def array(self) -> Array | None:
        """The buffer itself, whichever of the two native code has made current."""
        return self._buffers.get(self.layout.data)

    def buffer_for(self, shape: tuple[int, ...]) -> Array:
        """The buffer to write a value of `shape` into: the current one while its shape fits."""
        current = self.array
        if current is not None and current.shape == shape:
            return current
        return aligned(shape, self.type.dtype.numpy)

    def write(self, value: Array, buffer: Array) -> None:
        """Make `value` the contents, in `buffer` of `buffer_for`; a writer holds the lock."""
        np.copyto(buffer, value)
        if buffer is not self.array:
            self._bind(buffer)
        self.layout.version += 1

    def add_spare(self) -> None:
        """Have a second buffer, for a plan that writes it and swaps; a writer holds the lock."""
        current = self.array
        if current is not None and self.layout.spare == 0:
            spare = aligned(current.shape, current.dtype)
            self._buffers[address_of(spare)] = spare
            self.layout.spare = address_of(spare)

    def unbind(self) -> None:
        """Drop the buffers; a writer holds the lock."""
        self.layout.data = 0
        self.layout.spare = 0
        self._buffers.clear()

    def _bind(self, array: Array) -> None:
        self.unbind()
        self._dims[: array.ndim] = array.shape
        self._buffers[address_of(array)] = array
        self.layout.data = address_of(array)

    def __repr__(self) -> str:
        state = f"version {self.version}" if self.initialised else "no value"
        return f"<variable {self.name}: {self.type!r}, {state}>"


def address_of(array: Array) -> int:
    """The address of the elements, also of an array that has none."""
    address: int = array.__array_interface__["data"][0]
    return address


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A C-contiguous array, contents not set, whose data is 64-byte aligned and its own."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + 2 * ALIGNMENT, np.uint8)
    start = -address_of(raw) % ALIGNMENT
    return np.ndarray(shape, dtype, buffer=raw.data, offset=start)


@contextmanager
def locked(locks: CellLocks, cells: Sequence[Cell], write: bool) -> Iterator[None]:
    """Hold the locks of `cells`, for writing or for reading."""
    held: list[int] = []
    try:
        for address in sorted({cell.address for cell in cells}):
            locks.acquire(address, write)
            held.append(address)
        yield
    finally:
        for address in reversed(held):
            locks.release(address, write)
