"""The walker: executes a specialisation's rows.

Invariants: it stops at the first failure or cancellation, so rows that others can see the effect
of come after all rows that can fail. Those, from the first to the last, are the commit: a signal or
a deadline stops the call before it or after it, so others see all of it or nothing. It holds the
GIL or not, as `ctl.thread_state` says, and takes it only for host calls.
Not here: making arenas and outputs (`entry`, `results`), running one kernel on many threads
(`pool`).
"""

from __future__ import annotations

from .cabi import PyObject
from .cells import swap_cell
from .control import Control, Failure, Process, fail, look_at_signals
from .counting import drop
from .language import (
    Ptr,
    Raw,
    address,
    at,
    copy_bytes,
    i64,
    is_null,
    load_acquire,
    null,
    pointer,
    ref,
    stack,
    store_release,
)
from .layout import (
    CHUNKS_PER_THREAD,
    MAX_PARAMETERS,
    SERIAL_NS,
    Row,
    RowKind,
    Specialisation,
)
from .pool import launch
from .sizes import run_sizes

_TRIP_NS = 50
_POLL_NS = 20_000  # of work between two looks at the clock in a loop


def walk(ctl: Control, spec: Specialisation, slots: Ptr[i64]) -> None:
    """Run the rows until the last, a failure or a cancellation."""
    number: i64 = 0
    spent: i64 = 0
    while number < spec.n_rows and load_acquire(ref(ctl.cancel)) == 0:
        row = at(spec.rows, number)
        number += 1
        if row.visible != ctl.committing and not _cross(ctl, row.visible):
            return
        if row.kind == RowKind.LAUNCH:
            _launch(ctl, row, slots, slots + spec.scratch)
            spent += slots[row.work]
        elif row.kind == RowKind.COMPUTE:
            if not run_sizes(at(spec.sizes, row.first), row.count, slots):
                fail(ctl, Failure.BAD_SIZE, row.first, 0, 0, 0)
        elif jumps(row, slots):
            if row.target < number:
                spent += _TRIP_NS
                if spent > _POLL_NS:
                    spent = 0
                    if ctl.poll(ctl) != 0:
                        return
            number = row.target
        elif row.kind == RowKind.JUMP_IF_ZERO or row.kind == RowKind.JUMP_UNLESS_ZERO:
            continue
        else:
            _other(ctl, spec, row, slots)
            if row.kind == RowKind.COPY:
                spent += slots[row.words[2]] // 8


def _cross(ctl: Control, committing: i64) -> bool:
    """Begin or end the commit; false if the call is to stop here."""
    if committing != 0:
        if ctl.poll(ctl) != 0:
            return False
        ctl.committed = 1
    ctl.committing = committing
    return ctl.interrupted == 0


def prepare(ctl: Control, row: Row, slots: Ptr[i64], scratch: Ptr[i64]) -> None:
    """The argument words of a launch, and whose places of failure its kernel reports."""
    for index in range(row.count):
        scratch[index] = slots[row.words[index]]
    ctl.places = row.errors


def jumps(row: Row, slots: Ptr[i64]) -> bool:
    """Whether this is a jump that is taken."""
    kind = row.kind
    if kind == RowKind.JUMP_UNLESS_ZERO:
        return slots[row.extent] != 0
    if kind == RowKind.JUMP_IF_ZERO:
        return slots[row.extent] == 0
    return kind == RowKind.JUMP


def copy_buffer(row: Row, slots: Ptr[i64]) -> None:
    """A COPY row."""
    copy_bytes(
        pointer(Raw, slots[row.words[0]]),
        pointer(Raw, slots[row.words[1]]),
        slots[row.words[2]],
    )


def _launch(ctl: Control, row: Row, slots: Ptr[i64], scratch: Ptr[i64]) -> None:
    prepare(ctl, row, slots, scratch)
    extent = slots[row.extent]
    work = slots[row.work]
    if work < SERIAL_NS:
        if extent > 0:
            row.kernel(ctl, scratch, 0, extent)
        return
    threads = 1 + work // SERIAL_NS
    size = ctl.process.pool.size
    if threads > size:
        threads = size
    grain = (extent + threads * CHUNKS_PER_THREAD - 1) // (threads * CHUNKS_PER_THREAD)
    launch(ctl, row.kernel, scratch, extent, grain if grain > row.grain else row.grain, threads)


def _other(ctl: Control, spec: Specialisation, row: Row, slots: Ptr[i64]) -> None:
    kind = row.kind
    if kind == RowKind.COPY:
        copy_buffer(row, slots)
    elif kind == RowKind.HOST:
        _call_host(ctl, row, slots)
    elif kind == RowKind.SWAP:
        slots[row.extent] = swap_cell(row.cell)
    elif kind == RowKind.ALLOC:
        _allocate(ctl, row, slots)
    else:
        ctl.process.free(pointer(Raw, slots[row.target]))
        slots[row.target] = 0


def _allocate(ctl: Control, row: Row, slots: Ptr[i64]) -> None:
    """Memory whose size only the call itself can know."""
    size = slots[row.extent]
    if slots[row.target] != 0:
        ctl.process.free(pointer(Raw, slots[row.target]))
        slots[row.target] = 0
    if size < 0:
        fail(ctl, Failure.BAD_SIZE, row.first, size, 0, 0)
        return
    memory = ctl.process.aligned_alloc(64, (size + 64) // 64 * 64)
    if is_null(memory):
        fail(ctl, Failure.NO_MEMORY, row.first, size, 0, 0)
        return
    slots[row.target] = address(memory)


def _call_host(ctl: Control, row: Row, slots: Ptr[i64]) -> None:
    """Call a Python object with the words as ints; its exception ends the call after the commit."""
    if ctl.interrupted != 0:
        return
    process = ctl.process
    released = not is_null(ctl.thread_state)
    if released:
        process.PyEval_RestoreThread(ctl.thread_state)
        ctl.thread_state = null(Raw)
    stopped = ctl.committing == 0 and look_at_signals(ctl) != 0
    if not stopped and not _call_with_words(process, row, slots):
        ctl.interrupted = 1
        if ctl.committing == 0:
            store_release(ref(ctl.cancel), 1)
    if released:
        ctl.thread_state = process.PyEval_SaveThread()


def _call_with_words(process: Process, row: Row, slots: Ptr[i64]) -> bool:
    args = stack(PyObject, MAX_PARAMETERS)
    made: i64 = 0
    while made < row.count:
        args[made] = process.PyLong_FromLongLong(slots[row.words[made]])
        if is_null(args[made]):
            break
        made += 1
    result = null(PyObject)
    if made == row.count:
        result = process.PyObject_Vectorcall(row.callable, args, made, null(PyObject))
    for index in range(made):
        drop(process, args[index])
    if is_null(result):
        return False
    drop(process, result)
    return True


def free_allocated(process: Process, spec: Specialisation, slots: Ptr[i64]) -> None:
    """Free what ALLOC rows made and no row freed."""
    for index in range(spec.n_allocated):
        process.free(pointer(Raw, slots[spec.allocated[index]]))
