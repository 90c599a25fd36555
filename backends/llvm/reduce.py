"""Reductions as code, in the one order that monoids.py defines, or freely where none is asked.

Strict: a block of 4,096 elements goes to 64 lanes. A reduction in vectors of W elements keeps
64 / W accumulators; one inside a vector loop (column sums) keeps 64 accumulators of its lanes in
memory and streams rows. Blocks meet in a binary counter.
Free: integers, index-carrying monoids and contractions, whose value no order changes or whose
order is not promised: a few accumulators, no blocks.

Invariants: lanes without elements hold the neutral state, which is exact.
Not here: scans (scan.py), column reductions (columns.py), matrix products (gemm).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ...compiler.kernel.kernel import Reduce
from ...compiler.kernel.monoids import BLOCK, FEW, LANES, fold
from .bodies import weight_of_block
from .counter import Counter
from .first_place import FirstPlace
from .folding import Folding, Slots, State, flat, is_free, unflat
from .frame import Frame, Lanes, constant
from .indices import scalar_size
from .invariants import split_invariant
from .lane_order import LaneOrder, are_read_again
from .loops import counted, mask_below, step_mask, tail_bits, work_of
from .types import intrinsic, part_count

_UNROLLED = 16  # elements of a reduction that is written out
_SIMPLE = 8  # words of a body that is worth a copy for each accumulator of a subtree
_HEAVY = 24  # words of a body that is not copied for each accumulator
_FREE_ACCUMULATORS = 4
_ROWS_AHEAD = 8  # rows of memory asked for early where a loop steps from row to row


def emit_reduce(frame: Frame, s: Reduce) -> None:
    """Fold a body's yields over an axis."""
    vector = s.vector if s.vector > 1 and frame.lanes.width == 1 else 1
    width = vector if vector > 1 else frame.lanes.width
    reduction = Reduction(frame, s, vector, width)
    if isinstance(s.extent, int) and 0 < s.extent <= _UNROLLED and vector == 1:
        state = reduction.unrolled(s.extent)
    elif s.tree:
        state = reduction.over_blocks_only()
    elif reduction.is_searched():
        state = reduction.searched()
    elif s.loose or is_free(reduction.folding):
        state = reduction.free()
    else:
        state = reduction.strict()
    frame.values.update(zip(s.names, state))


