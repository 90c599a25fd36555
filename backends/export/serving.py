"""What runs inside an exported library, in the native language: instances and calls of them.

The tables below are constant data in the library (`tables` makes them). An `Instance` is one
block of memory: itself, the frame (slots, then argument words of the current launch), then the
content of the Variables. The frame is initialised once from the model's image, so a call writes
only what its arguments and their sizes change.

Invariants: a call refused by its arguments has changed nothing; rows that write what others can
see come after all rows that can fail. Nothing here is global: two instances share only constants.
Not here: Python, threads, signals (`llvm/native/entry` serves calls from Python).
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from ..llvm.native.control import Control, fail
from ..llvm.native.language import (
    Ptr,
    Raw,
    Struct,
    address,
    at,
    cast,
    copy_bytes,
    function,
    i32,
    i64,
    is_null,
    local,
    null,
    offset,
    sizeof,
    u8,
)
from ..llvm.native.layout import Row, RowKind, SizeRow
from ..llvm.native.sizes import run_sizes
from ..llvm.native.walker import copy_buffer, jumps, prepare

FIRST_PLACE = 16  # codes from here on are places of failure in the user's program
_MOST = 1 << 47  # no size and no array is larger than what a process can address


class Status(enum.IntEnum):
    """What a function of the library returns."""

    OK = 0
    NULL = 1
    SIZE = 2
    ROOM = 3
    MEMORY = 4
    NAME = 5


class Word(enum.IntEnum):
    """What one word of a call is."""

    POINTER = 0
    SIZE = 1
    VALUE = 2
    ROOM = 3


class Incoming(Struct):
    """One word of a call: what it is, and the slot it goes to."""

    kind: i64
    slot: i64


class Produced(Struct):
    """One output: the slots of its sizes, and of the elements the caller has room for."""

    room: i64
    rank: i64
    dims: Ptr[i64]


class Kept(Struct):
    """A Variable: its name, where an instance keeps it, the slot of its address."""

    name: Ptr[u8]
    initial: Raw
    size: i64
    place: i64
    slot: i64


class Model(Struct):
    """All tables of one exported function."""

    aligned_alloc: Callable[[i64, i64], Raw]
    free: Callable[[Raw], None]
    image: Ptr[i64]
    n_slots: i64
    frame_words: i64
    incoming: Incoming
    n_incoming: i64
    produced: Produced
    n_produced: i64
    kept: Kept
    n_kept: i64
    kept_bytes: i64
    sizes: SizeRow
    n_sizes: i64
    addresses: SizeRow
    n_addresses: i64
    later: SizeRow  # what COMPUTE rows run
    rows: Row
    n_rows: i64
    arena: i64  # slot of its address
    arena_bytes: i64  # slot of its size
    messages: Ptr[Raw]
    n_messages: i64
    places: Ptr[Raw]
    n_places: i64


class Instance(Struct):
    """The state behind one handle."""

    model: Model
    slots: Ptr[i64]
    kept: Raw
    arena: Raw
    room: i64


def create(model: Model) -> Instance:
    """A new instance, its Variables as they were at the export; null if memory is short."""
    head = _padded(sizeof(Instance))
    frame = _padded(model.frame_words * 8)
    block = model.aligned_alloc(64, head + frame + _padded(model.kept_bytes))
    if is_null(block):
        return null(Instance)
    made = cast(Instance, block)
    made.model = model
    made.slots = cast(Ptr[i64], offset(block, head))
    made.kept = offset(block, head + frame)
    made.arena = null(Raw)
    made.room = 0
    copy_bytes(made.slots, model.image, model.n_slots * 8)
    for number in range(model.n_kept):
        entry = at(model.kept, number)
        copy_bytes(offset(made.kept, entry.place), entry.initial, entry.size)
        made.slots[entry.slot] = address(offset(made.kept, entry.place))
    return made


def _padded(size: i64) -> i64:
    return (size + 63) // 64 * 64


def destroy(instance: Instance) -> None:
    """Free an instance; null is allowed."""
    if not is_null(instance):
        model = instance.model
        if not is_null(instance.arena):
            model.free(instance.arena)
        model.free(instance)


def run(instance: Instance, words: Ptr[i64]) -> i32:
    """One call: 0, or why not."""
    if is_null(instance):
        return Status.NULL
    model = instance.model
    slots = instance.slots
    for number in range(model.n_incoming):
        entry = at(model.incoming, number)
        word = words[number]
        if entry.kind == Word.POINTER and word == 0:
            return Status.NULL
        if entry.kind == Word.SIZE and (word < 0 or word > _MOST):
            return Status.SIZE
        slots[entry.slot] = word
    if not run_sizes(model.sizes, model.n_sizes, slots):
        return Status.SIZE
    for number in range(model.n_produced):
        output = at(model.produced, number)
        count = _count(output, slots)
        if count < 0:
            return Status.SIZE
        if slots[output.room] < count:
            return Status.ROOM
    if model.arena >= 0 and not _room(instance, slots[model.arena_bytes]):
        return Status.MEMORY
    if model.arena >= 0:
        slots[model.arena] = address(instance.arena)
    run_sizes(model.addresses, model.n_addresses, slots)
    return _walk(model, slots)


def _count(output: Produced, slots: Ptr[i64]) -> i64:
    """Elements of an output; negative where that is no size."""
    count: i64 = 1
    for axis in range(output.rank):
        extent = slots[output.dims[axis]]
        if extent < 0 or (extent > 0 and count > _MOST // extent):
            return -1
        count = count * extent
    return count


def _room(instance: Instance, size: i64) -> bool:
    """An arena of at least so many bytes."""
    if size < 0 or size > _MOST:
        return False
    if size <= instance.room and not is_null(instance.arena):
        return True
    model = instance.model
    if not is_null(instance.arena):
        model.free(instance.arena)
    instance.room = _padded(size + 1)
    instance.arena = model.aligned_alloc(64, instance.room)
    return not is_null(instance.arena)


def _walk(model: Model, slots: Ptr[i64]) -> i32:
    """Run the rows until the last or a failure; the code of the failure."""
    ctl = local(Control)
    ctl.cancel = 0
    ctl.poll = function(_poll)
    ctl.fail = function(fail)
    ctl.error_state = 0
    scratch = slots + model.n_slots
    number: i64 = 0
    while number < model.n_rows and ctl.cancel == 0:
        row = at(model.rows, number)
        number += 1
        if row.kind == RowKind.LAUNCH:
            prepare(ctl, row, slots, scratch)
            if slots[row.extent] > 0:
                row.kernel(ctl, scratch, 0, slots[row.extent])
        elif row.kind == RowKind.COPY:
            copy_buffer(row, slots)
        elif row.kind == RowKind.COMPUTE:
            run_sizes(at(model.later, row.first), row.count, slots)
        elif jumps(row, slots):
            number = row.target
    if ctl.error_state != 0:
        return i32(FIRST_PLACE + ctl.error_node)
    return Status.OK


def _poll(ctl: Control) -> i64:
    """Nothing but a failure ends a call here."""
    return ctl.cancel


def output_size(instance: Instance, output: i32, words: Ptr[i64]) -> i64:
    """Elements of an output for these sizes; minus the code where there is none."""
    if is_null(instance):
        return -Status.NULL
    model = instance.model
    if output < 0 or i64(output) >= model.n_produced:
        return -Status.NAME
    given: i64 = 0
    for number in range(model.n_incoming):
        entry = at(model.incoming, number)
        if entry.kind == Word.SIZE:
            if words[given] < 0 or words[given] > _MOST:
                return -Status.SIZE
            instance.slots[entry.slot] = words[given]
            given += 1
    if not run_sizes(model.sizes, model.n_sizes, instance.slots):
        return -Status.SIZE
    count = _count(at(model.produced, i64(output)), instance.slots)
    return count if count >= 0 else -Status.SIZE


def error_message(model: Model, code: i32) -> Raw:
    """The sentence of a code."""
    number = i64(code)
    if number >= 0 and number < model.n_messages:
        return model.messages[number]
    if number >= FIRST_PLACE and number - FIRST_PLACE < model.n_places:
        return model.places[number - FIRST_PLACE]
    return model.messages[model.n_messages]


def read_variable(instance: Instance, name: Ptr[u8], data: Raw, size: i64) -> i32:
    """Copy a Variable out."""
    if is_null(instance) or is_null(name) or is_null(data):
        return Status.NULL
    entry = _find(instance.model, name)
    if is_null(entry):
        return Status.NAME
    if entry.size != size:
        return Status.SIZE
    copy_bytes(data, offset(instance.kept, entry.place), size)
    return Status.OK


def write_variable(instance: Instance, name: Ptr[u8], data: Raw, size: i64) -> i32:
    """Give a Variable another content."""
    if is_null(instance) or is_null(name) or is_null(data):
        return Status.NULL
    entry = _find(instance.model, name)
    if is_null(entry):
        return Status.NAME
    if entry.size != size:
        return Status.SIZE
    copy_bytes(offset(instance.kept, entry.place), data, size)
    return Status.OK


def _find(model: Model, name: Ptr[u8]) -> Kept:
    for number in range(model.n_kept):
        entry = at(model.kept, number)
        if _same(entry.name, name):
            return entry
    return null(Kept)


def _same(left: Ptr[u8], right: Ptr[u8]) -> bool:
    index: i64 = 0
    while left[index] == right[index]:
        if left[index] == 0:
            return True
        index += 1
    return False


FUNCTIONS: tuple[Callable[..., object], ...] = (
    create,
    destroy,
    run,
    output_size,
    error_message,
    read_variable,
    write_variable,
)
