"""Sums of few columns: 64 rows that lie one after another are one stretch of memory.

Lane l of 64 adds up rows l, l + 64, ... (monoids.py). Where rows have few elements and no gaps, the
accumulators of 64 rows side by side match the memory of 64 rows, element by element, so vectors
run over both whatever the number of columns is; none is partly used. The tree over the lanes adds
the upper half of the accumulators to the lower, again as one stretch.

What the elements are computed with and differs from column to column (a mean that is subtracted)
is laid out 64 times first.

Invariants: the same values as columns.py gives. Used where that holds at run time: few columns, all
of them, and one block of rows with lanes; `otherwise` is emitted for the rest.
Not here: many columns (columns.py), columns that are written out (compiler/kernel/short.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ...compiler.dims import Dim
from ...compiler.kernel.halves import defines, uses
from ...compiler.kernel.kernel import Constant, Let, Load, Parallel, Reduce, bodies, walk
from ...compiler.kernel.monoids import BLOCK, FEW, LANES
from ...compiler.types import BOOL, DType
from .bodies import weight_of_block
from .control import poll
from .folding import Folding, State
from .frame import Frame, Lanes, constant
from .indices import scalar_size
from .loops import counted, mask_below, range_of
from .types import Lane, constant_of, memory_element, part_count, vector_of, widen

_MOST = 64  # columns
_LIGHT = 24  # words of an element
_TOGETHER = 4  # stretches that are added to the accumulators at once
Each = Callable[[ir.Value], None]


def is_flat(frame: Frame, s: Parallel) -> bool:
    """Whether the loop is one reduction down rows without gaps, inside a loop over blocks."""
    if s.vector <= 1 or frame.lanes.width > 1 or not frame.axes or LANES % s.vector:
        return False
    loops = [x for x in s.body if bodies(x)]
    r = loops[0] if len(loops) == 1 else None
    if not isinstance(r, Reduce) or not frame.machine.has_masked_memory or r.tree or r.loose:
        return False
    if any(not _is_number(frame, x) for x in r.names) or len(r.names) > 2:
        return False
    if weight_of_block(r.body, frame.dtypes) > _LIGHT:
        return False
    before = s.body[: s.body.index(r)]
    if any(not isinstance(x, Let | Load | Constant) for x in before):
        return False
    made = {name for x in before for name in defines(x)}
    wanted = made & _wanted(r)
    if not all(_is_number(frame, name) for name in wanted):
        return False
    if not any(isinstance(x, Load) for x in r.body):
        return False
    return all(
        _is_flat_load(frame, x, r.axis, s) if isinstance(x, Load) else isinstance(x, Let | Constant)
        for x in r.body
    )


def _wanted(r: Reduce) -> set[str]:
    return {name for x in walk(r.body) for name in uses(x)} | set(r.yields)


def _is_number(frame: Frame, name: str) -> bool:
    return part_count(frame.dtypes[name]) == 1


def _is_flat_load(frame: Frame, load: Load, row: str, s: Parallel) -> bool:
    """Whether it is of ``[..., row + something, column]`` in rows as long as the loop."""
    parameter = frame.parameters.get(load.buffer)
    if parameter is None or parameter.strided or load.mask is not None or len(load.index) < 2:
        return False
    *outer, at, column = load.index
    if column != Dim.symbol(s.axis) or parameter.shape[-1] != s.extent:
        return False
    if not isinstance(at, Dim) or at.coefficient(row) != 1 or s.axis in at.symbols():
        return False
    apart = {row, s.axis}
    return all(
        isinstance(index, int) or (isinstance(index, Dim) and apart.isdisjoint(index.symbols()))
        for index in outer
    )


def emit_flat_columns(frame: Frame, s: Parallel, otherwise: Callable[[], None]) -> None:
    """Columns side by side where they are few, else `otherwise`."""
    builder = frame.builder
    begin, end = range_of(frame, s.axis, s.extent)
    (r,) = (x for x in s.body if isinstance(x, Reduce))
    columns, rows = scalar_size(frame, s.extent), scalar_size(frame, r.extent)
    fits = builder.icmp_signed("<=", columns, constant(_MOST))
    for holds in (
        builder.icmp_signed("==", builder.sub(end, begin), columns),
        builder.icmp_signed(">=", rows, constant(FEW)),
        builder.icmp_signed("<=", rows, constant(BLOCK)),
    ):
        fits = builder.and_(fits, holds)
    with builder.if_else(fits) as (then, other):
        with then:
            _Stretch(frame, s, r, columns, rows).emit()
        with other:
            otherwise()


class _Stretch:
    def __init__(
        self, frame: Frame, s: Parallel, r: Reduce, columns: ir.Value, rows: ir.Value
    ) -> None:
        self.frame = frame
        self.s = s
        self.r = r
        self.columns = columns
        self.rows = rows
        self.width = s.vector
        self.folding = Folding(frame, r.monoid, r.dtypes, self.width)
        at = s.body.index(r)
        self.before, self.after = s.body[:at], s.body[at + 1 :]
        made = {name for x in self.before for name in defines(x)}
        self.laid_out = {name: self._memory(name) for name in sorted(made & _wanted(r))}
        self.sums = [self._memory(name) for name in r.names]

    def _memory(self, name: str) -> ir.Value:
        """Room for a value of 64 rows, and for a last vector that goes beyond."""
        typ = vector_of(memory_element(self.frame.dtypes[name]), self.width)
        return self.frame.stack_slot(typ, _MOST * LANES // self.width + 1)

    def emit(self) -> None:
        """Before, the sums, after."""
        frame, builder = self.frame, self.frame.builder
        if self.laid_out:
            self._over_columns(self._lay_out)
            self._repeat()
        neutral = self.folding.neutral()
        length = builder.mul(self.columns, constant(LANES))
        self._over(length, lambda at: self._store(at, neutral))
        self._rows(length)
        self._tree()
        poll(frame, builder.mul(self.columns, self.rows))
        self._over_columns(self._finish)

    def _over(self, length: ir.Value, body: Each) -> None:
        """`body` at each vector of a stretch."""

        def step(at: ir.Value, _: list[ir.Value]) -> None:
            body(at)

        counted(self.frame, "(stretch)", constant(0), length, self.width, step)

    def _over_columns(self, body: Each) -> None:
        """`body` with lanes along the columns."""
        frame = self.frame

        def step(at: ir.Value, _: list[ir.Value]) -> None:
            mask = mask_below(frame, at, self.columns, self.width)
            with frame.vectorised(Lanes(self.s.axis, self.width, mask)):
                body(at)

        counted(frame, self.s.axis, constant(0), self.columns, self.width, step)

    def _lay_out(self, at: ir.Value) -> None:
        self.frame.emit(self.before)
        for name, memory in self.laid_out.items():
            lane = widen(self.frame.builder, self.frame.values[name], self.width)
            self._put(memory, at, lane)

    def _repeat(self) -> None:
        """What is laid out once per column is laid out for 64 rows: doubled, six times."""
        builder = self.frame.builder

        def double(number: ir.Value, _: list[ir.Value]) -> None:
            length = builder.shl(self.columns, number)

            def copy(at: ir.Value) -> None:
                for name, memory in self.laid_out.items():
                    lane = self._get(memory, at, self.frame.dtypes[name])
                    self._put(memory, builder.add(at, length), lane)

            self._over(length, copy)

        times = LANES.bit_length() - 1
        counted(self.frame, "(double)", constant(0), constant(times), 1, double)

    def _rows(self, length: ir.Value) -> None:
        """Whole stretches of 64 rows, several at once; then one by one; then what is left."""
        builder = self.frame.builder
        together = constant(-LANES * _TOGETHER)
        several, whole = (builder.and_(self.rows, x) for x in (together, constant(-LANES)))
        self._stretches(constant(0), several, length, _TOGETHER)
        self._stretches(several, whole, length, 1)
        rest = builder.mul(builder.sub(self.rows, whole), self.columns)

        def masked(at: ir.Value) -> None:
            mask = mask_below(self.frame, at, rest, self.width)
            old = self._sums(at)
            new = self.folding.combine(old, self._element(whole, at, mask))
            self._store(at, self.folding.select(mask, new, old))

        self._over(rest, masked)

    def _stretches(self, begin: ir.Value, end: ir.Value, length: ir.Value, times: int) -> None:
        builder = self.frame.builder

        def group(row: ir.Value, _: list[ir.Value]) -> None:
            rows = [builder.add(row, constant(k * LANES)) for k in range(times)]

            def vector(at: ir.Value) -> None:
                state = self._sums(at)
                for first in rows:
                    state = self.folding.combine(state, self._element(first, at, None))
                self._store(at, state)

            self._over(length, vector)

        counted(self.frame, "(rows)", begin, end, LANES * times, group)

    def _element(self, row: ir.Value, at: ir.Value, mask: ir.Value | None) -> State:
        """The reduction's body for the elements from `at` on of the rows from `row` on."""
        frame = self.frame
        with (
            frame.iteration(self.r.axis, row),
            frame.iteration(self.s.axis, at),
            frame.vectorised(Lanes(self.s.axis, self.width, mask)),
        ):
            for name, memory in self.laid_out.items():
                frame.values[name] = self._get(memory, at, frame.dtypes[name])
            frame.emit(self.r.body)
        return self.folding.element((frame.values[y] for y in self.r.yields), self.width)

    def _tree(self) -> None:
        """Of the 64 rows of sums, the lower half takes in the upper, six times."""
        builder = self.frame.builder

        def level(number: ir.Value, _: list[ir.Value]) -> None:
            half = builder.mul(builder.lshr(constant(LANES // 2), number), self.columns)

            def pair(at: ir.Value) -> None:
                upper = self._sums(builder.add(at, half))
                self._store(at, self.folding.combine(self._sums(at), upper))

            self._over(half, pair)

        times = LANES.bit_length() - 1
        counted(self.frame, "(level)", constant(0), constant(times), 1, level)

    def _finish(self, at: ir.Value) -> None:
        frame = self.frame
        frame.emit(self.before)
        frame.values.update(zip(self.r.names, self._sums(at)))
        frame.emit(self.after)

    def _sums(self, at: ir.Value) -> State:
        return [self._get(m, at, d) for m, d in zip(self.sums, self.r.dtypes)]

    def _store(self, at: ir.Value, state: Sequence[Lane]) -> None:
        for memory, lane in zip(self.sums, state):
            self._put(memory, at, lane)

    def _get(self, memory: ir.Value, at: ir.Value, dtype: DType) -> Lane:
        builder, element = self.frame.builder, memory_element(dtype)
        place = builder.gep(memory, [at], source_etype=element)
        value = builder.load(place, typ=vector_of(element, self.width), align=1)
        if dtype is BOOL:
            value = builder.icmp_unsigned("!=", value, constant_of(value.type, 0))
        return Lane(dtype, (value,), self.width)

    def _put(self, memory: ir.Value, at: ir.Value, lane: Lane) -> None:
        builder, element, value = self.frame.builder, memory_element(lane.dtype), lane.value
        if lane.dtype is BOOL:
            value = builder.zext(value, vector_of(element, self.width))
        builder.store(value, builder.gep(memory, [at], source_etype=element), align=1)
