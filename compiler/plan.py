"""What the compiler produces and the runtime executes: a plan is data.

A plan for one device is a table of rows over numbered buffers and numbered sizes. Sizes form
one straight-line program: slot after slot, each a constant, an argument's extent, or an
operation on earlier slots; offsets of temporaries in the arena are slots too. So a call
evaluates some integers, takes one arena and walks the rows.

Invariants: immutable; rows name buffers, sizes and kernels by index; a row never allocates
except outputs, which are made before the first row.
Not here: machine code (a backend compiles `kernels`), guards of the Python call (the frontend
keeps them beside the plan and the native entry tests both).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from .ir.graph import Location
from .records import dataclass
from .types import DType

if TYPE_CHECKING:  # whoever runs a plan need not load the language of kernels
    from .kernel.kernel import Kernel


@dataclass(frozen=True, slots=True)
class SizeRow:
    """One slot of the size program.

    op: ``const`` (a = value), ``extent`` (a = argument buffer, b = axis), ``add sub mul
    floordiv mod max min`` (a, b = earlier slots), ``align`` (slot a rounded up to a multiple
    of 64).
    """

    op: str
    a: int
    b: int = 0


class Origin(enum.Enum):
    """Where a buffer's memory comes from."""

    ARGUMENT = "argument"  # a traced argument of the call; `index` counts flat tensors
    CAPTURED = "captured"  # an array the function closes over, read at every call
    SCALAR = "scalar"  # a Python number passed as an argument, stored in an 8 or 16 byte cell
    VARIABLE = "variable"  # a variable's cell
    CONSTANT = "constant"  # bytes kept in the plan
    OUTPUT = "output"  # a fresh array handed to the caller
    TEMPORARY = "temporary"  # a range of the arena
    VIEW = "view"  # where a loop says: what it carries, a row of a stacked array, its counter


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """One buffer: element type, shape as size slots, and origin.

    index: position among its origin (flat argument, captured array, constant, output).
    offset: size slot of the arena offset, for temporaries.
    strided: its launches pass byte strides, otherwise the call guarantees C-contiguity.
    written: some row writes it (arguments: the caller sees it).
    """

    dtype: DType
    shape: tuple[int, ...]
    origin: Origin
    index: int = 0
    offset: int | None = None
    strided: bool = False
    written: bool = False
    name: str = ""
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """Run kernel `kernel` over [0, extent): data pointers (and strides) of `buffers`, then
    the values of `sizes`, are its argument words.

    extent: slot of the extent of the axis spread over threads (a slot of the constant 1 where
    the kernel has none); grain: iterations a chunk should have at least; work: slot with an
    estimate in nanoseconds on one thread, for the choice of threads and the GIL. errors: what
    the kernel reports as failure k is ``error_places[errors + k]`` of the plan. writes:
    those of `buffers` that the kernel writes; None where that is not known.
    """

    kernel: int
    buffers: tuple[int, ...]
    sizes: tuple[int, ...]
    extent: int
    grain: int = 1
    work: int = 0
    location: Location | None = None
    errors: int = 0
    writes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy all bytes of a contiguous buffer to another of the same type and shape."""

    source: int
    target: int
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class HostCall:
    """Call back into Python, with the arrays it reads and then those it fills: `callback` indexes
    the plan's callbacks; GIL held. shapes: of these arrays, in size slots; a buffer's own may be
    another one of as many elements."""

    callback: int
    buffers: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class ErrorPlace:
    """Something that can fail: the op, its error code and where the user wrote it. dtype: NumPy's
    name of the element type that the error speaks of. raises, arguments: an exception of the
    user's (raising.py)."""

    op: str
    code: str
    location: Location | None = None
    dtype: str = ""
    raises: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class CommitPoint:
    """Everything before may fail; rows after it write what others can see."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Run the rows `then` where the bool in buffer `test` is true, else `otherwise`."""

    test: int
    then: tuple[Row, ...]
    otherwise: tuple[Row, ...]
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Two buffers that take turns over the trips of a loop.

    Before a trip, the view `current` is where the last one wrote (`first` before the first) and
    the view `following` is `result` or `other`, whichever that is not. After the loop the last
    content is in `result`.
    """

    current: int
    following: int
    first: int
    result: int
    other: int


@dataclass(frozen=True, slots=True)
class Slice:
    """On trip i of a loop, `view` is row i of the buffer `whole`."""

    view: int
    whole: int


@dataclass(frozen=True, slots=True)
class Loop:
    """Run the rows `body` again and again.

    One of three says how often: the bool in buffer `condition`, looked at before each trip; the
    buffers `bounds`, whose integers the view `index` counts from one to below the other; the
    size slot `length`. reverse: slices go from the last row to the first.
    """

    body: tuple[Row, ...]
    condition: int | None = None
    bounds: tuple[int, int] | None = None
    length: int | None = None
    index: int | None = None
    reverse: bool = False
    turns: tuple[Turn, ...] = ()
    slices: tuple[Slice, ...] = ()
    location: Location | None = None


Row = Launch | Copy | HostCall | CommitPoint | Branch | Loop


def all_rows(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows, and behind each loop and branch those inside it."""
    for row in rows:
        yield row
        if isinstance(row, Loop):
            yield from all_rows(row.body)
        elif isinstance(row, Branch):
            yield from all_rows((*row.then, *row.otherwise))


@dataclass(frozen=True, slots=True)
class Result:
    """One flat result: a buffer, returned as an array, or as a NumPy scalar where rank is 0
    and NumPy would; `argument` returns the caller's own array."""

    buffer: int
    as_scalar: bool = False


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """All of one compiled graph for one device.

    size_symbols: symbol name -> size slot. arena_bytes: size slot of the arena's size, the
    peak of temporary memory. error_places: what kernels may report (see `Launch.errors`).
    kernels: empty in a plan that was read back (plan_bytes.py), whose kernel_names are not.
    callbacks: the attributes of the host calls' nodes; the frontend makes functions of them.
    """

    name: str
    sizes: tuple[SizeRow, ...]
    size_symbols: Mapping[str, int]
    buffers: tuple[BufferSpec, ...]
    kernels: tuple[Kernel, ...]
    rows: tuple[Row, ...]
    results: tuple[Result, ...]
    arena_bytes: int
    constants: tuple[Any, ...] = ()
    captured: tuple[Any, ...] = ()
    variables: tuple[str, ...] = ()
    callbacks: tuple[Any, ...] = ()
    error_places: tuple[ErrorPlace, ...] = field(default=())
    kernel_names: tuple[str, ...] = ()
