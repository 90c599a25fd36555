"""Scans as code: prefixes in order, each consumed where it is made.

A prefix waits for the one before it, so a row alone is as slow as its additions follow one
another. Rows are taken several at once: what one of them waits, the others use.

Invariants: the order is the axis' own (backwards for `reverse`), one element at a time; lanes of
an enclosing vector loop scan side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...compiler.dims import Dim
from ...compiler.kernel.kernel import (
    Checked,
    Constant,
    IndexValue,
    Let,
    Load,
    Parallel,
    Scan,
    Statement,
    Store,
    bodies,
)
from .folding import Folding, State, flat, unflat
from .frame import Frame, Lanes, constant
from .indices import scalar_size
from .loops import counted, mask_below, range_of, work_of

ROWS = 8  # that scan side by side


def is_scan_of_rows(frame: Frame, s: Parallel) -> bool:
    """Whether the loop's body is one scan and plain statements, for one lane."""
    if s.vector > 1 or frame.lanes.width > 1:
        return False
    loops = [x for x in s.body if bodies(x)]
    scan = loops[0] if len(loops) == 1 else None
    if not isinstance(scan, Scan):
        return False
    if isinstance(scan.extent, Dim) and s.axis in scan.extent.symbols():
        return False
    plain = (*(x for x in s.body if x is not scan), *scan.body, *scan.then)
    return all(_is_plain(x) for x in plain)


def _is_plain(s: Statement) -> bool:
    if isinstance(s, Load | Store):
        return not any(isinstance(index, Checked) for index in s.index)
    return isinstance(s, Let | Constant | IndexValue)


def emit_scan_of_rows(frame: Frame, s: Parallel) -> None:
    """Several rows at once, then those that are left."""
    builder = frame.builder
    begin, end = range_of(frame, s.axis, s.extent)
    length = builder.and_(builder.sub(end, begin), constant(-ROWS))
    middle = builder.add(begin, length)
    work = work_of(frame, s.body) or 1

    def rows(first: ir.Value, last: ir.Value, count: int) -> None:
        def step(row: ir.Value, _: list[ir.Value]) -> None:
            _Rows(frame, s, row, count).emit()

        counted(frame, "(rows)", first, last, count, step, work=work * count)

    rows(begin, middle, ROWS)
    rows(middle, end, 1)


def is_scan_of_columns(frame: Frame, s: Parallel) -> bool:
    """Whether the lanes of the loop scan side by side."""
    loops = [x for x in s.body if bodies(x)]
    return s.vector > 1 and frame.lanes.width == 1 and any(isinstance(x, Scan) for x in loops)


def emit_scan_of_columns(frame: Frame, s: Parallel) -> None:
    """Many lanes at once while there are as many; then a vector at a time, for a store of which
    no lane is active is as slow as any."""
    builder = frame.builder
    begin, end = range_of(frame, s.axis, s.extent)
    wide = s.vector * max(1, s.unroll)
    middle = builder.add(begin, builder.and_(builder.sub(end, begin), constant(-wide)))
    narrow = s.vector if frame.machine.has_masked_memory else 1
    work = work_of(frame, s.body) or 1

    def lanes(first: ir.Value, last: ir.Value, width: int, whole: bool) -> None:
        def step(index: ir.Value, _: list[ir.Value]) -> None:
            mask = None if whole or width == 1 else mask_below(frame, index, end, width)
            with frame.vectorised(Lanes(s.axis if width > 1 else None, width, mask)):
                frame.emit(s.body)

        counted(frame, s.axis, first, last, width, step, work=work * width)

    lanes(begin, middle, wide, True)
    lanes(middle, end, narrow, False)


class _Rows:
    """The rows from `first` on, whose statements alternate."""

    def __init__(self, frame: Frame, s: Parallel, first: ir.Value, count: int) -> None:
        self.frame = frame
        self.axis = s.axis
        self.first = first
        (self.scan,) = (x for x in s.body if isinstance(x, Scan))
        at = s.body.index(self.scan)
        self.before, self.after = s.body[:at], s.body[at + 1 :]
        self.values = [dict(frame.values) for _ in range(count)]

    def emit(self) -> None:
        """What comes before the scan, the scan, what comes after."""
        frame, scan = self.frame, self.scan
        self._in_each_row(self.before)
        folding = Folding(frame, scan.monoid, scan.dtypes, 1)
        neutral = folding.neutral()
        end = scalar_size(frame, scan.extent)
        size = len(flat(neutral))

        def step(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            if not scan.reverse:
                return body(index, carried)
            last = frame.builder.sub(end, constant(1))
            with frame.iteration(scan.axis, frame.builder.sub(last, index)):
                return body(index, carried)

        def body(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            made: list[ir.Value] = []
            self._in_each_row(scan.body)
            for row, values in enumerate(self.values):
                state = unflat(carried[row * size : (row + 1) * size], neutral)
                element = folding.element((values[y] for y in scan.yields), 1)
                made += flat(self._kept(row, folding.next(index, state, element)))
            self._in_each_row(scan.then)
            return made

        start = flat(neutral) * len(self.values)
        carried = counted(frame, scan.axis, constant(0), end, 1, step, start)
        for row in range(len(self.values)):
            self._kept(row, unflat(carried[row * size : (row + 1) * size], neutral))
        self._in_each_row(self.after)

    def _kept(self, row: int, state: State) -> State:
        self.values[row].update(zip(self.scan.names, state))
        return state

    def _in_each_row(self, statements: Sequence[Statement]) -> None:
        frame, outside = self.frame, self.frame.values
        for row, values in enumerate(self.values):
            frame.values = values
            with frame.iteration(self.axis, self.first, row):
                frame.emit(statements)
        frame.values = outside


def emit_scan(frame: Frame, s: Scan) -> None:
    """Carry the prefix through a counted loop."""
    folding = Folding(frame, s.monoid, s.dtypes, frame.lanes.width)
    neutral = folding.neutral()
    end = scalar_size(frame, s.extent)

    def step(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
        if not s.reverse:
            return body(index, carried)
        last = frame.builder.sub(end, constant(1))
        with frame.iteration(s.axis, frame.builder.sub(last, index)):
            return body(index, carried)

    def body(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
        frame.emit(s.body)
        element = folding.element((frame.values[y] for y in s.yields), folding.width)
        state = folding.next(index, unflat(carried, neutral), element)
        frame.values.update(zip(s.names, state))
        frame.emit(s.then)
        return flat(state)

    work = work_of(frame, (*s.body, *s.then)) or 1
    counted(frame, s.axis, constant(0), end, 1, step, flat(neutral), work=work)
