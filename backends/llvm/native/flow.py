"""Loops and branches of a plan as rows that jump.

A loop is: slots made ready, a jump over it if no trip is due, the rows of a trip, slots moved on,
a jump back while trips are left. Slots hold the counter (whose memory kernels read), the trips
left, and the addresses of all that changes from trip to trip; so a trip allocates and copies
nothing, and what it costs besides its rows is two rows.

Invariants: slots of a loop are set when it is entered, so it may stand in another one.
Not here: which memory is whose (the plan), running rows (`walker`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....compiler.plan import Branch, Loop, Slice, Turn
from .encoder import RowSpec, SizeSpec
from .layout import NONE, RowKind, Size

if TYPE_CHECKING:
    from .from_plan import PlanRows

_UNKNOWN_NS = 1_000_000  # of a loop without a known number of trips: the GIL is given up


def branch_rows(to: PlanRows, row: Branch) -> None:
    """One stretch of rows or the other."""
    test = to.buffers.frame.slot()
    _compute(to, [SizeSpec(Size.LOAD_BYTE, to.buffers.data[row.test], target=test)])
    to_otherwise = _jump(to, RowKind.JUMP_IF_ZERO, test)
    for inner in row.then:
        to.row(inner)
    to_end = _jump(to, RowKind.JUMP)
    _land(to, to_otherwise)
    for inner in row.otherwise:
        to.row(inner)
    _land(to, to_end)


def loop_rows(to: PlanRows, row: Loop) -> None:
    """The rows of a loop."""
    loop = _Loop(to, row)
    for turn in row.turns:
        loop.turn(turn)
    for slice in row.slices:
        loop.slice(slice)
    loop.write()


class _Loop:
    """A loop being written. enter, move: what is computed before the first trip, after each."""

    def __init__(self, to: PlanRows, row: Loop) -> None:
        self.to = to
        self.row = row
        self.frame = to.buffers.frame
        self.data = to.buffers.data
        self.zero, self.one = self.frame.constant(0), self.frame.constant(1)
        self.enter: list[SizeSpec] = []
        self.move: list[SizeSpec] = []
        self.due = self.frame.slot()  # not 0 while there is a trip to make
        self.counted = row.condition is None
        if row.length is not None:
            length = to.buffers.size_slots[row.length]
            self.enter.append(SizeSpec(Size.ADD, length, self.zero, self.due))
        elif row.bounds is not None:
            self.bounds(*row.bounds)
        if self.counted:
            self.move.append(SizeSpec(Size.SUB, self.due, self.one, self.due))

    def bounds(self, begin: int, end: int) -> None:
        """A counter whose slot is the memory that kernels read."""
        counter = self.frame.slot()
        self.enter += [
            SizeSpec(Size.LOAD, self.data[begin], target=counter),
            SizeSpec(Size.LOAD, self.data[end], target=self.due),
            SizeSpec(Size.MAX, self.due, counter, self.due),
            SizeSpec(Size.SUB, self.due, counter, self.due),
        ]
        self.move.append(SizeSpec(Size.ADD, counter, self.one, counter))
        assert self.row.index is not None
        self.to.buffers.addresses.append(
            SizeSpec(Size.ADDRESS, counter, target=self.data[self.row.index])
        )

    def turn(self, turn: Turn) -> None:
        """Two buffers that take turns; where trips are counted the last one writes the result."""
        data, frame = self.data, self.frame
        current, following = data[turn.current], data[turn.following]
        result, other = data[turn.result], data[turn.other]
        both, shift = frame.slot(), frame.slot()
        self.enter.append(SizeSpec(Size.ADD, result, other, both))
        if self.counted:
            self.enter += [
                SizeSpec(Size.SUB, self.due, self.one, shift),
                SizeSpec(Size.MOD, shift, frame.constant(2), shift),
                SizeSpec(Size.SUB, other, result, following),
                SizeSpec(Size.MUL, following, shift, shift),
                SizeSpec(Size.ADD, result, shift, following),
            ]
        else:
            self.enter.append(SizeSpec(Size.ADD, result, self.zero, following))
        self.enter.append(SizeSpec(Size.ADD, data[turn.first], self.zero, current))
        self.move += [
            SizeSpec(Size.ADD, following, self.zero, current),
            SizeSpec(Size.SUB, both, following, following),
        ]

    def slice(self, slice: Slice) -> None:
        """A row of a stacked array: an address that walks."""
        view, whole = self.data[slice.view], self.data[slice.whole]
        size = self.to.bytes_of(slice.view)
        if not self.row.reverse:
            self.enter.append(SizeSpec(Size.ADD, whole, self.zero, view))
            self.move.append(SizeSpec(Size.ADD, view, size, view))
            return
        self.enter += [
            SizeSpec(Size.SUB, self.due, self.one, view),
            SizeSpec(Size.MUL, view, size, view),
            SizeSpec(Size.ADD, whole, view, view),
        ]
        self.move.append(SizeSpec(Size.SUB, view, size, view))

    def write(self) -> None:
        to, row = self.to, self.row
        if row.condition is not None:
            look = SizeSpec(Size.LOAD_BYTE, self.data[row.condition], target=self.due)
            self.enter.append(look)
            self.move.append(look)
        _compute(to, self.enter)
        over = _jump(to, RowKind.JUMP_IF_ZERO, self.due)
        top = len(to.rows)
        before, to.work = to.work, NONE
        for inner in row.body:
            to.row(inner)
        self.count_work(before)
        _compute(to, self.move)
        to.rows.append(RowSpec(RowKind.JUMP_UNLESS_ZERO, extent=self.due, target=top))
        _land(to, over)
        for turn in row.turns:
            self.settle(turn)

    def settle(self, turn: Turn) -> None:
        """Bring the last content to the result, where it is elsewhere."""
        moved = self.frame.slot()
        current, result = self.data[turn.current], self.data[turn.result]
        _compute(self.to, [SizeSpec(Size.SUB, current, result, moved)])
        there = _jump(self.to, RowKind.JUMP_IF_ZERO, moved)
        words = (result, current, self.to.bytes_of(turn.result))
        self.to.rows.append(RowSpec(RowKind.COPY, words=words))
        _land(self.to, there)

    def count_work(self, before: int) -> None:
        """Add the estimate for all trips to that of what comes before the loop."""
        to = self.to
        work = self.frame.constant(_UNKNOWN_NS)
        if self.row.length is not None:
            length = to.buffers.size_slots[self.row.length]
            work = self.zero if to.work == NONE else to.terms.apply(Size.MUL, length, to.work)
        to.work = work if before == NONE else to.terms.apply(Size.ADD, before, work)


def _compute(to: PlanRows, specs: list[SizeSpec]) -> None:
    to.rows.append(RowSpec(RowKind.COMPUTE, first=len(to.later), length=len(specs)))
    to.later += specs


def _jump(to: PlanRows, kind: RowKind, slot: int = NONE) -> int:
    """A jump whose target is not known yet; its place."""
    to.rows.append(RowSpec(kind, extent=slot))
    return len(to.rows) - 1


def _land(to: PlanRows, place: int) -> None:
    """The jump at `place` leads here."""
    to.rows[place] = to.rows[place]._replace(target=len(to.rows))
