"""The control block: what every kernel receives beside its arguments, and the process behind it.

A kernel is `kernel(ctl, args, begin, end) -> None`: `args` are 64-bit words (addresses, sizes,
scalars), the range is its share of the parallel extent. `ctl` is a `Control`. Kernels use three
things of it:

* `ctl.cancel`, an i64: leave soon when it is not 0. Read it (a plain load) at chunk edges and back
  edges.
* `ctl.poll(ctl) -> i64`: the same question, but on the calling thread it also looks at signals and
  the deadline. A loop that may run long inside one chunk calls it about every 10-1000 microseconds
  of work; not 0 means leave. Costs some 30 ns.
* `ctl.fail(ctl, code, node, word0, word1, word2)`: a check failed. The first call wins; all
  threads leave soon. A kernel of a plan passes its failure's number plus 1 and node -1: the launch
  knows whose place that is.

`Control` and `Process` are the one definition: native code uses them as structs, the kernel
generator takes offsets from `layout_of(Control)`.

Invariants: a `Control` belongs to one call in flight and lives in that call's frame; a `Process`
lives as long as the process. Every address of the process native code uses is a field of
`Process`.
Not here: filling `Process` in (`process`), the pool's work (`pool`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Annotated

from .cabi import PyArrayObject, PyDescrObject, PyObject
from .language import (
    Ptr,
    Raw,
    Struct,
    compare_exchange,
    function,
    i32,
    i64,
    is_null,
    load_acquire,
    null,
    ref,
    stack,
    store_release,
    thread_pointer,
)

SIGNAL_PERIOD_NS = 100_000_000
_CLOCK_MONOTONIC = 1


class Failure(enum.IntEnum):
    """Error codes of the runtime itself. They are negative; a plan's own codes are positive."""

    DEADLINE = -1
    NO_MEMORY = -2
    BAD_SIZE = -3


class Process(Struct):
    """Addresses of the running process: C library, CPython, NumPy, and our pool."""

    pool: Pool
    memory: Memory
    generation: i64  # grows by one in a forked child
    resting: i64  # how many blocks of code want plain Python: entries go to the slow path
    # C library
    malloc: Callable[[i64], Raw]
    free: Callable[[Raw], None]
    aligned_alloc: Callable[[i64, i64], Raw]
    syscall: Callable[[i64, Raw, i64, i64, Raw], i64]
    pthread_create: Callable[[Raw, Raw, Raw, Raw], i32]
    pthread_detach: Callable[[i64], i32]
    clock_gettime: Callable[[i32, Raw], i32]
    mmap: Callable[[Raw, i64, i32, i32, i32, i64], i64]
    munmap: Callable[[i64, i64], i32]
    madvise: Callable[[i64, i64, i32], i32]
    # CPython functions
    PyEval_SaveThread: Callable[[], Raw]
    PyEval_RestoreThread: Callable[[Raw], None]
    PyErr_CheckSignals: Callable[[], i32]
    PyErr_NoMemory: Callable[[], PyObject]
    PyErr_Clear: Callable[[], None]
    PyObject_Vectorcall: Callable[[PyObject, Ptr[PyObject], i64, PyObject], PyObject]
    PyObject_RichCompareBool: Callable[[PyObject, PyObject, i32], i32]
    PyObject_GetAttr: Callable[[PyObject, PyObject], PyObject]
    PyDict_GetItemWithError: Callable[[PyObject, PyObject], PyObject]
    PyTuple_New: Callable[[i64], PyObject]
    PyList_New: Callable[[i64], PyObject]
    PyDict_New: Callable[[], PyObject]
    PyDict_SetItem: Callable[[PyObject, PyObject, PyObject], i32]
    PyLong_FromLongLong: Callable[[i64], PyObject]
    PyLong_AsLongLongAndOverflow: Callable[[PyObject, Ptr[i32]], i64]
    PyMethod_New: Callable[[PyObject, PyObject], PyObject]
    PyObject_GC_UnTrack: Callable[[PyObject], None]
    PyObject_GC_Del: Callable[[PyObject], None]
    PyObject_ClearWeakRefs: Callable[[PyObject], None]
    PyType_GenericAlloc: Callable[[PyObject, i64], PyObject]
    _Py_Dealloc: Callable[[PyObject], None]
    PyTraceMalloc_Track: Callable[[i32, i64, i64], i32]
    # NumPy functions
    PyArray_NewFromDescr: Callable[
        [PyObject, PyDescrObject, i32, Ptr[i64], Ptr[i64], Raw, i32, PyObject], PyArrayObject
    ]
    PyArray_EquivTypes: Callable[[PyDescrObject, PyDescrObject], i32]
    PyArray_Scalar: Callable[[Raw, PyDescrObject, PyObject], PyObject]
    mem_handler: PyObject  # the capsule of our memory; null if arrays must not have it
    # types and constants
    ndarray_type: PyObject
    float_type: PyObject
    int_type: PyObject
    bool_type: PyObject
    complex_type: PyObject
    tuple_type: PyObject
    list_type: PyObject
    dict_type: PyObject
    true: PyObject
    none: PyObject


