"""From a plan to all that an exported library says: words of the call, tables, constant data.

What a call from Python finds in objects comes from two places here: from the words of the C call,
or from the library itself (captured arrays, constants, numbers the trace took for granted).
Variables lie in the instance.

Invariants: handles of slots are those of `frame`; `slots` knows their fixed values. A symbol is a
word of the call unless the library's own data fix it.
Not here: names in C (`names`), tables as constant data (`tables`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiler.plan import BufferSpec, ExecutionPlan, Origin
from ...compiler.records import dataclass, replace
from ...compiler.types import DType
from ..llvm.native.encoder import Frame, RowSpec, SizeSpec
from ..llvm.native.from_plan import Leaf, PlanRows, SizeRelation, place
from ..llvm.native.layout import NONE, Source
from ..llvm.native.plan_buffers import PlanBuffers
from .folding import Slots, folded, live
from .serving import Word


class Given(NamedTuple):
    """A parameter of the plan: its name, and its value where the library holds it."""

    name: str
    fixed: Any = None


class Parameter(NamedTuple):
    """One or (a complex number) two words of the call.

    shape: of arrays, as text. written: the function writes the array. slot: of the first word.
    """

    name: str
    word: Word
    slot: int
    dtype: DType | None = None
    shape: str = ""
    written: bool = False


class Result(NamedTuple):
    """An output: where its address goes, its sizes, and the room the caller has."""

    buffer: int
    dtype: DType
    shape: str
    data: int
    dims: tuple[int, ...]
    room: int


class State(NamedTuple):
    """A Variable: its content at the export, and the slot of its address."""

    name: str
    value: np.ndarray[Any, Any]
    slot: int


@dataclass(frozen=True, slots=True)
class Description:
    """One exported function. data: slots that hold the address of an array of the library."""

    plan: ExecutionPlan
    slots: Slots
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    states: tuple[State, ...]
    data: Mapping[int, np.ndarray[Any, Any]]
    sizes: tuple[SizeSpec, ...]
    addresses: tuple[SizeSpec, ...]
    rows: tuple[RowSpec, ...]
    later: tuple[SizeSpec, ...]
    arena: int
    arena_bytes: int


def describe(
    plan: ExecutionPlan,
    given: Sequence[Given],
    states: Mapping[str, np.ndarray[Any, Any]],
    *,
    relations: Sequence[SizeRelation] = (),
    symbols: Mapping[str, tuple[int, int]] | None = None,
    shapes: Mapping[int, str] | None = None,
) -> Description:
    """The library of a plan.

    given: one per parameter of the plan. states: content by Variable. relations: guards on sizes;
    symbols: (parameter, axis) of those the plan does not know. shapes: text by buffer.
    """
    writer = _Writer(plan, given, states, shapes or {})
    writer.relate(relations, symbols or {})
    return writer.description()


class _Writer:
    """The parts of one description."""

    def __init__(
        self,
        plan: ExecutionPlan,
        given: Sequence[Given],
        states: Mapping[str, np.ndarray[Any, Any]],
        shapes: Mapping[int, str],
    ) -> None:
        self.plan = plan = _with_constants_as_inputs(plan, len(given))
        self.given = [*given, *(Given("", value) for value in plan.constants)]
        self.states = states
        self.shapes = shapes
        self.frame = Frame()
        self.slots = Slots(self.frame)
        self.buffers = PlanBuffers(plan, self.frame, dict.fromkeys(plan.variables, 0))
        self.inputs = sorted(
            (buffer.index, at)
            for at, buffer in enumerate(plan.buffers)
            if buffer.origin in (Origin.ARGUMENT, Origin.SCALAR, Origin.CAPTURED)
        )
        leaves = [
            Leaf(plan.buffers[at].origin, number, place(Source.ARGUMENT))
            for number, at in self.inputs
        ]
        self.buffers.place_inputs(leaves)
        self.buffers.size_program()
        self.data: dict[int, np.ndarray[Any, Any]] = {}
        self.parameters: list[Parameter] = []

    def relate(
        self, relations: Sequence[SizeRelation], symbols: Mapping[str, tuple[int, int]]
    ) -> None:
        """Guards on sizes become tests."""
        order = {number: at for at, (number, _) in enumerate(self.inputs)}
        self.buffers.relate(
            relations, {name: (order[number], axis) for name, (number, axis) in symbols.items()}
        )

    def description(self) -> Description:
        """Everything, sizes folded."""
        buffers = self.buffers
        buffers.make_outputs()
        buffers.place_buffers()
        for number, at in self.inputs:
            self.input(self.plan.buffers[at], at, self.given[number])
        states = tuple(self.state(at) for at in self.variables())
        self.symbols()
        results = tuple(self.results())
        rows = PlanRows(self.plan, buffers, range(len(self.plan.kernels)), ())
        for row in self.plan.rows:
            rows.row(row)
        size = NONE if buffers.arena == NONE else buffers.size_slots[self.plan.arena_bytes]
        sizes = folded(buffers.terms.rows, self.slots)
        addresses = folded(buffers.addresses, self.slots)
        made = tuple(self.resolved(row) for row in rows.rows)
        later = tuple(self.moved(spec) for spec in rows.later)
        needed = {handle for row in made for handle in (*row.words, row.extent)}
        needed |= {handle for result in results for handle in result.dims} | {size}
        needed |= {handle for row in (*addresses, *later) for handle in (row.a, row.b)}
        return Description(
            plan=self.plan,
            slots=self.slots,
            parameters=tuple(self.parameters),
            results=results,
            states=states,
            data=self.data,
            sizes=tuple(live(sizes, needed)),
            addresses=tuple(addresses),
            rows=made,
            later=later,
            arena=buffers.arena,
            arena_bytes=size,
        )

    def resolved(self, row: RowSpec) -> RowSpec:
        words = tuple(map(self.slots.resolve, row.words))
        return row._replace(words=words, extent=self.slots.resolve(row.extent), work=NONE)

    def moved(self, spec: SizeSpec) -> SizeSpec:
        """What a loop computes as it runs: never known before."""
        return spec._replace(a=self.slots.resolve(spec.a), b=self.slots.resolve(spec.b))

    # -- inputs

    def input(self, buffer: BufferSpec, at: int, given: Given) -> None:
        """A word of the call, or data of the library."""
        if buffer.origin is Origin.SCALAR:
            self.number(buffer, self.buffers.inputs[self.buffers.input_of[at]].value, given)
        elif given.fixed is not None:
            self.fix(at, np.ascontiguousarray(given.fixed, buffer.dtype.numpy))
        else:
            self.parameters.append(
                Parameter(
                    given.name,
                    Word.POINTER,
                    self.buffers.data[at],
                    buffer.dtype,
                    self.shapes.get(at, ""),
                    buffer.written,
                )
            )
            for axis, size in enumerate(buffer.shape):
                mine, slot = self.buffers.dims[at] + axis, self.buffers.size_slots[size]
                if mine != slot:
                    self.slots.same[mine] = slot

    def fix(self, at: int, array: np.ndarray[Any, Any]) -> None:
        """An array of the library."""
        self.data[self.buffers.data[at]] = array
        self.know_sizes(at, np.shape(array))

    def know_sizes(self, at: int, shape: tuple[int, ...]) -> None:
        shape = shape if self.plan.buffers[at].shape else ()
        for axis, size in enumerate(shape):
            self.slots.values[self.buffers.dims[at] + axis] = size

    def number(self, buffer: BufferSpec, slot: int, given: Given) -> None:
        """A Python number: passed by value, or fixed by the trace."""
        if given.fixed is None:
            self.parameters.append(Parameter(given.name, Word.VALUE, slot, buffer.dtype))
            return
        stored = np.asarray(given.fixed, buffer.dtype.numpy).tobytes().ljust(16, b"\0")
        for word, value in enumerate(struct.unpack("<qq", stored)):
            self.slots.values[slot + word] = value

    def symbols(self) -> None:
        """Sizes that a call must give."""
        for name, slot in self.plan.size_symbols.items():
            handle = self.slots.resolve(self.buffers.size_slots[slot])
            if self.slots.value(handle) is None:
                self.parameters.append(Parameter(name, Word.SIZE, handle))

    # -- variables and results

    def variables(self) -> list[int]:
        """Buffers of Variables."""
        return [at for at, b in enumerate(self.plan.buffers) if b.origin is Origin.VARIABLE]

    def state(self, at: int) -> State:
        name = self.plan.variables[self.plan.buffers[at].index]
        value = np.ascontiguousarray(self.states[name])
        self.know_sizes(at, np.shape(self.states[name]))
        return State(name, value, self.buffers.data[at])

    def results(self) -> list[Result]:
        found = []
        for at in dict.fromkeys(result.buffer for result in self.plan.results):
            buffer = self.plan.buffers[at]
            if buffer.origin is Origin.OUTPUT:
                dims = tuple(map(self.slots.resolve, self.buffers.shape(buffer)))
                shape, data = self.shapes.get(at, ""), self.buffers.data[at]
                found.append(Result(at, buffer.dtype, shape, data, dims, self.frame.slot()))
        return found


def _with_constants_as_inputs(plan: ExecutionPlan, first: int) -> ExecutionPlan:
    """Constants of the plan are captured arrays, numbered from `first`; no result is a scalar."""
    buffers = tuple(
        replace(buffer, origin=Origin.CAPTURED, index=first + buffer.index)
        if buffer.origin is Origin.CONSTANT
        else buffer
        for buffer in plan.buffers
    )
    results = tuple(replace(result, as_scalar=False) for result in plan.results)
    return replace(plan, buffers=buffers, results=results)
