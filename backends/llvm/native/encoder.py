"""From a description of one specialisation to the tables native code walks.

A description names slots by handles a `Frame` gives out: constants and places for values. Encoding
numbers them (constants first, so that one copy initialises a call's frame) and writes the structs
of `layout`.

Invariants: descriptions are plain data; an `Encoded` keeps alive every Python object and every
word its tables point to, and is itself the owner a call in flight holds on to.
Not here: which tests and rows a compiled graph needs (`from_plan` and the frontend say).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from ....compiler.records import dataclass
from .cabi import NPY_ALIGNED, NPY_C_CONTIGUOUS, NPY_WRITEABLE
from .commit import JUMPS, commit_of
from .layout import (
    MAX_PARAMETERS,
    NONE,
    Build,
    BuildRow,
    CellUse,
    Input,
    Kind,
    Output,
    OutputKind,
    Overlap,
    Row,
    RowKind,
    Size,
    SizeRow,
    Source,
    Specialisation,
)
from .memory import Record, Words

_CONSTANT = 1 << 40  # handles of constants begin here


class Frame:
    """Gives out the slots of a specialisation."""

    def __init__(self) -> None:
        self._constants: dict[int, int] = {}
        self._slots = 0

    def constant(self, value: int) -> int:
        """The slot that always holds this 64-bit integer."""
        return self._constants.setdefault(value, _CONSTANT + len(self._constants))

    def slot(self, count: int = 1) -> int:
        """The first of so many new slots."""
        first = self._slots
        self._slots += count
        return first

    @property
    def constants(self) -> tuple[int, ...]:
        """Values of the constants, in the order of their slots."""
        return tuple(self._constants)

    def constant_value(self, handle: int) -> int | None:
        """What a slot always holds; None for one that is not a constant's."""
        return self.constants[handle - _CONSTANT] if handle >= _CONSTANT else None

    @property
    def size(self) -> int:
        """Slots given out, constants included."""
        return self._slots + len(self._constants)

    def number(self, handle: int) -> int:
        """The number of a slot in the frame, once all are given out."""
        if handle == NONE:
            return NONE
        return handle - _CONSTANT if handle >= _CONSTANT else handle + len(self._constants)


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One object of the call; fields as in `layout.Input`, objects as Python objects."""

    source: Source
    kind: Kind
    origin: int = 0
    key: object = None
    index: int = 0
    type: object = None
    ndim: int = 0
    flags: int = 0
    data: int = NONE
    dims: int = NONE
    strides: int = NONE
    value: int = NONE


def array_flags(*, contiguous: bool, writeable: bool, aligned: bool = True) -> int:
    """The flags an array input must have."""
    required = NPY_ALIGNED if aligned else 0
    required |= NPY_C_CONTIGUOUS if contiguous else 0
    return required | (NPY_WRITEABLE if writeable else 0)


class SizeSpec(NamedTuple):
    """slots[target] = op(slots[a], slots[b]); tests have no target."""

    op: Size
    a: int
    b: int = NONE
    target: int = NONE


class CellSpec(NamedTuple):
    """A Variable the specialisation touches; `cell` is the address of its `layout.Cell`."""

    cell: int
    ndim: int
    data: int
    dims: int
    spare: int = NONE
    written: bool = False


class OutputSpec(NamedTuple):
    """One flat result; `descr` is a dtype."""

    kind: OutputKind
    descr: object = None
    dims: tuple[int, ...] = ()
    data: int = NONE
    value: int = NONE
    input: int = NONE


class RowSpec(NamedTuple):
    """One step; fields as in `layout.Row` (`length` is its `count`). Unused slots stay NONE.

    visible: others can see its effect (a Variable or an argument is written); SWAP always is.
    """

    kind: RowKind
    kernel: int = 0
    words: tuple[int, ...] = ()
    extent: int = NONE
    grain: int = 1
    work: int = NONE
    target: int = NONE
    first: int = 0
    length: int = 0
    callable: object = None
    cell: int = 0
    errors: int = 0
    visible: bool = False


class Held(NamedTuple):
    """A part of a result that is always the same object."""

    thing: object


class Given(NamedTuple):
    """A part of a result that is an object of the call: the input of this number."""

    input: int


class Structure(NamedTuple):
    """How results are put together: `Build.TUPLE`, `LIST`, `DICT` (keys in `operand`) or `CALL`."""

    op: Build
    parts: tuple[Part, ...]
    operand: object = None


Part = int | Structure | Held | Given


class NativeSpecialisation(NamedTuple):
    """Everything the native entry needs of one compiled version.

    `sizes` run before anything is allocated and include the guards; `addresses` run when outputs
    and arena exist. `keep` are objects kernels
    need (loaded code).
    """

    frame: Frame
    inputs: tuple[InputSpec, ...] = ()
    sizes: tuple[SizeSpec, ...] = ()
    addresses: tuple[SizeSpec, ...] = ()
    later_sizes: tuple[SizeSpec, ...] = ()
    overlaps: tuple[tuple[int, int], ...] = ()
    cells: tuple[CellSpec, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    rows: tuple[RowSpec, ...] = ()
    result: Part = 0
    arena_bytes: int = NONE
    arena: int = NONE
    work: int = NONE
    keep: tuple[object, ...] = ()


@dataclass(eq=False)
class Encoded:
    """A specialisation as tables at `address`; keeps what they point to."""

    address: int
    record: Record
    kept: list[object] = field(default_factory=list)
    installed: bool = False

    @property
    def calls(self) -> int:
        """How often it ran."""
        return self.record["calls"]


class _Encoder:
    """Writes tables and collects what must stay alive."""

    def __init__(self, spec: NativeSpecialisation) -> None:
        self.spec = spec
        self.number = spec.frame.number
        self.kept: list[object] = [spec.keep]
        self.zero = spec.frame.number(spec.frame.constant(0))

    def slot(self, handle: int) -> int:
        """A slot native code reads whether it is needed or not."""
        return self.zero if handle == NONE else self.number(handle)

    def identity(self, thing: object) -> int:
        self.kept.append(thing)
        return id(thing)

    def words(self, handles: Sequence[int]) -> int:
        words = Words([self.number(handle) for handle in handles])
        self.kept.append(words)
        return words.address

    def table(self, kind: Any, rows: Sequence[dict[str, int]]) -> int:
        record = Record(kind, len(rows))
        for index, row in enumerate(rows):
            for name, value in row.items():
                record.set(index, name, value)
        self.kept.append(record)
        return record.address

    def input(self, entry: InputSpec) -> dict[str, int]:
        kind = entry.type
        if entry.kind == Kind.ARRAY:
            kind = np.dtype(entry.type)  # type: ignore[call-overload]
        return {
            "source": entry.source,
            "origin": entry.origin,
            "key": self.identity(entry.key),
            "index": entry.index,
            "kind": entry.kind,
            "type": self.identity(kind),
            "ndim": entry.ndim,
            "flags": entry.flags,
            **{
                name: self.number(getattr(entry, name))
                for name in ("data", "dims", "strides", "value")
            },
        }

    def size(self, row: SizeSpec) -> dict[str, int]:
        return {
            "op": row.op,
            "target": self.number(row.target),
            "a": self.slot(row.a),
            "b": self.slot(row.b),
        }

    def cell(self, use: CellSpec) -> dict[str, int]:
        return {
            "cell": use.cell,
            "ndim": use.ndim,
            "written": int(use.written),
            **{name: self.number(getattr(use, name)) for name in ("data", "spare", "dims")},
        }

    def output(self, output: OutputSpec) -> dict[str, int]:
        descr = output.descr
        if output.kind in (OutputKind.ARRAY, OutputKind.SCALAR):
            descr = np.dtype(descr)  # type: ignore[call-overload]
        return {
            "kind": output.kind,
            "descr": self.identity(descr),
            "ndim": len(output.dims),
            "dims": self.words(output.dims),
            "data": self.number(output.data),
            "value": self.number(output.value),
            "input": output.input,
        }

    def rows(self) -> list[dict[str, int]]:
        commit = commit_of(self.spec.rows)
        return [self.row(row, at in commit) for at, row in enumerate(self.spec.rows)]

    def row(self, row: RowSpec, committing: bool) -> dict[str, int]:
        if row.kind == RowKind.HOST and len(row.words) > MAX_PARAMETERS:
            raise ValueError(f"a host call takes at most {MAX_PARAMETERS} words")
        jumps = row.kind in JUMPS
        return {
            "kind": row.kind,
            "kernel": row.kernel,
            "words": self.words(row.words),
            "count": row.length if row.kind == RowKind.COMPUTE else len(row.words),
            "extent": self.slot(row.extent),
            "grain": row.grain,
            "work": self.slot(row.work),
            "target": row.target if jumps else self.number(row.target),
            "first": self._later_base + row.first if row.kind == RowKind.COMPUTE else row.first,
            "callable": self.identity(row.callable),
            "cell": row.cell,
            "errors": row.errors,
            "visible": int(committing),
        }

    @property
    def _later_base(self) -> int:
        return len(self.spec.sizes) + len(self.spec.addresses)

    def build(self, part: Part) -> list[dict[str, int]]:
        assert not isinstance(part, Given), "it is an output by now"
        if isinstance(part, int):
            return [{"op": Build.PUSH, "count": part, "operand": 0}]
        if isinstance(part, Held):
            return [{"op": Build.OBJECT, "count": 0, "operand": self.identity(part.thing)}]
        rows = [row for inner in part.parts for row in self.build(inner)]
        operand = 0 if part.operand is None else self.identity(part.operand)
        return [*rows, {"op": part.op, "count": len(part.parts), "operand": operand}]


def encode(spec: NativeSpecialisation) -> Encoded:
    """Write the tables of a specialisation. The frame gives out no slots afterwards."""
    to = _Encoder(spec)
    record = Record(Specialisation)
    encoded = Encoded(record.address, record, to.kept)
    build = to.build(spec.result)
    for name, value in _tables(to, build).items():
        record[name] = value
    scratch = spec.frame.size
    objects = scratch + max([len(row.words) for row in spec.rows], default=0)
    results = objects + len(spec.inputs)
    building = results + len(spec.outputs)
    allocated = [to.number(row.target) for row in spec.rows if row.kind == RowKind.ALLOC]
    constants = Words(spec.frame.constants)
    places = Words(allocated)
    to.kept += [constants, places]
    values = {
        "owner": id(encoded),
        "frame_words": building + len(build),
        "scratch": scratch,
        "objects": objects,
        "results": results,
        "building": building,
        "constants": constants.address,
        "n_constants": len(spec.frame.constants),
        "arena_bytes": to.number(spec.arena_bytes),
        "arena": to.number(spec.arena),
        "work": to.slot(spec.work),
        "allocated": places.address,
        "n_allocated": len(allocated),
        "n_owned": sum(entry.source >= Source.DICT_ITEM for entry in spec.inputs),
    }
    for name, value in values.items():
        record[name] = value
    return encoded


def _tables(to: _Encoder, build: list[dict[str, int]]) -> dict[str, int]:
    """Addresses and lengths of all tables."""
    spec = to.spec
    sizes = [to.size(row) for row in (*spec.sizes, *spec.addresses, *spec.later_sizes)]
    cells = [to.cell(use) for use in sorted(spec.cells, key=lambda use: use.cell)]
    tables: dict[str, tuple[Any, list[dict[str, int]]]] = {
        "inputs": (Input, [to.input(entry) for entry in spec.inputs]),
        "overlaps": (Overlap, [{"left": a, "right": b} for a, b in spec.overlaps]),
        "cells": (CellUse, cells),
        "outputs": (Output, [to.output(output) for output in spec.outputs]),
        "rows": (Row, to.rows()),
        "build": (BuildRow, build),
    }
    found = {
        "sizes": to.table(SizeRow, sizes),
        "n_sizes": len(spec.sizes),
        "addresses": len(spec.sizes),
        "n_addresses": len(spec.addresses),
    }
    for name, (kind, rows) in tables.items():
        found[name] = to.table(kind, rows)
        found["n_" + name] = len(rows)
    return found
