"""Scheduled steps to the rows, buffers and sizes of a plan.

Invariants: parameters are the first buffers, variables the next; others appear in the order of
their rows.
Not here: decisions.
"""

from __future__ import annotations

from typing import Any

from .dims import Size
from .ir.graph import Node
from .jobs import Assembled, BranchJob, HostJob, LaunchJob, LoopJob
from .kernels import Ready, Stage
from .passes.schedule import DEFERRED, TARGET, TEMPORARY, Cell, Schedule, Step
from .plan import (
    Branch,
    BufferSpec,
    CommitPoint,
    Copy,
    ErrorPlace,
    ExecutionPlan,
    HostCall,
    Launch,
    Loop,
    Origin,
    Result,
    Row,
    Slice,
    Turn,
)
from .sizes import SizeProgram
from .types import TokenType

_OWN = (Origin.OUTPUT, Origin.VIEW)


class PlanWriter:
    """Writes one plan."""

    def __init__(self, assembled: Assembled, scheduled: Schedule) -> None:
        self.assembled = assembled
        self.scheduled = scheduled
        self.sizes = SizeProgram(assembled.symbols)
        self.rows: list[Row] = []
        self.buffers: list[BufferSpec] = []
        self.callbacks: list[Any] = []
        self.places: list[ErrorPlace] = []
        self._buffer: dict[Any, int] = {}
        self._launch: dict[int, tuple[tuple[int, ...], int, int, tuple[int, ...]]] = {}
        self._numbers: dict[int, int] = {}  # of kernels, in the order of rows
        self.offsets, self.arena = self._layout(scheduled.slots)
        self._written = self._targets_written()
        for cell in [*assembled.params, *assembled.variables.values()]:
            self.buffer(cell)

    def plan(self, returned: list[tuple[Cell, bool]]) -> ExecutionPlan:
        """All rows, then the results."""
        for step in self.scheduled.steps:
            if step.position == self.scheduled.commit:
                self.rows.append(CommitPoint())
            self.step(step)
        if self.scheduled.commit == len(self.scheduled.steps):
            self.rows.append(CommitPoint())
        for source, target in self.scheduled.copies:
            self.step(Step(self.assembled.copying(source, target), (source,), (target,)))
        assembled = self.assembled
        kernels = [assembled.kernels[at] for at in self._numbers]
        results = tuple(Result(self.buffer(cell), scalar) for cell, scalar in returned)
        return ExecutionPlan(
            name=assembled.name,
            sizes=tuple(self.sizes.rows),
            size_symbols=dict(self.sizes.symbols),
            buffers=tuple(self.buffers),
            kernels=tuple(kernels),
            kernel_names=tuple([kernel.name for kernel in kernels]),
            rows=tuple(self.rows),
            results=results,
            arena_bytes=self.arena,
            constants=tuple(assembled.constants),
            variables=tuple(assembled.variables),
            callbacks=tuple(self.callbacks),
            error_places=tuple(self.places),
        )

    def _layout(self, slots: tuple[Size, ...]) -> tuple[list[int], int]:
        """The size slot of each arena slot's offset, and of the arena's size."""
        offsets: list[int] = []
        end = self.sizes.const(0)
        for size in slots:
            offsets.append(end)
            end = self.sizes.add(end, self.sizes.aligned(self.sizes.slot(size)))
        return offsets, end

    def _targets_written(self) -> set[Cell]:
        written = {target for _, target in self.scheduled.copies}
        for step in self.scheduled.steps:
            for cell in step.writes:
                memory = cell.memory()
                if memory.kind in (TARGET, DEFERRED):
                    written.add(memory)
        return written

    # -- rows

    def step(self, step: Step) -> None:
        """The rows of one step."""
        for at in step.copied:
            base = step.bases[at]
            assert base is not None
            self.copy(base, step.writes[at])
        job = step.job
        if isinstance(job, LaunchJob):
            self.launch(job, step)
        elif isinstance(job, HostJob):
            self.host(job.node, step)
        elif isinstance(job, BranchJob):
            self.branch(job)
        elif isinstance(job, LoopJob):
            self.loop(job)
        else:
            self.copy(step.reads[0], step.writes[0])

    def copy(self, source: Cell, target: Cell) -> None:
        """A row that copies bytes, or a kernel where one side is strided."""
        job = self.assembled.copying(source, target.home())
        if isinstance(job, LaunchJob):
            self.launch(job, Step(job, (source,), (target,)))
        else:
            self.rows.append(Copy(self.buffer(source), self.buffer(target)))

    def launch(self, job: LaunchJob, step: Step) -> None:
        """A row for each stage of a region."""
        ready: Ready = job.ready
        node: Node | None = job.node
        place = None if node is None else node.location
        cells = [*step.reads, *step.writes]
        for stage, places in zip(ready.stages, job.places):
            known = self._launch.get(id(stage))
            if known is None:
                known = self._launch[id(stage)] = self._slots(stage)
            sizes, extent, work, writes = known
            buffers = tuple([self.buffer(cells[at]) for at in stage.params])
            errors = len(self.places)
            self.places.extend(places)
            written = tuple([buffers[at] for at in writes])
            number = self._numbers.setdefault(stage.index, len(self._numbers))
            self.rows.append(
                Launch(number, buffers, sizes, extent, stage.grain, work, place, errors, written)
            )

    def _slots(self, stage: Stage) -> tuple[tuple[int, ...], int, int, tuple[int, ...]]:
        sizes = self.sizes.slots(stage.sizes)
        params = self.assembled.kernels[stage.index].params
        writes = tuple([at for at, param in enumerate(params) if param.mode != "in"])
        work = self.sizes.slot(stage.work // 1000)
        return sizes, self.sizes.slot(stage.extent), work, writes

    def host(self, node: Node, step: Step) -> None:
        """A row that calls back."""
        self.callbacks.append(dict(node.attrs))
        buffers = tuple([self.buffer(cell) for cell in (*step.reads, *step.writes)])
        results = [r for r in node.results if not isinstance(r.type, TokenType)]
        shapes = tuple([self.sizes.slots(v.tensor.shape) for v in (*node.operands, *results)])
        self.rows.append(HostCall(len(self.callbacks) - 1, buffers, shapes, node.location))

    # -- control flow

    def branch(self, job: BranchJob) -> None:
        """A row around the rows of two regions."""
        then, otherwise = self.body(job.then), self.body(job.otherwise)
        self.rows.append(Branch(self.buffer(job.test), then, otherwise, job.node.location))

    def loop(self, job: LoopJob) -> None:
        """A row around the rows of a region."""
        buffer = self.buffer
        bounds = None if job.bounds is None else (buffer(job.bounds[0]), buffer(job.bounds[1]))
        row = Loop(
            body=self.body(job.body),
            condition=None if job.condition is None else buffer(job.condition),
            bounds=bounds,
            length=None if job.length is None else self.sizes.slot(job.length),
            index=None if job.index is None else buffer(job.index),
            reverse=job.reverse,
            turns=tuple(
                [
                    Turn(
                        buffer(turn.current),
                        buffer(turn.following),
                        buffer(turn.first),
                        buffer(turn.result),
                        buffer(turn.other),
                    )
                    for turn in job.turns
                ]
            ),
            slices=tuple([Slice(buffer(s.view), buffer(s.whole)) for s in job.slices]),
            location=job.node.location,
        )
        self.rows.append(row)

    def body(self, steps: tuple[Step, ...]) -> tuple[Row, ...]:
        """The rows of a region's steps."""
        outside, self.rows = self.rows, []
        for step in steps:
            self.step(step)
        made, self.rows = tuple(self.rows), outside
        return made

    # -- buffers

    def buffer(self, cell: Cell) -> int:
        """The number of the buffer that a cell lies in."""
        memory = cell.home()
        note = cell.note if memory.kind == TEMPORARY else memory.note
        key: Any = memory
        if memory.kind == TEMPORARY:
            key = (memory.slot, note.dtype, note.shape)
        found = self._buffer.get(key)
        if found is None:
            found = self._buffer[key] = len(self.buffers)
            temporary = memory.kind == TEMPORARY
            self.buffers.append(
                BufferSpec(
                    dtype=note.dtype,
                    shape=self.sizes.slots(note.shape),
                    origin=Origin.TEMPORARY if temporary else note.origin,
                    index=note.index,
                    offset=self.offsets[memory.slot] if temporary else None,
                    strided=note.strided,
                    written=temporary or note.origin in _OWN or memory in self._written,
                    name=note.name,
                )
            )
        return found
