"""The Python type of compiled functions: its native slots.

Invariants: the garbage collector sees every object a function holds; clearing drops them all, so a
cycle through `slow` or an attribute is collected. Once cleared, a function is called no more.
Not here: the call (`entry`), making the type object (`python_type`).
"""

from __future__ import annotations

from collections.abc import Callable

from .cabi import PyObject
from .control import Process
from .counting import drop, take
from .entry import enter
from .language import Ptr, Raw, cast, function, i32, i64, is_null, null, ref
from .layout import Function, Specialisation

_HELD = 6  # objects a function holds beside its attributes


def traverse(callee: Function, visit: Callable[[PyObject, Raw], i32], extra: Raw) -> i32:
    """tp_traverse."""
    stopped = visit(callee.ob_type, extra)
    first = _held(callee)
    for index in range(_HELD):
        if stopped == 0 and not is_null(first[index]):
            stopped = visit(first[index], extra)
    if stopped == 0 and not is_null(callee.attributes):
        stopped = visit(callee.attributes, extra)
    return stopped


def _held(callee: Function) -> Ptr[PyObject]:
    """The objects a function holds lie side by side, from `names` to `keepalive`."""
    return ref(callee.names)


def clear(callee: Function) -> i32:
    """tp_clear."""
    process = callee.process
    callee.specialisations = null(Specialisation)
    first = _held(callee)
    for index in range(_HELD):
        held = first[index]
        first[index] = null(PyObject)
        drop(process, held)
    attributes = callee.attributes
    callee.attributes = null(PyObject)
    drop(process, attributes)
    return 0


def dealloc(callee: Function) -> None:
    """tp_dealloc of a collected heap type: the instance holds a reference to its type."""
    process = callee.process
    process.PyObject_GC_UnTrack(callee)
    if not is_null(callee.weak_references):
        process.PyObject_ClearWeakRefs(callee)
    clear(callee)
    kind = callee.ob_type
    process.PyObject_GC_Del(callee)
    drop(process, kind)


def descr_get(callee: Function, owner: PyObject, kind: PyObject) -> PyObject:
    """tp_descr_get: a bound method on an instance, the function itself on a class."""
    if is_null(owner):
        return take(callee)
    return callee.process.PyMethod_New(callee, owner)


def new_function(
    process: Process,
    kind: PyObject,
    names: PyObject,
    positional: i64,
    count: i64,
    defaults: PyObject,
    missing: PyObject,
    slow: PyObject,
    raiser: PyObject,
    keepalive: PyObject,
) -> PyObject:
    """A new function without specialisations; null with an exception if memory is short."""
    made = process.PyType_GenericAlloc(kind, 0)
    if is_null(made):
        return made
    callee = cast(Function, made)
    callee.process = process
    callee.vectorcall = function(enter)
    callee.count = count
    callee.positional = positional
    callee.direct = count if positional == count else -1
    callee.names = take(names)
    callee.defaults = take(defaults)
    callee.missing = take(missing)
    callee.slow = take(slow)
    callee.raiser = take(raiser)
    callee.keepalive = take(keepalive)
    return made


def install(callee: Function, spec: Specialisation) -> None:
    """Put a specialisation first in the table."""
    spec.next = callee.specialisations
    callee.specialisations = spec


def remove(callee: Function, unwanted: Specialisation) -> None:
    """Take a specialisation out of the table; a call testing it goes on to the slow path."""
    spec = callee.specialisations
    if spec is unwanted:
        callee.specialisations = unwanted.next
    while not is_null(spec):
        if spec.next is unwanted:
            spec.next = unwanted.next
        spec = spec.next
    unwanted.next = null(Specialisation)


def set_time_limit(callee: Function, nanoseconds: i64) -> None:
    """Limit the time a call may take; 0 for no limit."""
    callee.time_limit = nanoseconds


def let_pass(callee: Function) -> None:
    """The next call tries the specialisations. Made at once, while no other thread can call."""
    callee.passes = 1


def release_blocks(process: Process, spec: Specialisation) -> None:
    """Free the cached memory of a specialisation nobody will call again."""
    _free_block(process, ref(spec.cached_arena))
    _free_block(process, ref(spec.cached_frame))


def _free_block(process: Process, cached: Ptr[Raw]) -> None:
    process.free(cached[0])
    cached[0] = null(Raw)
