"""Buffers of a plan as slots: where each argument is found, where each result and temporary lies.

Invariants: each plan buffer has one slot for its address and one per axis for its extent. Guards
that follow from the plan itself are made here: dtype, rank, layout, equal extents, memory not
shared.
Not here: rows (`from_plan`), writing tables (`encoder`).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ....compiler.dims import Size as DimSize
from ....compiler.plan import BufferSpec, ExecutionPlan, Origin
from ....compiler.records import replace
from .cabi import NPY_C_CONTIGUOUS
from .encoder import CellSpec, Frame, InputSpec, OutputSpec, SizeSpec, array_flags
from .layout import NONE, Kind, OutputKind, Size, Source
from .size_terms import SizeTerms

_OPERATIONS = {
    "add": Size.ADD,
    "sub": Size.SUB,
    "mul": Size.MUL,
    "floordiv": Size.FLOORDIV,
    "mod": Size.MOD,
    "max": Size.MAX,
    "min": Size.MIN,
    "align": Size.ALIGN,
}
_RELATIONS = {
    "==": Size.EQUAL,
    "!=": Size.DIFFERENT,
    "<": Size.LESS,
    "<=": Size.LESS_EQUAL,
    "%": Size.DIVISIBLE,
}
_NUMBERS = {"bool": Kind.BOOL, "i64": Kind.INT, "f64": Kind.FLOAT, "c128": Kind.COMPLEX}


class PlanNotNative(Exception):
    """The plan asks for something the native tables cannot say."""


class Leaf(NamedTuple):
    """The input that is number `number` of an origin, and where the call finds it.

    numpy_scalar: the NumPy scalar type the call passes for a buffer of rank 0.
    """

    origin: Origin
    number: int
    place: InputSpec
    numpy_scalar: type[np.generic] | None = None


class SizeRelation(NamedTuple):
    """``left relation right`` of sizes: ``== != < <= >=``; ``%``: left is a multiple of right."""

    left: DimSize
    relation: str
    right: DimSize


def place(source: Source, *, origin: int = 0, key: object = None, index: int = 0) -> InputSpec:
    """Where an input is found; what it must be is filled in later."""
    return InputSpec(source, Kind.ANY, origin=origin, key=key, index=index)


class PlanBuffers:
    """Slots, inputs, outputs and guards of one plan."""

    def __init__(self, plan: ExecutionPlan, frame: Frame, cells: Mapping[str, int]) -> None:
        self.plan = plan
        self.frame = frame
        self.cell_addresses = cells
        self.terms = SizeTerms(frame)
        self.inputs: list[InputSpec] = []
        self.cells: list[CellSpec] = []
        self.outputs: list[OutputSpec] = []
        self.addresses: list[SizeSpec] = []
        self.kept: list[object] = []
        self.data = [frame.slot() for _ in plan.buffers]
        self.dims = [frame.slot(len(buffer.shape)) for buffer in plan.buffers]
        self.strides: dict[int, list[int]] = {}
        self.size_slots: list[int] = []
        self.output_of: dict[int, int] = {}
        self.input_of: dict[int, int] = {}
        self.arena = NONE

    # -- inputs

    def place_inputs(self, inputs: Sequence[InputSpec | Leaf]) -> None:
        by_origin = {(b.origin, b.index): at for at, b in enumerate(self.plan.buffers)}
        for entry in inputs:
            if isinstance(entry, InputSpec):
                self.inputs.append(entry)
                continue
            at = by_origin.get((entry.origin, entry.number))
            if at is None:
                raise PlanNotNative(f"the plan has no {entry.origin.value} {entry.number}")
            self.add_input(at, entry.place, entry.numpy_scalar)
        for at, buffer in enumerate(self.plan.buffers):
            if at in self.input_of:
                continue
            if buffer.origin is Origin.CAPTURED:
                held = place(Source.OBJECT, key=self.plan.captured[buffer.index])
                self.add_input(at, held, None)
            elif buffer.origin in (Origin.ARGUMENT, Origin.SCALAR):
                raise PlanNotNative(f"no input is given for {buffer.origin.value} {buffer.index}")

    def add_input(self, at: int, where: InputSpec, scalar: type[np.generic] | None) -> None:
        buffer = self.plan.buffers[at]
        self.input_of[at] = len(self.inputs)
        if buffer.origin is Origin.SCALAR:
            kind = _NUMBERS.get(buffer.dtype.name)
            if kind is None:
                raise PlanNotNative(f"a Python number cannot be passed as {buffer.dtype}")
            value = self.frame.slot(2)
            self.addresses.append(SizeSpec(Size.ADDRESS, value, target=self.data[at]))
            self.inputs.append(replace(where, kind=kind, value=value))
        elif scalar is not None:
            self.inputs.append(replace(where, kind=Kind.SCALAR, type=scalar, data=self.data[at]))
        else:
            rank = len(buffer.shape)
            flags = array_flags(contiguous=not buffer.strided, writeable=buffer.written)
            strides = self.frame.slot(rank) if buffer.strided else NONE
            if buffer.strided:
                self.strides[at] = [strides + axis for axis in range(rank)]
            self.inputs.append(
                replace(
                    where,
                    kind=Kind.ARRAY,
                    type=buffer.dtype.numpy,
                    ndim=rank,
                    flags=flags,
                    data=self.data[at],
                    dims=self.dims[at],
                    strides=strides,
                )
            )

    def overlaps(self, together: Sequence[Collection[int]] = ()) -> list[tuple[int, int]]:
        """Each array that is written against every other array of the call. together: inputs
        whose places to each other are tested otherwise."""
        known = {pair for group in together for pair in itertools.permutations(group, 2)}
        arrays = [
            at for at, number in self.input_of.items() if self.inputs[number].kind == Kind.ARRAY
        ]
        return [
            (self.input_of[written], self.input_of[other])
            for written in arrays
            if self.plan.buffers[written].written
            for other in arrays
            if other != written and not (self.plan.buffers[other].written and other < written)
            if (self.input_of[written], self.input_of[other]) not in known
        ]

    def measured(self, measures: Mapping[str, tuple[int, str, int]]) -> dict[str, int]:
        """The slots of numbers that arrays of the call have (`specialisation_of`)."""
        found: dict[str, int] = {}
        for name, (number, what, axis) in measures.items():
            entry = self.inputs[number]
            if what == "stride" and entry.strides == NONE:
                entry = replace(entry, strides=self.frame.slot(entry.ndim))
                self.inputs[number] = entry
            first = {"data": entry.data, "size": entry.dims, "stride": entry.strides}[what]
            found[name] = first + axis
        return found

    def pin_strides(self, expected: Mapping[int, tuple[int, ...] | None]) -> None:
        """Fix the strides, in elements, of array inputs; None means C-contiguous."""
        for number, steps in expected.items():
            entry = self.inputs[number]
            if entry.kind != Kind.ARRAY:
                raise PlanNotNative(f"input {number} is no array and has no strides")
            if steps is None:
                self.inputs[number] = replace(entry, flags=entry.flags | NPY_C_CONTIGUOUS)
                continue
            if entry.strides == NONE:
                entry = replace(entry, strides=self.frame.slot(entry.ndim))
                self.inputs[number] = entry
            size = np.dtype(entry.type).itemsize  # type: ignore[call-overload]
            for axis, step in enumerate(steps):
                bytes_ = self.frame.constant(step * size)
                self.terms.test(Size.EQUAL, entry.strides + axis, bytes_)

    # -- sizes

    def size_program(self) -> None:
        for row in self.plan.sizes:
            if row.op == "const":
                self.size_slots.append(self.frame.constant(row.a))
            elif row.op == "extent":
                self.size_slots.append(self.dims[row.a] + row.b)
            else:
                right = NONE if row.op == "align" else self.size_slots[row.b]
                made = self.terms.apply(_OPERATIONS[row.op], self.size_slots[row.a], right)
                self.size_slots.append(made)
        for at, buffer in enumerate(self.plan.buffers):
            if buffer.origin in (Origin.ARGUMENT, Origin.CAPTURED, Origin.VARIABLE):
                if at in self.input_of and self.inputs[self.input_of[at]].kind != Kind.ARRAY:
                    continue
                for axis, size in enumerate(buffer.shape):
                    if self.size_slots[size] != self.dims[at] + axis:
                        self.terms.test(Size.EQUAL, self.dims[at] + axis, self.size_slots[size])

    def relate(
        self,
        relations: Sequence[SizeRelation],
        symbols: Mapping[str, tuple[int, int]],
        measured: Mapping[str, int] = {},
    ) -> None:
        known = {name: self.size_slots[slot] for name, slot in self.plan.size_symbols.items()}
        known |= measured
        for name, (number, axis) in symbols.items():
            known[name] = self.inputs[number].dims + axis
        for relation in relations:
            left, right = (self.terms.of(side, known) for side in (relation.left, relation.right))
            if relation.relation == ">=":
                self.terms.test(Size.LESS_EQUAL, right, left)
            else:
                self.terms.test(_RELATIONS[relation.relation], left, right)

    def shape(self, buffer: BufferSpec) -> tuple[int, ...]:
        return tuple(self.size_slots[size] for size in buffer.shape)

    # -- buffers

    def make_outputs(self) -> None:
        scalars = {result.buffer for result in self.plan.results if result.as_scalar}
        for result in self.plan.results:
            at = result.buffer
            buffer = self.plan.buffers[at]
            if at in self.output_of:
                continue
            self.output_of[at] = len(self.outputs)
            if buffer.origin is not Origin.OUTPUT:
                if at not in self.input_of:
                    raise PlanNotNative(f"a {buffer.origin.value} cannot be returned")
                self.outputs.append(OutputSpec(OutputKind.INPUT, input=self.input_of[at]))
            elif at in scalars:
                value = self.frame.slot(2)
                self.outputs.append(
                    OutputSpec(
                        OutputKind.SCALAR, buffer.dtype.numpy, data=self.data[at], value=value
                    )
                )
            else:
                dims = self.shape(buffer)
                self.outputs.append(
                    OutputSpec(OutputKind.ARRAY, buffer.dtype.numpy, dims, self.data[at])
                )

    def place_buffers(self) -> None:
        for at, buffer in enumerate(self.plan.buffers):
            if buffer.origin is Origin.TEMPORARY:
                if buffer.offset is None:
                    raise PlanNotNative("a temporary has no place in the arena")
                if self.arena == NONE:
                    self.arena = self.frame.slot()
                offset = self.size_slots[buffer.offset]
                self.addresses.append(SizeSpec(Size.ADD, self.arena, offset, self.data[at]))
            elif buffer.origin is Origin.CONSTANT:
                array = np.ascontiguousarray(self.plan.constants[buffer.index])
                self.kept.append(array)
                self.data[at] = self.frame.constant(array.ctypes.data)
            elif buffer.origin is Origin.VARIABLE:
                self.place_variable(at, buffer)

    def place_variable(self, at: int, buffer: BufferSpec) -> None:
        name = self.plan.variables[buffer.index]
        cell = self.cell_addresses[name]
        rank = len(buffer.shape)
        self.cells.append(
            CellSpec(cell, rank, self.data[at], self.dims[at], written=buffer.written)
        )

    def strides_of(self, at: int) -> list[int]:
        """Slots of a buffer's byte strides: the array's, or those of a contiguous one."""
        if at not in self.strides:
            buffer = self.plan.buffers[at]
            step = self.frame.constant(buffer.dtype.itemsize)
            found: list[int] = []
            for size in reversed(self.shape(buffer)):
                found.append(step)
                step = self.terms.apply(Size.MUL, step, size)
            self.strides[at] = found[::-1]
        return self.strides[at]
