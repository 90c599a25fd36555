"""Variables during a call: locked in the order of the table, read into slots, swapped at the
commit.

Invariants: a lock is held only by a call in flight; one taken before a fork counts as free in the
child, whose generation is newer. A waiting call gives the GIL up, because the holder may need it
to finish.
Not here: who creates cells and owns their memory (the runtime's store).
"""

from __future__ import annotations

from .control import Process, Timespec
from .language import (
    Ptr,
    Raw,
    address,
    at,
    compare_exchange,
    exchange,
    fetch_add,
    i64,
    is_null,
    load_acquire,
    local,
    null,
    ref,
)
from .layout import Cell, Specialisation

_SYS_CLOCK_NANOSLEEP = 230
_WRITER = 0xFFFFFFFF
_COUNT = 0xFFFFFFFF
_WAIT_NS = 20_000


def lock_cells(process: Process, spec: Specialisation) -> None:
    """Take all locks, in the order of the table, which is the order of addresses."""
    for number in range(spec.n_cells):
        use = at(spec.cells, number)
        lock_cell(process, use.cell, use.written)


def lock_cell(process: Process, cell: Cell, write: i64) -> None:
    """Take one lock; the GIL is held, and given up while waiting."""
    while not _try_lock(process, cell, write != 0):
        saved = process.PyEval_SaveThread()
        _rest(process)
        process.PyEval_RestoreThread(saved)


def _try_lock(process: Process, cell: Cell, write: bool) -> bool:
    held = load_acquire(ref(cell.lock))
    free = process.generation << 32
    if (held >> 32) != process.generation:
        return compare_exchange(ref(cell.lock), held, free | (_WRITER if write else 1))
    if write:
        return compare_exchange(ref(cell.lock), free, free | _WRITER)
    if (held & _COUNT) == _WRITER:
        return False
    return compare_exchange(ref(cell.lock), held, held + 1)


def _rest(process: Process) -> None:
    """Sleep a moment; the lock's holder is running a kernel, so microseconds do not matter."""
    moment = local(Timespec)
    moment.seconds = 0
    moment.nanoseconds = _WAIT_NS
    process.syscall(_SYS_CLOCK_NANOSLEEP, null(Raw), 0, address(moment), null(Raw))


def unlock_cells(spec: Specialisation) -> None:
    """Give all locks up."""
    for number in range(spec.n_cells):
        use = at(spec.cells, number)
        unlock_cell(use.cell, use.written)


def unlock_cell(cell: Cell, write: i64) -> None:
    """Give one lock up."""
    fetch_add(ref(cell.lock), 0 - _WRITER if write != 0 else -1)


def read_cells(spec: Specialisation, slots: Ptr[i64]) -> bool:
    """Addresses and sizes of all Variables into slots; false if a buffer or the rank differs."""
    for number in range(spec.n_cells):
        use = at(spec.cells, number)
        if use.cell.ndim != use.ndim or is_null(use.cell.data):
            return False
        if use.spare >= 0 and is_null(use.cell.spare):
            return False
        slots[use.data] = address(use.cell.data)
        if use.spare >= 0:
            slots[use.spare] = address(use.cell.spare)
        for axis in range(use.ndim):
            slots[use.dims + axis] = use.cell.dims[axis]
    return True


def note_writes(spec: Specialisation) -> None:
    """Count a new version of each Variable written."""
    for number in range(spec.n_cells):
        use = at(spec.cells, number)
        if use.written != 0:
            use.cell.version += 1


def swap_cell(cell: Cell) -> i64:
    """Make the spare buffer the Variable's buffer; the address of what is now current."""
    old = exchange(ref(cell.data), cell.spare)
    cell.spare = old
    return address(cell.data)
