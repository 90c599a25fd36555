"""Column reductions of a vector loop as code: rows stream, the sums of many columns wait.

A tile of columns, a page wide, is reduced together: each row is read side by side into the
accumulators of its lane (row % 64 of monoids.py), which lie in the second cache. Reading 64
bytes of each row instead would touch a page for every one of them.

Invariants: the same values as reduce.py gives; columns beyond the last are masked.
Not here: loops that are not like this (`is_column_loop` says which are).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ...compiler.dims import Dim
from ...compiler.kernel.halves import uses
from ...compiler.kernel.kernel import Let, Load, Parallel, Reduce, Statement, Store, bodies, walk
from ...compiler.kernel.monoids import BLOCK, LANES
from .bodies import weight_of_block
from .counter import Counter
from .folding import Folding, Slots, is_free
from .frame import Frame, Lanes, constant
from .indices import scalar_size
from .lane_order import are_read_again
from .loops import counted, range_of, step_mask, tail_bits
from .reduce import few_of, over_levels
from .types import intrinsic

_PAGE = 4096
_UNROLLED = 16
_TOGETHER = 4  # rows of one lane that are added to its accumulators at once
_ROWS_AHEAD = 2  # rows asked for early: each begins on another page
_LIGHT = 24

Block = tuple[Statement, ...]


def is_column_loop(frame: Frame, s: Parallel, body: Block) -> bool:
    """Whether `body` is reductions over other axes, each streaming rows, then plain statements."""
    if s.vector <= 1 or not frame.machine.has_masked_memory:
        return False
    reduces = [r for r in body if isinstance(r, Reduce)]
    if not reduces or any(bodies(x) and not isinstance(x, Reduce) for x in body):
        return False
    plain = {getattr(x, "name", "") for x in body if not isinstance(x, Reduce)}
    return all(_streams(frame, r, plain, s.axis) for r in reduces)


def _streams(frame: Frame, r: Reduce, plain: set[str], column: str) -> bool:
    if r.tree or r.loose or any(bodies(x) for x in r.body):
        return False
    if isinstance(r.extent, int) and r.extent <= _UNROLLED:
        return False
    if isinstance(r.extent, Dim) and r.extent.symbols() & {column, *frame.axes}:
        return False
    if are_read_again(frame, r.body, column):
        return False
    if any(not isinstance(x, Let | Load | Store) and not hasattr(x, "name") for x in r.body):
        return False
    if weight_of_block(r.body, frame.dtypes) > _LIGHT:
        return False
    used = {name for x in walk(r.body) for name in uses(x)} | set(r.yields)
    return not used & plain


def emit_column_loop(frame: Frame, s: Parallel, body: Block) -> None:
    """The loop over columns, tile by tile."""
    begin, end = range_of(frame, s.axis, s.extent)
    size = max(d.itemsize for r in body if isinstance(r, Reduce) for d in r.dtypes)
    width = s.vector
    count = max(1, _PAGE // (width * size))

    def tile(first: ir.Value, _: list[ir.Value]) -> None:
        stop = frame.builder.add(first, constant(width * count))
        stop = intrinsic(frame.builder, "llvm.smin", stop.type, [stop, end], stop.type)
        _Tile(frame, s, width, count, first, stop).emit(body)

    counted(frame, "(columns)", begin, end, width * count, tile, work=width * count)


class _Tile:
    """Some columns of the loop, and the results that are known for them."""

    def __init__(
        self, frame: Frame, s: Parallel, width: int, count: int, first: ir.Value, end: ir.Value
    ) -> None:
        self.frame = frame
        self.axis = s.axis
        self.width = width
        self.count = count
        self.first = first
        self.end = end
        self.tail = tail_bits(frame, first, end, width)
        self.results: list[tuple[tuple[str, ...], Slots]] = []

    def emit(self, body: Block) -> None:
        """The reductions, one after another, then everything else once per column."""
        for r in body:
            if isinstance(r, Reduce):
                slots = self._reduced(r)
                self.results.append((r.names, slots))
        rest = tuple(x for x in body if not isinstance(x, Reduce))
        self._over_columns(lambda column: self.frame.emit(rest))

    def _reduced(self, r: Reduce) -> Slots:
        frame = self.frame
        folding = Folding(frame, r.monoid, r.dtypes, self.width)
        results = Slots.of(frame, r.dtypes, self.width, self.count)
        total = scalar_size(frame, r.extent)
        if is_free(folding):
            self._over_vectors(lambda v: results.store(v, folding.neutral()))
            self._rows(r, folding, results, constant(0), total, lanes=1)
            none = frame.builder.icmp_signed("==", total, constant(0))
            if folding.monoid.empty is not None:
                self._over_vectors(
                    lambda v: results.store(
                        v, folding.select(none, folding.empty(), results.load(v))
                    )
                )
            return results
        self._by_blocks(r, folding, results, total)
        return results

    def _by_blocks(self, r: Reduce, folding: Folding, results: Slots, total: ir.Value) -> None:
        frame, builder = self.frame, self.frame.builder
        sums = Slots.of(frame, r.dtypes, self.width, self.count * LANES)
        counter = Counter.of(frame, folding, self.count)
        self._over_vectors(counter.reset)

        def block(begin: ir.Value, _: list[ir.Value]) -> None:
            end = builder.add(begin, constant(BLOCK))
            end = intrinsic(builder, "llvm.smin", end.type, [end, total], end.type)
            used = builder.sub(end, begin)
            used = intrinsic(builder, "llvm.smin", used.type, [used, constant(LANES)], used.type)
            neutral = folding.neutral()
            self._over_lanes(constant(0), used, lambda slot: sums.store(slot, neutral))
            self._rows(r, folding, sums, begin, end, lanes=LANES)
            self._tree(folding, sums, used)
            self._over_vectors(lambda v: counter.push(sums.load(v), v))

        counted(frame, "(block)", constant(0), total, BLOCK, block, work=BLOCK * self.count)
        self._over_vectors(lambda v: results.store(v, counter.result(v)))

    def _rows(
        self, r: Reduce, folding: Folding, sums: Slots, begin: ir.Value, end: ir.Value, lanes: int
    ) -> None:
        """Each row into the accumulators of its lane: several rows of a lane at once, so that
        its accumulators are fetched less often, then the rest one by one."""
        builder = self.frame.builder
        together = _TOGETHER * lanes
        length = builder.sub(end, begin)
        middle = builder.add(begin, builder.and_(length, constant(-together)))

        def group(first: ir.Value, _: list[ir.Value]) -> None:
            last = builder.add(first, constant(lanes))
            self._lanes(r, folding, sums, first, last, lanes, _TOGETHER)

        counted(self.frame, "(group)", begin, middle, together, group)
        self._lanes(r, folding, sums, middle, end, lanes, 1)

    def _lanes(
        self,
        r: Reduce,
        folding: Folding,
        sums: Slots,
        begin: ir.Value,
        end: ir.Value,
        lanes: int,
        together: int,
    ) -> None:
        """The rows from begin to end and, for each, those `lanes` further on."""
        frame, builder = self.frame, self.frame.builder

        def row(index: ir.Value, _: list[ir.Value]) -> None:
            lane = builder.mul(builder.and_(index, constant(lanes - 1)), constant(self.count))

            def column(number: ir.Value) -> None:
                slot = builder.add(lane, number)
                state = sums.load(slot)
                frame.ahead = (r.axis, _ROWS_AHEAD)
                for k in range(together):
                    with frame.iteration(r.axis, index, k * lanes):
                        frame.emit(r.body)
                    new = folding.element((frame.values[y] for y in r.yields), self.width)
                    state = folding.combine(state, new)
                frame.ahead = None
                sums.store(slot, state)

            self._over_columns(column)

        counted(frame, r.axis, begin, end, 1, row)

    def _tree(self, folding: Folding, sums: Slots, used: ir.Value) -> None:
        """Few lanes follow one another; of more, lane l takes in lane l + half."""
        builder = self.frame.builder
        used, few = few_of(builder, used)

        def one_more(slot: ir.Value) -> None:
            first = builder.urem(slot, constant(self.count))
            sums.store(first, folding.combine(sums.load(first), sums.load(slot)))

        self._over_lanes(constant(1), few, one_more)

        def level(half: ir.Value, pairs: ir.Value) -> None:
            def pair(slot: ir.Value) -> None:
                other = sums.load(builder.add(slot, builder.mul(half, constant(self.count))))
                sums.store(slot, folding.combine(sums.load(slot), other))

            self._over_lanes(constant(0), pairs, pair)

        over_levels(self.frame, used, level)

    def _over_lanes(self, begin: ir.Value, end: ir.Value, body: Callable[[ir.Value], None]) -> None:
        builder = self.frame.builder

        def lane(index: ir.Value, _: list[ir.Value]) -> None:
            first = builder.mul(index, constant(self.count))
            self._over_vectors(lambda v: body(builder.add(first, v)))

        counted(self.frame, "(lane)", begin, end, 1, lane)

    def _over_vectors(self, body: Callable[[ir.Value], None]) -> None:
        """`body` with the number of each vector of the tile."""
        builder = self.frame.builder
        length = builder.add(builder.sub(self.end, self.first), constant(self.width - 1))
        count = builder.lshr(length, constant(self.width.bit_length() - 1))

        def vector(index: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            body(index)
            return ()

        counted(self.frame, "(vector)", constant(0), count, 1, vector)

    def _over_columns(self, body: Callable[[ir.Value], None]) -> None:
        """`body` in the vector context of each vector, earlier results being known."""
        frame, builder = self.frame, self.frame.builder

        def column(index: ir.Value, _: list[ir.Value]) -> None:
            number = builder.lshr(
                builder.sub(index, self.first), constant(self.width.bit_length() - 1)
            )
            mask = step_mask(frame, index, self.end, self.width, self.tail)
            with frame.vectorised(Lanes(self.axis, self.width, mask)):
                for names, slots in self.results:
                    frame.values.update(zip(names, slots.load(number)))
                body(number)

        counted(frame, self.axis, self.first, self.end, self.width, column)
