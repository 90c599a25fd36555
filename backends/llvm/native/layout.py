"""The tables a call walks: what native code reads of a function and of its specialisations.

A frame is a row of 64-bit words, one per call in flight: first the *slots* (constants of the plan,
sizes, addresses of buffers, values of numbers), then argument words of the current launch, then
the objects of the inputs and of the outputs. Everything in the tables names slots by number; -1
means there is none.

Invariants: tables are written by `encoder` before they are installed and never change after,
except `next`, the cached blocks and the counter of a specialisation, which change under the GIL or
atomically.
Not here: making tables (`encoder`), walking them (`matching`, `sizes`, `walker`, `results`,
`entry`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Annotated

from .cabi import PyDescrObject, PyObject
from .control import Control, Process
from .language import Ptr, Raw, Struct, i64

NONE = -1
STACK_WORDS = 256  # larger frames come from a cached block
MAX_PARAMETERS = 255
SERIAL_NS = 8_000  # a kernel this short is done before a second thread would have begun
CHUNKS_PER_THREAD = 4  # at most: chunks are larger while much is left


class Source(enum.IntEnum):
    """Where an input's object comes from. From DICT_ITEM on, the call holds a reference."""

    ARGUMENT = 0  # `origin`: position among the bound arguments
    OBJECT = 1  # `key` itself, held by the plan
    DICT_ITEM = 2  # item `key` of input `origin`, a dict (arguments that are trees, module globals)
    SEQUENCE_ITEM = 3  # item `index` of input `origin`, a list or tuple
    CELL = 4  # contents of the closure cell `key`
    ATTRIBUTE = 5  # attribute `key` of input `origin`
    ARGUMENTS = 6  # a tuple of the first `index` bound arguments


class Kind(enum.IntEnum):
    """What an input's object must be."""

    ARRAY = 0  # exactly ndarray, dtype `type` or an equivalent one, `ndim`, `flags`
    FLOAT = 1  # exactly float; the value goes to a slot
    INT = 2  # exactly int, within 64 bits
    BOOL = 3
    COMPLEX = 4  # two slots
    SCALAR = 5  # exactly the NumPy scalar type `type`; read in place through an address
    SAME = 6  # `type` itself, or of its exact type and equal to it
    IDENTICAL = 7  # `type` itself
    TUPLE = 8  # exactly tuple of `ndim` items; its items are inputs of their own
    LIST = 9
    DICT = 10
    ANY = 11  # an object whose items or attributes are inputs
    CHECK = 12  # `type`, called with the object, answers True


class Size(enum.IntEnum):
    """Operations of the size program. The last ones test: a failing test is a miss."""

    ADD = 0
    SUB = 1
    MUL = 2
    FLOORDIV = 3
    MOD = 4
    MAX = 5
    MIN = 6
    ALIGN = 7  # a rounded up to a multiple of 64
    ADDRESS = 8  # the address of slot a
    LOAD = 9  # the 64-bit integer at address a
    LOAD_BYTE = 10  # the byte at address a
    EQUAL = 11
    DIFFERENT = 12
    LESS = 13
    LESS_EQUAL = 14
    DIVISIBLE = 15  # a is a multiple of b


class RowKind(enum.IntEnum):
    """Rows the walker executes."""

    LAUNCH = 0
    COPY = 1  # words: target address, source address, bytes
    COMPUTE = 2  # run size rows [first, first + count)
    JUMP = 3  # to row `target`
    JUMP_IF_ZERO = 4  # to row `target` if slot `extent` is 0
    HOST = 5  # call the Python object `callable` with the words as ints
    SWAP = 6  # exchange the cell's buffer with its spare; `extent` gets the new address
    ALLOC = 7  # slot `target` gets `extent` bytes, freed when the call ends
    FREE = 8  # free slot `target` now
    JUMP_UNLESS_ZERO = 9  # to row `target` if slot `extent` is not 0


class OutputKind(enum.IntEnum):
    """How one flat result is made."""

    ARRAY = 0  # a fresh C-contiguous array
    SCALAR = 1  # a NumPy scalar from 16 bytes in the frame
    INPUT = 2  # the object of input `input`


class Build(enum.IntEnum):
    """Steps that make the value returned from the flat results, in postfix order."""

    PUSH = 0  # output `count`
    TUPLE = 1  # of the last `count`
    LIST = 2
    DICT = 3  # keys in the tuple `operand`
    CALL = 4  # `operand` called with the last `count`
    OBJECT = 5  # `operand` itself


