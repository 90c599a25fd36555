"""Rows that reduce, several at once: the last lanes of a batch of rows are folded together.

A row of a few dozen elements is one to four vectors. Folding the lanes of the last one, and what
is done with the result, would take longer than reading it. So each row of a batch leaves a vector,
the vectors are folded as one (at every level of the tree, half of the lanes are another row's),
and what follows runs with lanes along the rows:

    sum = reduce sum j { x[i, j] }      row by row, a vector each; then folded together
    mean = sum / m; store y[i] = mean   lanes along the rows
    parallel j { ... x[i, j] - mean }   row by row

Invariants: the same values as reduce.py gives, row by row. Where rows are read again, a batch has
fewer of them, so that it stays in the first cache.
Not here: short rows of a size that is known (compiler/kernel/short.py), sums of columns
(columns.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

from llvmlite import ir

from ...compiler.dims import Dim
from ...compiler.kernel.halves import defines, uses
from ...compiler.kernel.kernel import (
    Checked,
    Constant,
    IndexValue,
    Let,
    Load,
    Parallel,
    Reduce,
    Statement,
    Store,
    bodies,
    walk,
)
from ...compiler.kernel.monoids import FEW, MONOIDS
from ...compiler.types import BOOL
from .folding import Folding, Slots, State
from .frame import Frame, Lanes, constant
from .indices import scalar_size
from .loops import counted, mask_below, range_of, work_of
from .row_lanes import RowLanes, folded_together
from .types import I8, I64, Lane, constant_of, intrinsic, memory_element, part_count, vector_of

MOST = 16  # rows of a batch
_NEAR = 2048  # elements of a batch of rows that are read more than once
Block = tuple[Statement, ...]


def is_row_loop(frame: Frame, s: Parallel) -> bool:
    """Whether the loop's body is reductions in vectors along a row, and loops over the row, and
    statements that lanes can do."""
    if s.vector > 1 or frame.lanes.width > 1 or not frame.machine.has_masked_memory:
        return False
    loops = [x for x in s.body if bodies(x)]
    if not any(isinstance(x, Reduce) for x in loops):
        return False
    if not all(_runs_along_row(x, s.axis) for x in loops):
        return False
    inner = [x for loop in loops for body in bodies(loop) for x in body]
    if not all(_is_plain(x) for x in (*inner, *(x for x in s.body if not bodies(x)))):
        return False
    names = {name for x in s.body for name in defines(x)}
    if any(isinstance(x, Reduce) and not _is_simple(frame, x, s.body) for x in loops):
        return False
    return all(part_count(frame.dtypes[name]) == 1 for name in names)


def _runs_along_row(s: Statement, axis: str) -> bool:
    if not isinstance(s, Reduce | Parallel) or s.vector <= 1:
        return False
    if isinstance(s.extent, Dim) and axis in s.extent.symbols():
        return False
    return isinstance(s, Parallel) or not (s.tree or s.loose)


def _is_simple(frame: Frame, r: Reduce, body: Block) -> bool:
    """False for an index whose value is wanted too, or is heavy to find again."""
    if not MONOIDS[r.monoid].indexed:
        return True
    used = {name for x in walk(body) if x is not r for name in uses(x)}
    return len(r.names) == 2 and r.names[0] not in used and RowLanes(frame, r).light


def _is_plain(s: Statement) -> bool:
    if isinstance(s, Load | Store):
        return not any(isinstance(index, Checked) for index in s.index)
    return isinstance(s, Let | Constant | IndexValue)


def emit_row_loop(frame: Frame, s: Parallel) -> None:
    """Batch after batch of rows."""
    builder = frame.builder
    begin, end = range_of(frame, s.axis, s.extent)
    batch = _Batch(frame, s)
    count = batch.rows_at_once()
    length = builder.add(builder.sub(end, begin), builder.sub(count, constant(1)))
    batches = builder.sdiv(length, count)

    def step(number: ir.Value, _: list[ir.Value]) -> None:
        first = builder.add(begin, builder.mul(number, count))
        stop = builder.add(first, count)
        stop = intrinsic(builder, "llvm.smin", stop.type, [stop, end], stop.type)
        batch.emit(first, stop)

    work = (work_of(frame, s.body) or 1) * batch.width
    counted(frame, "(batch)", constant(0), batches, 1, step, work=work)


class _Batch:
    """Rows side by side: what is known of each is in lanes, and in memory for loops over rows."""

    def __init__(self, frame: Frame, s: Parallel) -> None:
        self.frame = frame
        self.s = s
        self.width = min(MOST, *(x.vector for x in s.body if isinstance(x, Reduce)), MOST)
        loops = [x for x in s.body if bodies(x)]
        self.wanted = {name for loop in loops for x in walk((loop,)) for name in uses(x)}
        self.cells: dict[str, ir.Value] = {}
        self.slots: dict[int, Slots | None] = {}
        for x in s.body:
            if isinstance(x, Reduce) and not MONOIDS[x.monoid].indexed:
                self.slots[id(x)] = self._slots_of(x)

    def _slots_of(self, r: Reduce) -> Slots | None:
        """Memory for a vector of each row; None where its lanes are too many to be folded at
        once."""
        if r.vector != self.width:
            return None
        slots = Slots.of(self.frame, r.dtypes, self.width, self.width)
        neutral = Folding(self.frame, r.monoid, r.dtypes, self.width).neutral()
        for k in range(self.width):
            slots.store(k, neutral)  # of rows that a last batch lacks
        return slots

    def rows_at_once(self) -> ir.Value:
        """How many rows a batch has at most."""
        frame, builder = self.frame, self.frame.builder
        loops = [x for x in self.s.body if isinstance(x, Reduce | Parallel)]
        if len(loops) == 1:
            return constant(self.width)
        length = scalar_size(frame, loops[0].extent)
        for limit, name in ((constant(1), "llvm.smax"), (constant(_NEAR), "llvm.smin")):
            length = intrinsic(builder, name, length.type, [length, limit], length.type)
        near = builder.sdiv(constant(_NEAR), length)
        return intrinsic(builder, "llvm.smin", near.type, [near, constant(self.width)], near.type)

    def emit(self, first: ir.Value, stop: ir.Value) -> None:
        """The rows from `first` to `stop`."""
        for is_loop, group in groupby(self.s.body, key=lambda x: bool(bodies(x))):
            if not is_loop:
                self._side_by_side(tuple(group), first, stop)
                continue
            for x in group:
                if isinstance(x, Reduce):
                    self._reduced(x, first, stop)
                else:
                    self._looped(x, first, stop)

    def _looped(self, x: Statement, first: ir.Value, stop: ir.Value) -> None:
        self._row_by_row(x, first, stop, lambda row: self.frame.emit((x,)))

    def _side_by_side(self, group: Block, first: ir.Value, stop: ir.Value) -> None:
        frame = self.frame
        with frame.iteration(self.s.axis, first):
            mask = mask_below(frame, first, stop, self.width)
            with frame.vectorised(Lanes(self.s.axis, self.width, mask)):
                frame.emit(group)
        for name in (name for x in group for name in defines(x)):
            self._known(name, frame.values[name])

    def _known(self, name: str, lane: Lane) -> None:
        """A value of each row, also for loops over the rows that want it."""
        frame = self.frame
        frame.values[name] = lane
        if name not in self.wanted or lane.width == 1:
            return
        self._put_cell(name, lane)

    def _put_cell(self, name: str, lane: Lane) -> None:
        builder, value = self.frame.builder, lane.value
        if lane.dtype is BOOL:
            value = builder.zext(value, vector_of(I8, self.width))
        builder.store(value, self._cell(name))

    def _cell(self, name: str) -> ir.Value:
        if name not in self.cells:
            element = memory_element(self.frame.dtypes[name])
            self.cells[name] = self.frame.stack_slot(element, self.width)
        return self.cells[name]

    def _row_by_row(
        self, x: Statement, first: ir.Value, stop: ir.Value, body: Callable[[ir.Value], None]
    ) -> None:
        frame, builder = self.frame, self.frame.builder
        wanted = {name for y in walk((x,)) for name in uses(y)} & self.cells.keys()
        lanes = {name: frame.values[name] for name in wanted}

        def row(index: ir.Value, _: list[ir.Value]) -> None:
            number = builder.sub(index, first)
            for name in sorted(wanted):
                frame.values[name] = self._of_row(name, number)
            body(number)

        counted(frame, self.s.axis, first, stop, 1, row)
        frame.values.update(lanes)

    def _of_row(self, name: str, number: ir.Value) -> Lane:
        builder, dtype = self.frame.builder, self.frame.dtypes[name]
        element = memory_element(dtype)
        place = builder.gep(self.cells[name], [number], source_etype=element)
        return Lane(dtype, (self._loaded(name, place, 1),))

    def _loaded(self, name: str, place: ir.Value, width: int) -> ir.Value:
        dtype = self.frame.dtypes[name]
        typ = vector_of(memory_element(dtype), width)
        value = self.frame.builder.load(place, typ=typ)
        if dtype is BOOL:
            return self.frame.builder.icmp_unsigned("!=", value, constant_of(typ, 0))
        return value

    def _reduced(self, r: Reduce, first: ir.Value, stop: ir.Value) -> None:
        frame = self.frame
        if MONOIDS[r.monoid].indexed:
            self._placed(r, first, stop)
            return
        lanes = Folding(frame, r.monoid, r.dtypes, self.width)
        slots = self.slots[id(r)]
        self._each_row(r, first, stop, slots)
        state = self._together(r, slots)
        if lanes.monoid.empty is not None:
            none = frame.builder.icmp_signed("==", scalar_size(frame, r.extent), constant(0))
            state = lanes.select(none, lanes.empty(), state)
        for name, lane in zip(r.names, state):
            self._known(name, lane)

    def _together(self, r: Reduce, slots: Slots | None) -> State:
        """The results of all rows in lanes."""
        if slots is None:
            return [self._in_lanes(name) for name in r.names]
        lanes = Folding(self.frame, r.monoid, r.dtypes, self.width)
        return folded_together(lanes, [slots.load(k) for k in range(self.width)])

    def _in_lanes(self, name: str) -> Lane:
        value = self._loaded(name, self._cell(name), self.width)
        return Lane(self.frame.dtypes[name], (value,), self.width)

    def _placed(self, r: Reduce, first: ir.Value, stop: ir.Value) -> None:
        """Indices: of short rows the values together, then the place of each; else row by row."""
        frame, builder = self.frame, self.frame.builder
        value, place = r.names
        monoid = MONOIDS[r.monoid].of_values
        assert monoid is not None
        alone = replace(
            r, monoid=monoid, names=(value,), yields=r.yields[:1], dtypes=r.dtypes[:1]
        )  # fmt: skip
        one, slots = RowLanes(frame, alone), self._slots_of(alone)
        length = scalar_size(frame, r.extent)

        def keep(row: ir.Value, state: State) -> None:
            cell = builder.gep(self._cell(place), [row], source_etype=I64)
            builder.store(state[1].value, cell)

        def search(row: ir.Value) -> None:
            wanted = self._of_row(value, row)
            keep(row, RowLanes(frame, r).places().found(wanted, constant(0), length))

        with builder.if_else(self._is_short(one)) as (then, otherwise):
            with then:
                self._loop(alone, first, stop, slots, one.short)
                (lane,) = self._together(alone, slots)
                self._put_cell(value, lane)
                self._row_by_row(r, first, stop, search)
            with otherwise:
                whole = lambda row: keep(row, RowLanes(frame, r).searched())
                self._row_by_row(r, first, stop, whole)
        self._known(place, self._in_lanes(place))

    def _each_row(self, r: Reduce, first: ir.Value, stop: ir.Value, slots: Slots | None) -> None:
        """Every row's lanes; short rows in a loop of their own."""
        one = RowLanes(self.frame, r)
        with self.frame.builder.if_else(self._is_short(one)) as (then, otherwise):
            with then:
                self._loop(r, first, stop, slots, one.short)
            with otherwise:
                self._loop(r, first, stop, slots, one.state)

    def _is_short(self, one: RowLanes) -> ir.Value:
        builder, length = self.frame.builder, scalar_size(self.frame, one.s.extent)
        return builder.and_(
            builder.icmp_signed(">=", length, constant(FEW)),
            builder.icmp_signed("<=", length, constant(one.longest())),
        )

    def _loop(
        self,
        r: Reduce,
        first: ir.Value,
        stop: ir.Value,
        slots: Slots | None,
        state: Callable[[], State],
    ) -> None:
        def row(number: ir.Value) -> None:
            if slots is None:
                self._keep(r, state(), number)
            else:
                slots.store(number, state())

        self._row_by_row(r, first, stop, row)

    def _keep(self, r: Reduce, state: State, row: ir.Value) -> None:
        """A row's result, whose lanes are too many for a batch, in memory."""
        builder = self.frame.builder
        found = Folding(self.frame, r.monoid, r.dtypes, r.vector)
        for name, lane in zip(r.names, found.over_lanes(state)):
            value, element = lane.value, memory_element(lane.dtype)
            if lane.dtype is BOOL:
                value = builder.zext(value, I8)
            builder.store(value, builder.gep(self._cell(name), [row], source_etype=element))
