"""Control flow becomes one step around the scheduled steps of its regions.

A region is assembled into steps of its own; `schedule_body` orders their memory. What a loop
carries is written over itself where the body's kernels allow it, as an argument would be; else
two buffers take turns, and a trip costs an exchange of addresses. Rows of stacked arrays are
read and written where they lie.

Invariants: control flow runs before the commit, so that a loop can be interrupted and leaves what
others see as it was.
Not here: regions (assemble_region.py), branches (assemble_branch.py), rows (rows.py), running them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from .assemble_branch import branch_step
from .assemble_nest import nest_step
from .assemble_region import Scope, inside, region_steps, scratch, tensors
from .dims import Size
from .ir.graph import Graph, Node, Value
from .jobs import LaunchJob, LoopJob, Note, SliceOf, TurnOf
from .kernel.movement import is_update
from .kernel.rolled import is_rolled
from .ops.definition import OpDef
from .ops.flow import cond, for_, scan, while_
from .passes.schedule import (
    CARRIED,
    FIXED,
    OUTPUT,
    Cell,
    Step,
    schedule_body,
)
from .plan import Origin
from .records import dataclass, replace
from .turns import reads_what_is_stale
from .types import TensorType

_ROLLED = 30_000_000  # picoseconds that are added to what a loop of unknown length is taken for


def flow_step(assembly: Scope, node: Node) -> None:
    """Append the step of a node of control flow."""
    if is_rolled(node):
        assembly.launch(node)
        _may_take_long(assembly.steps[-1])
    elif nest_step(assembly, node):
        _may_take_long(assembly.steps[-1])
    else:
        _STEPS[node.op](assembly, node)


def _may_take_long(step: Step) -> None:
    """A kernel that is a loop: it runs before the commit, so that it can be interrupted, and
    without the GIL."""
    step.fails = True
    job: LaunchJob = step.job
    stages = tuple([replace(stage, work=stage.work + _ROLLED) for stage in job.ready.stages])
    step.job = replace(job, ready=replace(job.ready, stages=stages))


def _while(assembly: Scope, node: Node) -> None:
    (region,) = node.regions
    first, operands = node.operands[0], node.operands[1:]
    count = node.attrs["carried"]
    parts = _Loop(assembly, node, region)
    parts.carry(None, first, None)
    for at in range(count):
        parts.carry(region.params[at], operands[at], node.results[at])
    parts.capture(region.params[count:], operands[count:])
    parts.finish(condition=True)


def _for(assembly: Scope, node: Node) -> None:
    (region,) = node.regions
    index, params = region.params[0], region.params[1:]
    bounds, operands = node.operands[:2], node.operands[2:]
    count = node.attrs["carried"]
    parts = _Loop(assembly, node, region)
    counter = parts.view(index)
    for at in range(count):
        parts.carry(params[at], operands[at], node.results[at])
    parts.capture(params[count:], operands[count:])
    begin, end = (assembly.contiguous(bound) for bound in bounds)
    parts.reads += [begin, end]
    parts.finish(index=counter, bounds=(begin, end))


def _scan(assembly: Scope, node: Node) -> None:
    (region,) = node.regions
    operands, params = node.operands, region.params
    count, stacked = node.attrs["carried"], node.attrs["stacked"]
    parts = _Loop(assembly, node, region)
    for at in range(count):
        parts.carry(params[at], operands[at], node.results[at])
    for at in range(count, count + stacked):
        whole = assembly.contiguous(operands[at])
        parts.reads.append(whole)
        parts.slices.append(SliceOf(parts.view(params[at]), whole))
    parts.capture(params[count + stacked :], operands[count + stacked :])
    parts.finish(
        stacks=tensors(node.results)[count:],
        length=node.attrs["length"],
        reverse=node.attrs["reverse"],
    )


_STEPS: Mapping[OpDef, Callable[[Scope, Node], None]] = {
    cond: branch_step,
    while_: _while,
    for_: _for,
    scan: _scan,
}


@dataclass(slots=True)
class _Carry:
    """One carried value: its cell in the region, before the loop, and what it is afterwards."""

    old: Cell
    param: Value | None
    initial: Value
    result: Value | None


@dataclass(slots=True)
class _Loop:
    """The parts of a loop's step, put together."""

    assembly: Scope
    node: Node
    region: Graph
    reads: list[Cell] = field(default_factory=list)
    carried: list[_Carry] = field(default_factory=list)
    slices: list[SliceOf] = field(default_factory=list)
    cells: dict[Value, Cell] = field(default_factory=dict)

    def view(self, param: Value) -> Cell:
        """A parameter of the region that lies where the loop says."""
        made = self.assembly.cell(param.tensor, FIXED, Origin.VIEW, 0, param.name)
        self.cells[param] = made
        return made

    def carry(self, param: Value | None, initial: Value, result: Value | None) -> None:
        """A carried value; without a parameter, one that only the loop itself reads."""
        name = param.name if param is not None else "again"
        old = self.assembly.cell(initial.tensor, CARRIED, Origin.VIEW, 0, name)
        self.carried.append(_Carry(old, param, initial, result))
        if param is not None:
            self.cells[param] = old

    def capture(self, params: Sequence[Value], operands: Sequence[Value]) -> None:
        """Values that are the same on every trip."""
        for param, operand in zip(params, operands, strict=True):
            cell = self.assembly.cells[operand]
            self.reads.append(cell)
            self.cells[param] = inside(cell)

    def finish(
        self,
        *,
        condition: bool = False,
        index: Cell | None = None,
        bounds: tuple[Cell, Cell] | None = None,
        stacks: Sequence[Value] = (),
        length: Size | None = None,
        reverse: bool = False,
    ) -> None:
        """Assemble the region and append the step. stacks: results that trips write a row of."""
        assembly = self.assembly
        kept = self._kept()
        params = [self.cells[param] for param in self.region.params]
        steps, made = region_steps(assembly, self.region, params, kept)
        carried = [c for at, c in enumerate(self.carried) if at not in kept]
        pairs = [(c.old, made[at]) for at, c in enumerate(self.carried) if at not in kept]
        for value, cell in zip(stacks, made[len(self.carried) :], strict=True):
            row = TensorType(value.tensor.dtype, value.tensor.shape[1:])
            cell.kind, cell.note = OUTPUT, _note(row, f"{value.name}.row")
        body = schedule_body(steps, pairs)
        writes: list[Cell] = []
        bases: list[Cell | None] = []
        turns: list[TurnOf] = []
        for at, (carry, (old, new)) in enumerate(zip(carried, pairs)):
            result = self._carried_memory(carry)
            writes.append(result)
            bases.append(assembly.cells[carry.initial])
            if at not in body.apart:
                old.source = result
                continue
            if self._is_read_between(carry) or not _written_in_part(old, new):
                bases[-1] = None
            turns.append(self._turn(carry, old, new, result))
            writes.append(turns[-1].other)
            bases.append(bases[-1])
        again = carried[0].old if condition else None
        for value, cell in zip(stacks, made[len(self.carried) :]):
            whole = assembly.temporary(value.tensor, value.name)
            assembly.cells[value] = whole
            self.slices.append(SliceOf(cell, whole))
            writes.append(whole)
        writes += scratch(assembly, [body])
        bases += [None] * (len(writes) - len(bases))
        job = LoopJob(
            self.node, body.steps, again, bounds, length, index, reverse,
            tuple(turns), tuple(self.slices),
        )  # fmt: skip
        assembly.steps.append(Step(job, self.reads, writes, bases=bases, fails=True))

    def _is_read_between(self, carry: _Carry) -> bool:
        """Whether a trip reads what its own later writes replace."""
        result = self.region.results[self.carried.index(carry)]
        return carry.param is None or reads_what_is_stale(self.region, carry.param, result)

    def _kept(self) -> set[int]:
        """Positions of carried values that no trip changes; they are what they were before."""
        found = set()
        for at, carry in enumerate(self.carried):
            if carry.param is not None and self.region.results[at] is carry.param:
                cell = self.assembly.contiguous(carry.initial)
                self.reads.append(cell)
                self.cells[carry.param] = inside(cell)
                assert carry.result is not None
                self.assembly.cells[carry.result] = cell
                found.add(at)
        return found

    def _carried_memory(self, carry: _Carry) -> Cell:
        """Where a carried value is when the loop is over."""
        name = carry.old.note.name if carry.result is None else carry.result.name
        made = self.assembly.temporary(carry.initial.tensor, name)
        if carry.result is not None:
            self.assembly.cells[carry.result] = made
        return made

    def _turn(self, carry: _Carry, old: Cell, new: Cell, result: Cell) -> TurnOf:
        """Two buffers that take turns: each trip reads one and writes the other."""
        type = carry.initial.tensor
        first = self.assembly.contiguous(carry.initial)
        self.reads.append(first)
        new.note = _note(type, f"{old.note.name}.next")
        other = self.assembly.temporary(type, f"{result.note.name}.other")
        return TurnOf(old, new, first, result, other)


def _written_in_part(old: Cell, new: Cell) -> bool:
    """True where a trip replaces the same regions of `old` on every trip: two buffers that take
    turns then agree elsewhere for good, once both hold what was there before the loop."""
    cell = new
    while True:
        step = cell.maker
        assert step is not None
        at = list(step.writes).index(cell)
        base = step.bases[at] if step.bases else None
        if base is None or not _is_update(step, at):
            return False
        if base is old:
            step.copied.remove(at)
            step.bases = [None if b is old and n == at else b for n, b in enumerate(step.bases)]
            return True
        if base.memory() is not cell.memory():
            return False
        cell = base


def _is_update(step: Step, at: int) -> bool:
    """Whether a write replaces a region of its base that no value decides."""
    node = step.job.node if isinstance(step.job, LaunchJob) else None
    if node is None:
        return False
    results = tensors(node.regions[0].results if node.regions else node.results)
    maker = results[at].node if at < len(results) else None
    return maker is not None and is_update(maker)


def _note(type: TensorType, name: str) -> Note:
    return Note(type.dtype, type.shape, Origin.VIEW, 0, name)