class Input(Struct):
    """One object of the call: where it is found, what it must be, which slots it fills."""

    source: i64
    origin: i64
    key: PyObject
    index: i64
    kind: i64
    type: PyObject
    ndim: i64
    flags: i64
    data: i64  # slot for the address of the elements
    dims: i64  # first of `ndim` slots
    strides: i64  # first of `ndim` slots, in bytes
    value: i64  # slot for a number


class SizeRow(Struct):
    """slots[target] = op(slots[a], slots[b])"""

    op: i64
    target: i64
    a: i64
    b: i64


class Overlap(Struct):
    """Two arrays that must not share memory."""

    left: i64
    right: i64


class Cell(Struct):
    """A Variable as native code sees it. Whoever makes the cell owns the memory."""

    data: Raw
    spare: Raw  # the other buffer of a Variable updated by SWAP; null if it is updated in place
    ndim: i64
    dims: Ptr[i64]
    version: i64
    lock: i64  # 0 free, n readers, -1 a writer; generation in the upper half


class CellUse(Struct):
    """A Variable a plan touches. Uses are ordered by address, so that calls cannot deadlock."""

    cell: Cell
    ndim: i64
    data: i64
    spare: i64
    dims: i64
    written: i64


class Output(Struct):
    """One flat result."""

    kind: i64
    descr: PyDescrObject
    ndim: i64
    dims: Ptr[i64]  # `ndim` slot numbers
    data: i64  # slot for the address of the elements
    value: i64  # first of the two slots that hold a scalar
    input: i64


class Row(Struct):
    """One step of the plan."""

    kind: i64
    kernel: Callable[[Control, Ptr[i64], i64, i64], None]
    words: Ptr[i64]  # slot numbers
    count: i64
    extent: i64
    grain: i64
    work: i64  # slot of the estimate in nanoseconds
    target: i64
    first: i64
    callable: PyObject
    cell: Cell
    errors: i64  # number of the kernel's first place of failure among the plan's
    visible: i64  # 1 from the first row others can see the effect of to the last (`walker`)


class BuildRow(Struct):
    """One step of making the value returned."""

    op: i64
    count: i64
    operand: PyObject


class Specialisation(Struct):
    """One compiled version of a function: what it accepts and what it does."""

    next: Specialisation
    owner: PyObject  # keeps these tables and all they point to
    calls: i64
    frame_words: i64
    scratch: i64  # word where the launch arguments begin
    objects: i64  # word where the inputs' objects begin
    results: i64  # word where the outputs' objects begin
    building: i64  # word where the results' stack begins
    constants: Ptr[i64]
    n_constants: i64
    inputs: Input
    n_inputs: i64
    sizes: SizeRow
    n_sizes: i64  # run before the first row; COMPUTE rows run later ones
    overlaps: Overlap
    n_overlaps: i64
    cells: CellUse
    n_cells: i64
    outputs: Output
    n_outputs: i64
    rows: Row
    n_rows: i64
    build: BuildRow
    n_build: i64
    arena_bytes: i64  # slot of the size
    arena: i64  # slot for the address
    addresses: i64  # size rows run when the arena's address is known: first
    n_addresses: i64
    work: i64  # slot of the whole estimate in nanoseconds
    allocated: Ptr[i64]  # slots ALLOC rows fill
    n_allocated: i64
    n_owned: i64  # inputs whose objects are references of the call's own
    cached_arena: Raw
    cached_frame: Raw


class Function(PyObject):
    """The Python object that is called."""

    vectorcall: Raw
    attributes: PyObject  # __dict__
    weak_references: PyObject
    process: Process
    specialisations: Specialisation
    count: i64  # parameters
    positional: i64  # parameters that can be given by position
    direct: i64  # positional arguments that need no binding; -1 if some parameter is keyword-only
    names: PyObject  # tuple of interned parameter names
    defaults: PyObject  # tuple, one per parameter; the object `missing` where there is none
    missing: PyObject
    slow: PyObject
    raiser: PyObject
    keepalive: PyObject
    time_limit: i64  # nanoseconds a call may take; 0 for no limit
    passes: i64  # 1 if the slow path itself calls: whoever rests, the next call is tried


class Block(Struct):
    """Head of a cached block of memory; 64 bytes, so that what follows stays aligned."""

    size: i64
    _rest: Annotated[Ptr[i64], 7]