class Reduction:
    """One `Reduce` at its place."""

    def __init__(self, frame: Frame, s: Reduce, vector: int, width: int) -> None:
        self.frame = frame
        self.s = s
        self.vector = vector
        self.width = width
        self.folding = Folding(frame, s.monoid, s.dtypes, width)
        self.scalars = Folding(frame, s.monoid, s.dtypes, 1 if vector > 1 else width)
        self.moved, self.kept = split_invariant(s.body, s.axis)
        self.work = work_of(frame, self.kept)
        self.light = self.work is None and weight_of_block(self.kept, frame.dtypes) <= _HEAVY

    def element(self, mask: ir.Value | None) -> State:
        """The body at the current index."""
        frame = self.frame
        if self.vector == 1:
            frame.emit(self.kept)
        else:
            with frame.vectorised(Lanes(self.s.axis, self.vector, mask)):
                frame.emit(self.kept)
        return self.folding.element((frame.values[y] for y in self.s.yields), self.width)

    def unrolled(self, extent: int) -> State:
        """A few elements, written out."""
        self.frame.emit(self.moved)
        elements = []
        for index in range(extent):
            with self.frame.iteration(self.s.axis, constant(index)):
                elements.append(self.element(None))
        result: State = fold(self.folding.combine, elements)
        return result

    def over_blocks_only(self) -> State:
        """Elements that are blocks' results."""
        frame = self.frame
        counter = Counter.of(frame, self.folding)
        counter.reset()

        def step(index: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            counter.push(self.element(None))
            return ()

        counted(
            frame, self.s.axis, constant(0), scalar_size(frame, self.s.extent), 1, step,
            prepare=lambda: frame.emit(self.moved), work=self.work,
        )  # fmt: skip
        return counter.result()

    def is_searched(self) -> bool:
        """Whether elements are so light that computing them twice beats carrying indices."""
        indexed = self.folding.monoid.indexed and len(self.s.dtypes) == 2
        return indexed and self.vector > 1 and self.light and part_count(self.s.dtypes[0]) == 1

    def searched(self) -> State:
        """An index, found after the value."""
        self.frame.emit(self.moved)
        return self.places().folded(scalar_size(self.frame, self.s.extent))

    def places(self) -> FirstPlace:
        """What finds the index."""
        frame, s = self.frame, self.s

        def single() -> State:
            frame.emit(self.kept)
            return self.scalars.element((frame.values[y] for y in s.yields), 1)

        vector = lambda mask: self.element(mask)[0]
        return FirstPlace(frame, s.axis, self.scalars, self.vector, vector, single)

    def free(self) -> State:
        """A few accumulators, then the rest one vector at a time."""
        frame, folding = self.frame, self.folding
        count = _FREE_ACCUMULATORS if self.light else 1
        stride = self.vector * count
        end = scalar_size(frame, self.s.extent)
        neutral = folding.neutral()
        prepare = lambda: frame.emit(self.moved)
        middle = frame.builder.and_(end, constant(-stride))

        def whole(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            states = self._split(carried, count, neutral)
            for copy in range(count):
                with frame.iteration(self.s.axis, index, copy * self.vector):
                    states[copy] = folding.combine(states[copy], self.element(None))
            return [value for state in states for value in flat(state)]

        def rest(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            state = unflat(carried, neutral)
            mask = self._mask(index, end)
            return flat(folding.select(mask, folding.combine(state, self.element(mask)), state))

        carried = counted(
            frame, self.s.axis, constant(0), middle, stride, whole, flat(neutral) * count,
            prepare, self.work,
        )  # fmt: skip
        states = self._split(carried, count, neutral)
        first = counted(
            frame, self.s.axis, middle, end, self.vector, rest, flat(states[0]), prepare,
            self.work,
        )  # fmt: skip
        states[0] = unflat(first, neutral)
        total = self._tree(states) if self.vector > 1 else _chain(folding, states)
        return self._or_empty(end, total)

    def strict(self) -> State:
        """Blocks in their order; one block needs no counter."""
        frame, extent = self.frame, self.s.extent
        if self._is_cached():
            return self._short_or_long()
        if isinstance(extent, int) and 0 < extent <= BLOCK:
            frame.emit(self.moved)
            return self._block(constant(0), constant(extent), extent % LANES == 0)
        return self._blocks(lambda: frame.emit(self.moved))

    def _blocks(self, prepare: Callable[[], None] | None = None) -> State:
        """Any number of blocks."""
        frame, extent = self.frame, self.s.extent
        counter = Counter.of(frame, self.scalars)
        counter.reset()
        total = scalar_size(frame, extent)
        whole = isinstance(extent, int) and extent % LANES == 0

        def block(begin: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            end = frame.builder.add(begin, constant(BLOCK))
            end = intrinsic(frame.builder, "llvm.smin", end.type, [end, total], end.type)
            counter.push(self._block(begin, end, whole))
            return ()

        counted(
            frame, "(block)", constant(0), total, BLOCK, block,
            prepare=prepare, work=BLOCK,
        )  # fmt: skip
        return counter.result()

    def _block(self, begin: ir.Value, end: ir.Value, whole: bool) -> State:
        if self.vector == 1:
            return self._block_by_rows(begin, end)
        count = LANES // self.vector
        if self.light:
            return self._block_in_registers(begin, end, count, whole)
        slots = Slots.of(self.frame, self.folding.dtypes, self.width, count)
        for k in range(count):
            slots.store(k, self.folding.neutral())
        self._masked_steps(begin, end, count, slots)
        return self._of_lanes([slots.load(k) for k in range(count)], begin, end)

    def _tree(self, states: list[State]) -> State:
        return self.folding.tree(states)

    def _is_cached(self) -> bool:
        """Whether a cache holds the rows, so that short reductions may visit them in any order."""
        frame = self.frame
        if self.width == 1 or self.work is not None or len(self.folding.dtypes) > 1:
            return False
        simple = weight_of_block(self.kept, frame.dtypes) <= _SIMPLE
        return simple and are_read_again(frame, self.kept, frame.lanes.axis)

    def _short_or_long(self) -> State:
        """Up to 64 rows in registers, more through memory."""
        frame, folding = self.frame, self.folding
        frame.emit(self.moved)
        end = scalar_size(frame, self.s.extent)
        element = lambda: self.element(None)
        short = LaneOrder(frame, folding, self.s.axis, end, element).folded
        few = frame.builder.icmp_signed("<=", end, constant(LANES))
        return self._or_empty(end, folding.either(few, short, self._blocks))

    def _of_lanes(self, states: list[State], begin: ir.Value, end: ir.Value) -> State:
        length = end if isinstance(end, ir.Constant) else self.frame.builder.sub(end, begin)
        return self.folding.block(states, length)

    def _block_in_registers(self, begin: ir.Value, end: ir.Value, count: int, whole: bool) -> State:
        """Whole groups of 64 elements in registers; the rest of a longer body through memory."""
        frame, folding = self.frame, self.folding
        neutral = folding.neutral()

        def group(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            states = self._split(carried, count, neutral)
            for k in range(count):
                with frame.iteration(self.s.axis, index, k * self.vector):
                    states[k] = folding.combine(states[k], self.element(None))
            return [value for state in states for value in flat(state)]

        middle = frame.builder.and_(end, constant(-LANES))
        carried = counted(
            frame, self.s.axis, begin, middle, LANES, group, flat(neutral) * count, work=self.work
        )
        states = self._split(carried, count, neutral)
        if whole:
            return self._tree(states)
        if weight_of_block(self.kept, frame.dtypes) <= _SIMPLE:
            return self._of_lanes(self._masked_group(states, middle, end), begin, end)
        slots = Slots.of(frame, folding.dtypes, self.width, count)
        for k in range(count):
            slots.store(k, states[k])
        self._masked_steps(middle, end, count, slots)
        return self._of_lanes([slots.load(k) for k in range(count)], begin, end)

    def _masked_group(self, states: list[State], begin: ir.Value, end: ir.Value) -> list[State]:
        """The last elements, fewer than 64, each vector into its accumulator."""
        frame, folding = self.frame, self.folding
        before = [lane for state in states for lane in state]

        def group() -> State:
            found: State = []
            for k, state in enumerate(states):
                first = frame.builder.add(begin, constant(k * self.vector))
                mask = mask_below(frame, first, end, self.vector)
                with frame.iteration(self.s.axis, begin, k * self.vector):
                    new = folding.combine(state, self.element(mask))
                found += folding.select(mask, new, state)
            return found

        some = frame.builder.icmp_signed("<", begin, end)
        after = folding.either(some, group, lambda: before)
        size = len(after) // len(states)
        return [after[k * size : (k + 1) * size] for k in range(len(states))]

    def _masked_steps(self, begin: ir.Value, end: ir.Value, count: int, slots: Slots) -> None:
        """One vector at a time into the accumulator of its lanes, the last one masked."""
        frame, folding = self.frame, self.folding
        tail = tail_bits(frame, begin, end, self.vector)

        def step(index: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            mask = step_mask(frame, index, end, self.vector, tail)
            shift = constant(self.vector.bit_length() - 1)
            slot = frame.builder.and_(frame.builder.lshr(index, shift), constant(count - 1))
            new = self.element(mask)
            old = slots.load(slot)
            slots.store(slot, folding.select(mask, folding.combine(old, new), old))
            return ()

        counted(frame, self.s.axis, begin, end, self.vector, step, work=self.work)

    def _block_by_rows(self, begin: ir.Value, end: ir.Value) -> State:
        """64 accumulators in memory, row r to accumulator r % 64."""
        frame, folding = self.frame, self.folding
        builder = frame.builder
        slots = Slots.of(frame, folding.dtypes, self.width, LANES)
        length = builder.sub(end, begin)
        used = intrinsic(builder, "llvm.smin", length.type, [length, constant(LANES)], length.type)
        _clear(folding, slots, used)

        def row(index: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            frame.ahead = (self.s.axis, _ROWS_AHEAD)
            new = self.element(None)
            frame.ahead = None
            slot = builder.and_(index, constant(LANES - 1))
            slots.store(slot, folding.combine(slots.load(slot), new))
            return ()

        counted(frame, self.s.axis, begin, end, 1, row, work=self.work)
        return _of_slots(folding, slots, used)

    def _mask(self, index: ir.Value, end: ir.Value) -> ir.Value | None:
        if self.vector == 1:
            return None
        return mask_below(self.frame, index, end, self.vector)

    def _split(self, values: Sequence[ir.Value], count: int, like: State) -> list[State]:
        size = len(values) // count
        return [unflat(values[k * size : (k + 1) * size], like) for k in range(count)]

    def _or_empty(self, end: ir.Value, state: State) -> State:
        if self.folding.monoid.empty is None:
            return state
        builder = self.frame.builder
        none = builder.icmp_signed("==", end, constant(0))
        return self.scalars.select(none, self.scalars.empty(), state)


def _clear(folding: Folding, slots: Slots, used: ir.Value) -> None:
    """The neutral state in the first `used` of 64 lanes in memory."""

    def emit(frame: Frame, args: Sequence[ir.Value]) -> list[ir.Value]:
        there = Slots(frame, folding.dtypes, folding.width, args[1:])
        neutral = folding.at(frame).neutral()
        counted(
            frame, "(lane)", constant(0), args[0], 1,
            lambda lane, _: there.store(lane, neutral),
        )  # fmt: skip
        return []

    folding.frame.piece(("clear", folding.key), [used, *slots.places], emit)


def _of_slots(folding: Folding, slots: Slots, used: ir.Value) -> State:
    """The value of the first `used` of 64 lanes in memory: a chain of few, a tree of more."""

    def emit(frame: Frame, args: Sequence[ir.Value]) -> list[ir.Value]:
        here = folding.at(frame)
        there = Slots(frame, folding.dtypes, folding.width, args[1:])
        many, few = few_of(frame.builder, args[0])

        def add(lane: ir.Value | int, other: ir.Value) -> None:
            there.store(lane, here.combine(there.load(lane), there.load(other)))

        def level(half: ir.Value, pairs: ir.Value) -> None:
            counted(
                frame, "(pair)", constant(0), pairs, 1,
                lambda lane, _: add(lane, frame.builder.add(lane, half)),
            )  # fmt: skip

        counted(frame, "(few)", constant(1), few, 1, lambda lane, _: add(0, lane))
        over_levels(frame, many, level)
        return flat(there.load(0))

    made = folding.frame.piece(("of slots", folding.key), [used, *slots.places], emit)
    return folding.states_of(made, folding.width)[0]


def few_of(builder: ir.IRBuilder, used: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Where lanes are in memory: how many meet in a tree, and how many follow one another."""
    small = builder.icmp_signed("<", used, constant(FEW))
    one = constant(1)
    return builder.select(small, one, used), builder.select(small, used, one)


def over_levels(frame: Frame, used: ir.Value, level: Callable[[ir.Value, ir.Value], None]) -> None:
    """The tree over the first `used` of 64 lanes in memory, as one loop: `level(half, pairs)` adds
    lane l + half to lane l, for the first `pairs` lanes."""
    builder = frame.builder

    def step(number: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
        half = builder.lshr(constant(LANES // 2), number)
        above = builder.sub(carried[0], half)
        level(half, intrinsic(builder, "llvm.smin", above.type, [above, half], above.type))
        return [intrinsic(builder, "llvm.smin", half.type, [carried[0], half], half.type)]

    counted(frame, "(level)", constant(0), constant(LANES.bit_length() - 1), 1, step, [used])


def _chain(folding: Folding, states: list[State]) -> State:
    total = states[0]
    for state in states[1:]:
        total = folding.combine(total, state)
    return total
