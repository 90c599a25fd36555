"""From an execution plan to a native specialisation.

The plan says what is computed; the caller adds where the Python call finds each argument (`Leaf`),
what else must hold (other inputs, relations between sizes), addresses of kernels and cells, and
how results are put together.

Argument words of a launch: for each buffer its address, followed by its byte strides if it is
`strided`; then the sizes.

Invariants: rows keep their order; the kernels of a plan must be kept alive by `keep`.
Not here: where buffers lie (`plan_buffers`), writing tables (`encoder`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ....compiler.plan import (
    Branch,
    CommitPoint,
    Copy,
    ExecutionPlan,
    HostCall,
    Launch,
    Loop,
    Origin,
)
from .encoder import (
    Frame,
    Given,
    Held,
    InputSpec,
    NativeSpecialisation,
    OutputSpec,
    Part,
    RowSpec,
    SizeSpec,
)
from .flow import branch_rows, loop_rows
from .host import ArrayCall
from .layout import NONE, OutputKind, RowKind, Size
from .plan_buffers import Leaf, PlanBuffers, PlanNotNative, SizeRelation, place

__all__ = ["Leaf", "PlanNotNative", "PlanRows", "SizeRelation", "place", "specialisation_of"]

_SEEN = (Origin.ARGUMENT, Origin.CAPTURED, Origin.VARIABLE)


def specialisation_of(
    plan: ExecutionPlan,
    kernels: Sequence[int],
    inputs: Sequence[InputSpec | Leaf],
    *,
    frame: Frame | None = None,
    tests: Sequence[SizeSpec] = (),
    relations: Sequence[SizeRelation] = (),
    symbols: Mapping[str, tuple[int, int]] | None = None,
    strides: Mapping[int, tuple[int, ...] | None] | None = None,
    measures: Mapping[str, tuple[int, str, int]] | None = None,
    together: Sequence[Collection[int]] = (),
    cells: Mapping[str, int] | None = None,
    callbacks: Sequence[Callable[..., object]] = (),
    result: Part | None = None,
    keep: Sequence[object] = (),
) -> NativeSpecialisation:
    """The native form of a plan.

    inputs: all objects of the call in the order they are found, so that an item comes after its
    container; captured arrays without a `Leaf` are the plan's own objects. `frame` and `tests` are
    those given to `constants.constant_input`. symbols: (position in `inputs`, axis) of symbols the
    plan does not know. strides: strides in elements that array inputs must have, by position in
    `inputs`; None: C-contiguous. measures: (position in `inputs`, ``data``, ``stride`` or ``size``,
    axis) of further symbols that relations speak of. together: positions of arrays whose memory
    `relations` place to each other, so that they need not be apart. cells: addresses by variable
    name. callbacks: functions of arrays for the plan's host calls. result: the returned structure
    over positions in `plan.results`; None returns the first.
    """
    buffers = PlanBuffers(plan, frame or Frame(), cells or {})
    buffers.place_inputs(inputs)
    buffers.size_program()
    buffers.relate(relations, symbols or {}, buffers.measured(measures or {}))
    buffers.pin_strides(strides or {})
    buffers.make_outputs()
    buffers.place_buffers()
    to = PlanRows(plan, buffers, kernels, callbacks)
    for row in plan.rows:
        to.row(row)
    structure = to.structure(0 if result is None and plan.results else result)
    arena = buffers.arena
    return NativeSpecialisation(
        frame=buffers.frame,
        inputs=tuple(buffers.inputs),
        sizes=(*tests, *buffers.terms.rows),
        addresses=tuple(buffers.addresses),
        overlaps=tuple(buffers.overlaps(together)),
        cells=tuple(buffers.cells),
        outputs=tuple(buffers.outputs),
        later_sizes=tuple(to.later),
        rows=tuple(to.rows),
        result=structure,
        arena_bytes=NONE if arena == NONE else buffers.size_slots[plan.arena_bytes],
        arena=arena,
        work=to.work,
        keep=(plan, *keep, *buffers.kept),
    )


class PlanRows:
    """The rows of one plan over its buffers' slots."""

    def __init__(
        self,
        plan: ExecutionPlan,
        buffers: PlanBuffers,
        kernels: Sequence[int],
        callbacks: Sequence[Callable[..., object]],
    ) -> None:
        self.plan = plan
        self.buffers = buffers
        self.terms = buffers.terms
        self.kernels = kernels
        self.callbacks = callbacks
        self.rows: list[RowSpec] = []
        self.later: list[SizeSpec] = []
        self.work = NONE
        self.committing = False

    def row(self, row: Any) -> None:
        if isinstance(row, Launch):
            self.launch(row)
        elif isinstance(row, Copy):
            self.copy(row)
        elif isinstance(row, HostCall):
            self.host(row)
        elif isinstance(row, CommitPoint):
            self.committing = True
        elif isinstance(row, Branch):
            branch_rows(self, row)
        elif isinstance(row, Loop):
            loop_rows(self, row)
        else:
            raise PlanNotNative(f"no native row for {type(row).__name__}")

    def launch(self, row: Launch) -> None:
        words: list[int] = []
        for at in row.buffers:
            words.append(self.buffers.data[at])
            if self.plan.buffers[at].strided:
                words += self.buffers.strides_of(at)
        words += [self.buffers.size_slots[size] for size in row.sizes]
        work = self.buffers.size_slots[row.work]
        self.work = work if self.work == NONE else self.terms.apply(Size.ADD, self.work, work)
        self.rows.append(
            RowSpec(
                RowKind.LAUNCH,
                kernel=self.kernels[row.kernel],
                words=tuple(words),
                extent=self.buffers.size_slots[row.extent],
                grain=row.grain,
                work=work,
                errors=row.errors,
                visible=self.visible(self.written_by(row)),
            )
        )

    def copy(self, row: Copy) -> None:
        size = self.bytes_of(row.source)
        words = (self.buffers.data[row.target], self.buffers.data[row.source], size)
        visible = self.visible([row.target])
        self.rows.append(RowSpec(RowKind.COPY, words=words, visible=visible))

    def bytes_of(self, at: int) -> int:
        """The slot of a buffer's size."""
        buffer = self.plan.buffers[at]
        size = self.buffers.frame.constant(buffer.dtype.itemsize)
        for extent in self.buffers.shape(buffer):
            size = self.terms.apply(Size.MUL, size, extent)
        return size

    def written_by(self, row: Launch) -> Sequence[int]:
        """The buffers a launch writes; all it touches where that is not known."""
        return row.buffers if row.writes is None else row.writes

    def visible(self, written: Sequence[int]) -> bool:
        """Whether others can see that these buffers are written."""
        origins = {self.plan.buffers[at].origin for at in written if self.plan.buffers[at].written}
        return self.committing and not origins.isdisjoint(_SEEN)

    def host(self, row: HostCall) -> None:
        words: list[int] = []
        forms = []
        for at, shape in zip(row.buffers, row.shapes):
            words += [self.buffers.data[at], *[self.buffers.size_slots[size] for size in shape]]
            forms.append((self.plan.buffers[at].dtype.numpy, len(shape)))
        call = ArrayCall(self.callbacks[row.callback], tuple(forms))
        self.rows.append(RowSpec(RowKind.HOST, words=tuple(words), callable=call))

    def structure(self, result: Part | None) -> Part:
        """The result's structure over outputs instead of over the plan's flat results."""
        if result is None:
            return Held(None)
        if isinstance(result, int):
            return self.buffers.output_of[self.plan.results[result].buffer]
        if isinstance(result, Held):
            return result
        if isinstance(result, Given):
            self.buffers.outputs.append(OutputSpec(OutputKind.INPUT, input=result.input))
            return len(self.buffers.outputs) - 1
        return result._replace(parts=tuple(self.structure(part) for part in result.parts))
