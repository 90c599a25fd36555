"""The steps of a region of control flow, and its memory.

A region is assembled like a graph, into steps of its own. Its temporaries lie in temporaries of
the step around it, so the arena needs no second level.

Invariants: a region writes nothing but results and temporaries of its step.
Not here: the steps around regions (assemble_branch.py, assemble_flow.py), rows (rows.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from .ir.graph import Graph, Node, Value
from .jobs import Note
from .kernel.region import Region
from .kernels import Kernels
from .passes.schedule import FIXED, TEMPORARY, BodySchedule, Cell, Step, needed
from .plan import Origin
from .types import U8, TensorType


class Scope(Protocol):
    """The assembly of the graph that holds the control flow."""

    kernels: Kernels
    steps: list[Step]
    cells: dict[Value, Cell]
    last: dict[Value, Node | None]

    def node(self, node: Node) -> None: ...
    def launch(self, node: Node) -> None: ...
    def run(self, region: Region, node: Node, sources: Sequence[Cell]) -> list[Cell]: ...
    def cell(
        self, type: TensorType, kind: str, origin: Origin, index: int = 0, name: str = ""
    ) -> Cell: ...
    def temporary(self, type: TensorType, name: str = "") -> Cell: ...
    def contiguous(self, value: Value) -> Cell: ...
    def copy(self, source: Cell, target: Cell) -> None: ...


def region_steps(
    assembly: Scope, region: Graph, params: Sequence[Cell], kept: Collection[int] = ()
) -> tuple[list[Step], list[Cell]]:
    """The steps of a region over these cells, and its results, each in a cell of its own; those
    in `kept` are left as they are."""
    outside, assembly.steps = assembly.steps, []
    assembly.cells.update(zip(region.params, params, strict=True))
    for node in region.nodes:
        assembly.node(node)
    steps, assembly.steps = assembly.steps, outside
    made: list[Cell] = []
    for at, value in enumerate(tensors(region.results)):
        cell = assembly.cells[value]
        if at in kept:
            made.append(cell)
        elif cell.kind != TEMPORARY or cell in made:
            made.append(result_apart(assembly, steps, value, cell))
        else:
            type = value.tensor
            cell.form = type
            cell.note = Note(type.dtype, type.shape, Origin.TEMPORARY, 0, value.name)
            made.append(cell)
    return needed(steps, made), made


def result_apart(assembly: Scope, steps: list[Step], value: Value, cell: Cell) -> Cell:
    """A copy of a cell of a region, as the memory of one of its results."""
    made = assembly.temporary(value.tensor, value.name)
    assembly.copy(cell, made)
    copying = assembly.steps.pop()
    if cell.kind != TEMPORARY:  # of a parameter: first, so that it may be written over
        steps.insert(0, copying)
    else:
        steps.append(copying)
    return made


def inside(cell: Cell) -> Cell:
    """A cell of the graph around a region, as the region sees it: it is only read."""
    made = Cell(FIXED, cell.form, cell.size, cell.note)
    made.source = cell
    return made


def scratch(assembly: Scope, bodies: Sequence[BodySchedule]) -> list[Cell]:
    """Temporaries of the step in which those of its regions lie; regions share them."""
    made: list[Cell] = []
    for body in bodies:
        free = list(made)
        chosen: list[Cell] = []
        for size in body.slots:
            found = next((cell for cell in free if cell.size == size), None)
            if found is None:
                found = assembly.temporary(TensorType(U8, (size,)))
                made.append(found)
            else:
                free.remove(found)
            chosen.append(found)
        for step in body.steps:
            for cell in step.writes:
                memory = cell.memory()
                if memory.kind == TEMPORARY and memory.source is None:
                    memory.source = chosen[memory.slot]
    return made


def tensors(values: Sequence[Value]) -> list[Value]:
    """Those of the values that are arrays, not tokens."""
    return [v for v in values if isinstance(v.type, TensorType)]
