"""The Kernel IR: loop nests over named axes, for every target, before and after scheduling.

A kernel says what is computed; a schedule rewrites it into the same language with the how
written on it (vector widths, tiles, threads, memories). Both forms share the printer, the
verifier and the interpreter, so each scheduling step can be checked by interpreting.

Values are named once each (SSA) and carry a dtype. Buffers are named memory: parameters of the
kernel or locals. An index is an affine `Size` over axis names and dims (floor division and
modulo allowed), or a `Checked` value: out of range sets the error slot and touches nothing.

What can fail (an access with a `Checked` index, a `Check`) is numbered from 0 in the order of the
text (`failures`); a kernel reports that number and the plan knows the place of each. Where it is
not inside of iterations that are independent, nothing is done after it: a failure ends the kernel.

One buffer may be the memory of an ``in`` and of an ``out`` parameter when the plan works in
place: it does so only where every element is loaded before it is stored (aliasing.py
proves it on the unscheduled kernel), so code generation keeps that order for equal indices and
claims no other freedom from aliasing.

Invariants: data only, immutable; names are unique in a kernel, axes and dims share one
namespace; a statement uses only names defined by an enclosing or earlier statement of an
enclosing block.
Not here: deciding what becomes a kernel (passes/fuse.py), writing one (lowering.py), changing
one (schedule.py), machine code (backends).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from ..dims import Size
from ..ir.graph import Location
from ..records import dataclass
from ..types import I64, DType


@dataclass(frozen=True, slots=True)
class Parameter:
    """A buffer handed to the kernel.

    shape: sizes over the kernel's dims. mode: ``in``, ``out`` or ``inout``.
    strided: False when the caller proved C-contiguity; True when byte strides are passed.
    """

    name: str
    dtype: DType
    shape: tuple[Size, ...]
    mode: str
    strided: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """An index that is a value: negative ones wrap once, out of [-extent, extent) is an error."""

    value: str
    extent: Size


Index = Size | Checked


@dataclass(frozen=True, slots=True)
class Let:
    """``name = op args``: an elementwise op of the op table, or a word of the scalar language.

    result: which one, for an op with several results.
    """

    name: str
    op: str
    args: tuple[str, ...]
    dtype: DType
    attrs: Mapping[str, Any] = field(default_factory=dict)
    location: Location | None = None
    result: int = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    name: str
    value: Any
    dtype: DType


@dataclass(frozen=True, slots=True)
class IndexValue:
    """The value (i64) of an index expression, e.g. what iota and argmax need."""

    name: str
    index: Size


@dataclass(frozen=True, slots=True)
class Load:
    """``name = load buffer[index] when mask else other``; lanes without `mask` touch nothing."""

    name: str
    buffer: str
    index: tuple[Index, ...]
    dtype: DType
    mask: str | None = None
    other: str | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """``store buffer[index] = value``; the last writer in index order wins."""

    buffer: str
    index: tuple[Index, ...]
    value: str
    mask: str | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """``check condition``: where a lane's condition is false (and its mask holds), fail."""

    condition: str
    mask: str | None = None
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """``update buffer[index] monoid= value``: partial results combine in a fixed order."""

    buffer: str
    index: tuple[Index, ...]
    monoid: str
    value: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class Parallel:
    """Independent iterations. Schedule: vector lanes (0 none), unroll, spread over threads."""

    axis: str
    extent: Size
    body: tuple[Statement, ...]
    vector: int = 0
    unroll: int = 1
    threads: bool = False
    bind: str | None = None  # CUDA: grid.x, block.x, ...


@dataclass(frozen=True, slots=True)
class For:
    """Iterations in order."""

    axis: str
    extent: Size
    body: tuple[Statement, ...]
    unroll: int = 1


@dataclass(frozen=True, slots=True)
class Loop:
    """Carried registers over ``axis in extent``; ends early where `until` holds in all lanes.

    when: a bool known before, the same in all lanes; where it is false there is no trip.
    """

    names: tuple[str, ...]  # results, and inside the body the carried values
    init: tuple[str, ...]
    axis: str
    extent: Size | None  # None: only `until` ends it
    body: tuple[Statement, ...]
    yields: tuple[str, ...]
    until: str | None = None  # a bool value of the body
    dtypes: tuple[DType, ...] = ()
    when: str | None = None


