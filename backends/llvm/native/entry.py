"""The entry: what CPython's vectorcall reaches. Binds arguments, finds a specialisation, runs the
call.

Invariants: an entry either runs one specialisation completely or has changed nothing and hands the
very same arguments to the slow path. Arguments are the caller's references for the whole call; the
plan's owner is referenced by the call, so a specialisation may be dropped from the table while it
runs.
Not here: tests (`matching`), rows (`walker`), the Python type (`function_type`).
"""

from __future__ import annotations

from .cabi import PyObject, PyTupleObject
from .cells import lock_cells, note_writes, read_cells, unlock_cells
from .control import Control, Process, begin_control, monotonic
from .counting import borrow_arena, borrow_block, drop, return_arena, return_block, take
from .language import (
    Ptr,
    Raw,
    address,
    at,
    cast,
    i64,
    is_null,
    local,
    null,
    pointer,
    ref,
    stack,
)
from .layout import MAX_PARAMETERS, STACK_WORDS, Function, Source, Specialisation
from .matching import match_inputs, match_overlaps
from .results import build_result, drop_outputs, make_outputs, make_scalars
from .sizes import run_sizes
from .walker import free_allocated, walk

_COUNT_MASK = 0x7FFFFFFFFFFFFFFF  # without PY_VECTORCALL_ARGUMENTS_OFFSET
_EQUAL = 2  # Py_EQ
_RELEASE_NS = 20_000  # below this the GIL is kept: giving it up costs more than it frees


def enter(callee: Function, args: Ptr[PyObject], flags: i64, names: PyObject) -> PyObject:
    """The vectorcall of every compiled function."""
    given = flags & _COUNT_MASK
    bound = args
    room = stack(PyObject, MAX_PARAMETERS)
    if given != callee.direct or not is_null(names):
        bound = _bind(callee, args, given, names, room)
    if callee.process.resting != 0:
        if callee.passes == 0:
            bound = null(Ptr[PyObject])
        callee.passes = 0
    if not is_null(bound):
        result = stack(PyObject, 1)
        spec = callee.specialisations
        while not is_null(spec):
            owner = take(spec.owner)  # a test may run Python, and Python may remove this one
            accepted = _attempt(callee, spec, bound, result)
            following = spec.next
            if accepted and callee.specialisations is not spec:
                _move_to_front(callee, spec)
            drop(callee.process, owner)
            if accepted:
                return result[0]
            spec = following
    if is_null(callee.slow):  # the collector has cleared this function
        return null(PyObject)
    return callee.process.PyObject_Vectorcall(callee.slow, args, flags, names)


def _move_to_front(callee: Function, spec: Specialisation) -> None:
    """The most recent specialisation is tried first, unless it was removed while it ran."""
    before = callee.specialisations
    while not is_null(before):
        if before.next is spec:
            before.next = spec.next
            spec.next = callee.specialisations
            callee.specialisations = spec
            return
        before = before.next


def _bind(
    callee: Function, args: Ptr[PyObject], given: i64, names: PyObject, room: Ptr[PyObject]
) -> Ptr[PyObject]:
    """Arguments in the order of the parameters; null where the slow path must say what is wrong."""
    if given > callee.positional or is_null(callee.names):
        return null(Ptr[PyObject])
    defaults = ref(cast(PyTupleObject, callee.defaults).first_item)
    for index in range(callee.count):
        room[index] = args[index] if index < given else null(PyObject)
    if not is_null(names):
        keywords = cast(PyTupleObject, names)
        for index in range(keywords.ob_size):
            place = _parameter(callee, ref(keywords.first_item)[index])
            if place < given:
                return null(Ptr[PyObject])
            room[place] = args[given + index]
    for index in range(given, callee.count):
        if is_null(room[index]):
            room[index] = defaults[index]
            if room[index] is callee.missing:
                return null(Ptr[PyObject])
    return room


def _parameter(callee: Function, name: PyObject) -> i64:
    """The position of a parameter, -1 if there is none; interned names compare by address."""
    names = ref(cast(PyTupleObject, callee.names).first_item)
    for index in range(callee.count):
        if names[index] is name:
            return index
    for index in range(callee.count):
        if callee.process.PyObject_RichCompareBool(names[index], name, _EQUAL) == 1:
            return index
    return -1


