"""Device memory as the emulator sees it: values, what was written, and who touched it when.

A *phase* is the time between two barriers. Two accesses of one address, one of them a store, by
two threads are a race unless they are of one block and of different phases: blocks never meet.

Invariants: addresses are element numbers in row-major order; arrays of one memory share a record.
Not here: which thread accesses what (emulator.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from ...compiler.records import dataclass

Array = np.ndarray[Any, Any]
_NOBODY, _MANY = -1, -2


class Kind(Enum):
    """What a kernel did wrong."""

    OUT_OF_BOUNDS = "out of bounds"
    UNINITIALISED = "read before it was written"
    RACE = "race"
    DIVERGENT_BARRIER = "divergent barrier"


class KernelFault(Exception):
    """A kernel did what a GPU would not forgive, or would forgive silently."""

    def __init__(self, kind: Kind, what: str) -> None:
        super().__init__(f"{kind.value}: {what}")
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Touch:
    """Who accesses: the numbers of threads in the launch, threads of a block, and the phase."""

    threads: Array
    per_block: int
    phase: int

    @property
    def blocks(self) -> Array:
        """The block of each thread."""
        return self.threads // self.per_block


class Record:
    """Who touched each address last."""

    def __init__(self, size: int) -> None:
        self.writer = np.full(size, _NOBODY)
        self.write_phase = np.full(size, -1)
        self.reader = np.full(size, _NOBODY)
        self.read_phase = np.full(size, -1)
        self.reading_block = np.full(size, _NOBODY)

    def read(self, at: Array, touch: Touch) -> Array:
        """Note reads; true for those that race."""
        bad = self._written_by_another(at, touch)
        before, together = self.reader[at], self.read_phase[at] == touch.phase
        self.reader[at], self.read_phase[at] = touch.threads, touch.phase
        several = together & (before != touch.threads) | (self.reader[at] != touch.threads)
        self.reader[at[several]] = _MANY
        blocks, before = touch.blocks, self.reading_block[at]
        self.reading_block[at] = blocks
        several = (before != _NOBODY) & (before != blocks) | (self.reading_block[at] != blocks)
        self.reading_block[at[several]] = _MANY
        return bad

    def write(self, at: Array, touch: Touch) -> Array:
        """Note writes; true for those that race."""
        bad = self._written_by_another(at, touch)
        bad |= (self.read_phase[at] == touch.phase) & (self.reader[at] != touch.threads)
        reading = self.reading_block[at]
        bad |= (reading != _NOBODY) & (reading != touch.blocks)
        self.writer[at], self.write_phase[at] = touch.threads, touch.phase
        bad |= self.writer[at] != touch.threads
        return bad

    def _written_by_another(self, at: Array, touch: Touch) -> Array:
        writer = self.writer[at]
        elsewhere = writer // touch.per_block != touch.blocks
        found: Array = (
            (writer != _NOBODY)
            & (writer != touch.threads)
            & (elsewhere | (self.write_phase[at] == touch.phase))
        )
        return found


class Memory:
    """One buffer.

    sharing: how many threads have a copy together, which are the first axis of `values`; 0 where
    there is one for all. record: None where races cannot be: what is only read, what one thread
    owns. written: whether it may be read before the kernel stores to it.
    """

    def __init__(
        self, name: str, values: Array, sharing: int, record: Record | None, written: bool
    ) -> None:
        self.name = name
        self.shape = values.shape[1:] if sharing else values.shape
        self.values = values if values.ndim else values.reshape(1)
        self.sharing = sharing
        self.record = record
        self.written = None if written else np.zeros(values.size, bool)

    def load(self, index: Sequence[Array], lanes: Array, touch: Touch) -> Array:
        """The elements at `index`, for some lanes of the emulator."""
        place, at = self._places(index, lanes)
        if self.written is not None:
            self._complain(Kind.UNINITIALISED, ~self.written[at], index, touch)
        if self.record is not None:
            self._complain(Kind.RACE, self.record.read(at, touch), index, touch)
        found: Array = self.values[place]
        return found

    def store(self, index: Sequence[Array], lanes: Array, touch: Touch, values: Array) -> None:
        """Write the elements at `index`."""
        place, at = self._places(index, lanes)
        if self.record is not None:
            self._complain(Kind.RACE, self.record.write(at, touch), index, touch)
        if self.written is not None:
            self.written[at] = True
        self.values[place] = values

    def check_bounds(self, index: Sequence[Array], touch: Touch) -> None:
        """Raise KernelFault where an index is outside."""
        for i, n in zip(index, self.shape):
            self._complain(Kind.OUT_OF_BOUNDS, (i < 0) | (i >= n), index, touch)

    def _places(self, index: Sequence[Array], lanes: Array) -> tuple[tuple[Array, ...], Array]:
        """Where the elements are in `values`, and their numbers."""
        place = (lanes // self.sharing, *index) if self.sharing else tuple(index)
        at: Array = np.zeros(len(lanes), np.int64)
        place = place or (at,)
        for i, n in zip(place, self.values.shape):
            at = at * n + i
        return place, at

    def _complain(self, kind: Kind, bad: Array, index: Sequence[Array], touch: Touch) -> None:
        if not bad.any():
            return
        first = int(np.argmax(bad))
        place = ", ".join(str(int(i[first])) for i in index)
        block, thread = divmod(int(touch.threads[first]), touch.per_block)
        shape = list(self.shape)
        raise KernelFault(
            kind, f"{self.name}[{place}] of {shape} by thread {thread} of block {block}"
        )