class Control(Struct):
    """State of one call in flight; `ctl` in the kernel ABI."""

    cancel: i64
    poll: Callable[[Control], i64]
    fail: Callable[[Control, i64, i64, i64, i64, i64], None]
    error_state: i64  # 0 none, 1 being written, 2 complete
    error_code: i64
    error_node: i64
    error_words: Annotated[Ptr[i64], 3]
    deadline: i64  # CLOCK_MONOTONIC nanoseconds; 0 for none
    process: Process
    thread: i64  # of the caller: only it may look at signals
    thread_state: Raw  # the caller's, while the GIL is released; else null
    places: i64  # of the current launch: number of its kernel's first place of failure
    next_look: i64  # when to look at signals again
    interrupted: i64  # a signal handler or a host call raised: a Python exception is set
    committing: i64  # rows that others can see the effect of are being run: only a failure ends it
    committed: i64  # the first of them has begun


class Pool(Struct):
    """The worker pool's shared words (`pool`); the busy ones have cache lines of their own."""

    state: i64  # epoch << 32 | OPEN | workers inside
    _line0: Annotated[Ptr[i64], 15]
    next: i64  # first iteration not handed out
    _line1: Annotated[Ptr[i64], 15]
    owner: i64  # 1 while some caller uses the pool
    size: i64  # threads to use, the caller included
    started: i64  # workers alive
    sleepers: i64  # workers in the kernel's futex queue
    joining: i64  # 1 while the owner sleeps until the workers have left
    spins: i64  # turns an idle thread waits awake
    limit: i64  # workers the current job admits
    kernel: Callable[[Control, Ptr[i64], i64, i64], None]
    ctl: Control
    args: Ptr[i64]
    end: i64
    grain: i64


class Chunk(Struct):
    """The head of a mapping (`output_memory`); 64 bytes, directly before the memory handed out."""

    size: i64
    kind: i64  # its size class
    next: Chunk  # in the list of its class
    before: Chunk
    older: Chunk  # in the order of being freed
    newer: Chunk
    start: i64  # of the mapping
    length: i64


class Memory(Struct):
    """The large pieces of memory a process keeps for the next call (`output_memory`)."""

    lock: i64
    process: Process
    limit: i64  # bytes kept at most
    kept: i64
    mapped: i64  # how often the system was asked for memory
    reused: i64  # how often it was not
    newest: Chunk
    oldest: Chunk
    heads: Annotated[Ptr[i64], 256]  # newest chunk of each size class


class Timespec(Struct):
    """C's struct timespec."""

    seconds: i64
    nanoseconds: i64


def monotonic(process: Process) -> i64:
    """Nanoseconds of the monotonic clock."""
    now = stack(i64, 2)
    process.clock_gettime(_CLOCK_MONOTONIC, now)
    return now[0] * 1_000_000_000 + now[1]


def fail(ctl: Control, code: i64, node: i64, word0: i64, word1: i64, word2: i64) -> None:
    """Record the first failure and ask everybody to leave."""
    if compare_exchange(ref(ctl.error_state), 0, 1):
        ctl.error_code = code
        ctl.error_node = node if node >= 0 or code < 0 else ctl.places + code - 1
        ctl.error_words[0] = word0
        ctl.error_words[1] = word1
        ctl.error_words[2] = word2
        store_release(ref(ctl.error_state), 2)
    store_release(ref(ctl.cancel), 1)


def poll(ctl: Control) -> i64:
    """Whether to leave; on the calling thread, look at the clock and now and then at signals."""
    if load_acquire(ref(ctl.cancel)) != 0:
        return 1
    if ctl.committing != 0 or thread_pointer() != ctl.thread:
        return 0
    if ctl.next_look == 0 and ctl.deadline == 0:
        ctl.next_look = 1  # a short call asks once and need not even read the clock
        return 0
    now = monotonic(ctl.process)
    if ctl.deadline != 0 and now >= ctl.deadline:
        fail(ctl, Failure.DEADLINE, -1, now - ctl.deadline, 0, 0)
        return 1
    if now < ctl.next_look:
        return 0
    first = ctl.next_look <= 1
    ctl.next_look = now + SIGNAL_PERIOD_NS
    if first:
        return 0
    return look_at_signals(ctl)


def look_at_signals(ctl: Control) -> i64:
    """Let Python's signal handlers run; one that raises cancels the call, its exception set."""
    process = ctl.process
    released = not is_null(ctl.thread_state)
    if released:
        process.PyEval_RestoreThread(ctl.thread_state)
    raised = process.PyErr_CheckSignals() != 0
    if released:
        ctl.thread_state = process.PyEval_SaveThread()
    if not raised:
        return 0
    ctl.interrupted = 1
    store_release(ref(ctl.cancel), 1)
    return 1


def begin_control(ctl: Control, process: Process) -> None:
    """Make a control block ready for one call, on the thread that runs it."""
    ctl.cancel = 0
    ctl.poll = function(poll)
    ctl.fail = function(fail)
    ctl.error_state = 0
    ctl.deadline = 0
    ctl.places = 0
    ctl.process = process
    ctl.thread = thread_pointer()
    ctl.thread_state = null(Raw)
    ctl.next_look = 0
    ctl.interrupted = 0
    ctl.committing = 0
    ctl.committed = 0