def _attempt(
    callee: Function, spec: Specialisation, args: Ptr[PyObject], result: Ptr[PyObject]
) -> bool:
    """Try one specialisation: false if it does not accept the arguments."""
    process = callee.process
    room = stack(i64, STACK_WORDS)
    frame = room
    if spec.frame_words > STACK_WORDS:
        frame = cast(Ptr[i64], borrow_block(process, ref(spec.cached_frame), spec.frame_words * 8))
        if is_null(frame):
            result[0] = process.PyErr_NoMemory()
            return True
    accepted = _accept(callee, spec, args, frame, result)
    if spec.n_owned > 0:
        _drop_owned(process, spec, frame + spec.objects)
    if spec.frame_words > STACK_WORDS:
        return_block(process, ref(spec.cached_frame), frame)
    return accepted


def _accept(
    callee: Function,
    spec: Specialisation,
    args: Ptr[PyObject],
    frame: Ptr[i64],
    result: Ptr[PyObject],
) -> bool:
    process = callee.process
    for index in range(spec.n_constants):
        frame[index] = spec.constants[index]
    objects = frame + spec.objects
    if spec.n_owned > 0:
        for index in range(spec.n_inputs):
            objects[index] = 0
    if not match_inputs(process, spec, frame, objects, args):
        return False
    if not match_overlaps(spec, objects):
        return False
    accepted: bool = True
    if spec.n_cells > 0:
        lock_cells(process, spec)
        accepted = read_cells(spec, frame)
    if accepted and run_sizes(spec.sizes, spec.n_sizes, frame):
        spec.calls += 1
        result[0] = _run(callee, spec, frame)
    else:
        accepted = False
    if spec.n_cells > 0:
        unlock_cells(spec)
    return accepted


def _run(callee: Function, spec: Specialisation, frame: Ptr[i64]) -> PyObject:
    """Run an accepted call: outputs, arena, rows, result."""
    process = callee.process
    outputs = frame + spec.results
    for index in range(spec.n_outputs):
        outputs[index] = 0
    result = null(PyObject)
    if make_outputs(process, spec, frame, frame + spec.objects, outputs):
        arena = null(Raw)
        arena_bytes: i64 = 0
        if spec.arena_bytes >= 0:
            arena_bytes = frame[spec.arena_bytes]
            arena = borrow_arena(process, ref(spec.cached_arena), arena_bytes)
            frame[spec.arena] = address(arena)
        if spec.arena_bytes >= 0 and is_null(arena):
            result = process.PyErr_NoMemory()
        elif _run_rows(callee, spec, frame) and make_scalars(process, spec, frame, outputs):
            result = build_result(process, spec, outputs, frame + spec.building)
        return_arena(process, ref(spec.cached_arena), arena, arena_bytes)
    drop_outputs(process, spec, outputs)
    return result


def _run_rows(callee: Function, spec: Specialisation, frame: Ptr[i64]) -> bool:
    """Walk the rows, without the GIL if that takes long; false with an exception if they failed."""
    process = callee.process
    ctl = local(Control)
    begin_control(ctl, process)
    if callee.time_limit > 0:
        ctl.deadline = monotonic(process) + callee.time_limit
    for index in range(spec.n_allocated):
        frame[spec.allocated[index]] = 0
    run_sizes(at(spec.sizes, spec.addresses), spec.n_addresses, frame)
    release = frame[spec.work] > _RELEASE_NS
    if release:
        ctl.thread_state = process.PyEval_SaveThread()
    walk(ctl, spec, frame)
    if release:
        process.PyEval_RestoreThread(ctl.thread_state)
        ctl.thread_state = null(Raw)
    free_allocated(process, spec, frame)
    if ctl.committed != 0 or (ctl.interrupted == 0 and ctl.error_state == 0):
        note_writes(spec)
    if ctl.interrupted != 0:
        return False
    if ctl.error_state != 0:
        _raise(callee, spec, ctl)
        return False
    return True


def _raise(callee: Function, spec: Specialisation, ctl: Control) -> None:
    """Let Python make the exception: raiser(owner, code, node, word0, word1, word2)."""
    process = callee.process
    args = stack(PyObject, 6)
    args[0] = take(spec.owner)
    args[1] = process.PyLong_FromLongLong(ctl.error_code)
    args[2] = process.PyLong_FromLongLong(ctl.error_node)
    for index in range(3):
        args[3 + index] = process.PyLong_FromLongLong(ctl.error_words[index])
    complete: bool = True
    for index in range(6):
        complete = complete and not is_null(args[index])
    if complete:
        drop(process, process.PyObject_Vectorcall(callee.raiser, args, 6, null(PyObject)))
    for index in range(6):
        drop(process, args[index])


def _drop_owned(process: Process, spec: Specialisation, objects: Ptr[i64]) -> None:
    """Give up the references that finding inputs made."""
    for number in range(spec.n_inputs):
        if at(spec.inputs, number).source >= Source.DICT_ITEM:
            drop(process, pointer(PyObject, objects[number]))