@dataclass(frozen=True, slots=True)
class If:
    """A condition uniform over lanes; `names` are the yields of the body, or else the `others`."""

    condition: str
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()
    names: tuple[str, ...] = ()
    yields: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    dtypes: tuple[DType, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """``names = reduce monoid axis in extent { body; yield yields }``.

    The value is defined once for all targets (monoids.py); `vector` is only a schedule. A
    monoid of one state given several yields folds each on its own, in one loop. The body runs
    once for each index and may store.
    loose: the order of a contraction: any association, products may be fused (fma).
    tree: the elements are results of blocks already: only the tree over blocks is applied.
    """

    names: tuple[str, ...]
    monoid: str
    axis: str
    extent: Size
    body: tuple[Statement, ...]
    yields: tuple[str, ...]
    dtypes: tuple[DType, ...]
    vector: int = 0
    unroll: int = 1
    location: Location | None = None
    loose: bool = False
    tree: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """Prefixes of a monoid along an axis, folded in order from its first element; `then`
    consumes each prefix (the element itself included), named by `names`."""

    names: tuple[str, ...]
    monoid: str
    axis: str
    extent: Size
    body: tuple[Statement, ...]
    yields: tuple[str, ...]
    then: tuple[Statement, ...]
    dtypes: tuple[DType, ...]
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Local:
    """A tile: ``registers``, ``stack``, ``shared`` or ``packed`` memory says the schedule."""

    name: str
    dtype: DType
    shape: tuple[Size, ...]
    memory: str = "stack"


@dataclass(frozen=True, slots=True)
class Sort:
    """``sort source -> result``: every row (last axis) in order, stable; a whole kernel.

    gives: ``elements``, or ``places``, the i64 index in its row of each element in order. stage:
    ``rows`` is all of it, the others are what sorting.py makes of long rows. The rest are the
    buffers between: `keys` (None: they lie in `result`), `other` as large, `moved` for places,
    `counts` and `ends` of the pieces of long rows.
    """

    source: str
    result: str
    gives: str
    stage: str = "rows"
    keys: str | None = None
    other: str | None = None
    moved: str | None = None
    counts: str | None = None
    ends: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """``search source for wanted -> result``: where each element of `wanted` goes in the row
    `source`, which is sorted; a whole kernel. side: ``left`` or ``right`` of equal ones."""

    source: str
    wanted: str
    result: str
    side: str


@dataclass(frozen=True, slots=True)
class Select:
    """``select size of source -> result``: where the greatest elements of every row stand, the
    greatest first; a whole kernel."""

    source: str
    result: str
    size: int


@dataclass(frozen=True, slots=True)
class Call:
    """``call op of table(arguments)``: a routine of a library on every problem; a whole kernel.

    table: the buffer of the library's routines; the row of `op` and the first argument's dtype has
    the address and what the routine wants to be handed. core: the names of
    the core axes of each argument, the last ones of its buffer; in the order of their first
    appearance their sizes are handed to the routine. fails: whether the routine can, which the
    floating-point flag says.
    """

    table: str
    op: str
    arguments: tuple[str, ...]
    core: tuple[tuple[str, ...], ...]
    fails: bool = False
    location: Location | None = None


Statement = (
    Let | Constant | IndexValue | Load | Store | Check | Update
    | Parallel | For | Loop | If | Reduce | Scan | Local | Sort | Search | Select | Call
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel: top-level nests are phases, each sees all of what earlier ones stored.

    dims: symbols whose values are passed at launch, in this order.
    """

    name: str
    params: tuple[Parameter, ...]
    dims: tuple[str, ...]
    body: tuple[Statement, ...]


# The fields of a statement that are blocks, in order. Every kernel is walked many times.
_BLOCKS: Mapping[type, tuple[str, ...]] = {
    **dict.fromkeys((Parallel, For, Loop, Reduce), ("body",)),
    Scan: ("body", "then"),
    If: ("body", "otherwise"),
}


def bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The blocks inside a statement, in order."""
    fields = _BLOCKS.get(type(statement))
    return () if fields is None else tuple([getattr(statement, name) for name in fields])


def body_fields(statement: Statement) -> tuple[str, ...]:
    """The fields of a statement that are blocks, in order."""
    return _BLOCKS.get(type(statement), ())


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, an outer one before those inside it."""
    stack = [iter(body)]
    blocks = _BLOCKS
    while stack:
        for statement in stack[-1]:
            yield statement
            fields = blocks.get(type(statement))
            if fields is not None:
                stack.extend([iter(getattr(statement, name)) for name in reversed(fields)])
                break
        else:
            stack.pop()


def value_dtypes(body: tuple[Statement, ...]) -> dict[str, DType]:
    """The dtype of every scalar defined in a body."""
    found: dict[str, DType] = {}
    for statement in walk(body):
        if isinstance(statement, Let | Constant | Load):
            found[statement.name] = statement.dtype
        elif isinstance(statement, IndexValue):
            found[statement.name] = I64
        elif isinstance(statement, Reduce | Scan | Loop | If):
            found.update(zip(statement.names, statement.dtypes))
    return found


def failures(kernel: Kernel) -> tuple[Location | None, ...]:
    """The place of each thing in the kernel that can fail, in the order of its number."""
    return tuple(s.location for s in fallible(kernel.body))


def fallible(body: tuple[Statement, ...]) -> tuple[Load | Store | Update | Check | Call, ...]:
    """The statements that can fail, in the order of the text."""
    return tuple(
        s
        for s in walk(body)
        if isinstance(s, Check)
        or (isinstance(s, Call) and s.fails)
        or (
            isinstance(s, Load | Store | Update)
            and any(isinstance(index, Checked) for index in s.index)
        )
    )
