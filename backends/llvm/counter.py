"""The tree over blocks of a reduction, streamed: a stack of states merged like a binary counter.

Invariants: as `tree` in monoids.py; the stack lies in the function's frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from .folding import Folding, Slots, State, flat, unflat
from .frame import Frame, constant
from .types import I64

_DEPTH = 64
_COLUMN_DEPTH = 24  # of stacks side by side: 2**24 blocks
ZERO = constant(0)


class Counter:
    """Stacks of partial results, `columns` of them, and how many elements each was given.

    The methods take the number of the column; one column has number 0.
    """

    def __init__(
        self, folding: Folding, columns: int, slots: Slots, depths: ir.Value, counts: ir.Value
    ) -> None:
        self.frame = folding.frame
        self.folding = folding
        self.columns = columns
        self.slots = slots
        self.depths = depths
        self.counts = counts

    @classmethod
    def of(cls, frame: Frame, folding: Folding, columns: int = 1) -> Counter:
        """New stacks."""
        depth = (_DEPTH if columns == 1 else _COLUMN_DEPTH) * columns
        slots = Slots.of(frame, folding.dtypes, folding.width, depth)
        words = [frame.stack_slot(I64, columns) for _ in range(2)]
        return cls(folding, columns, slots, *words)

    def reset(self, column: ir.Value = ZERO) -> None:
        """Forget everything."""
        self.frame.builder.store(constant(0), self._word(self.depths, column))
        self.frame.builder.store(constant(0), self._word(self.counts, column))

    def push(self, element: State, column: ir.Value = ZERO) -> None:
        """Take the next element in, merging equal ranks."""

        def emit(there: Counter, args: Sequence[ir.Value]) -> State:
            there._push(self.folding.states_of(args[1:], self.folding.width)[0], args[0])
            return []

        self._piece("push", [column, *flat(element)], emit)

    def result(self, column: ir.Value = ZERO) -> State:
        """All elements folded; the empty result if there was none."""
        made = self._piece("result", [column], lambda there, args: there._result(args[0]))
        return self.folding.states_of(made, self.folding.width)[0]

    def _piece(
        self,
        name: str,
        args: list[ir.Value],
        emit: Callable[[Counter, Sequence[ir.Value]], State],
    ) -> list[ir.Value]:
        """`emit` on these stacks, wherever it is emitted."""
        memory = [self.depths, self.counts, *self.slots.places]

        def there(frame: Frame, values: Sequence[ir.Value]) -> list[ir.Value]:
            folding = self.folding.at(frame)
            depths, counts, *places = values[: len(memory)]
            slots = Slots(frame, folding.dtypes, folding.width, places)
            counter = Counter(folding, self.columns, slots, depths, counts)
            return flat(emit(counter, values[len(memory) :]))

        key = ("counter", name, self.folding.key, self.columns)
        return self.frame.piece(key, [*memory, *args], there)

    def _push(self, element: State, column: ir.Value) -> None:
        builder = self.frame.builder
        count_word, depth_word = (self._word(m, column) for m in (self.counts, self.depths))
        count, depth = (builder.load(w, typ=I64) for w in (count_word, depth_word))
        builder.store(builder.add(count, constant(1)), count_word)
        before = builder.block
        head, merge, done = map(self.frame.block, ("carry", "merge", "carried"))
        builder.branch(head)
        builder.position_at_end(head)
        rank, top = self._phi(count, before), self._phi(depth, before)
        phis = [self._phi(value, before) for value in flat(element)]
        state = unflat(phis, element)
        odd = builder.trunc(rank, ir.IntType(1))
        builder.cbranch(odd, merge, done)
        builder.position_at_end(merge)
        below = builder.sub(top, constant(1))
        merged = self.folding.combine(self.slots.load(self._slot(below, column)), state)
        pairs = zip([rank, top, *phis], [builder.lshr(rank, constant(1)), below, *flat(merged)])
        for phi, value in pairs:
            phi.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(done)
        self.slots.store(self._slot(top, column), state)
        builder.store(builder.add(top, constant(1)), depth_word)

    def _result(self, column: ir.Value) -> State:
        builder = self.frame.builder
        depth = builder.load(self._word(self.depths, column), typ=I64)
        empty = self.folding.empty()
        before = builder.block
        start, head, merge, done = map(self.frame.block, ("last", "fold", "merge", "folded"))
        builder.cbranch(builder.icmp_signed("==", depth, constant(0)), done, start)
        builder.position_at_end(start)
        last = builder.sub(depth, constant(1))
        first = self.slots.load(self._slot(last, column))
        builder.branch(head)
        builder.position_at_end(head)
        top = self._phi(last, start)
        phis = [self._phi(value, start) for value in flat(first)]
        state = unflat(phis, first)
        builder.cbranch(builder.icmp_signed(">", top, constant(0)), merge, done)
        builder.position_at_end(merge)
        below = builder.sub(top, constant(1))
        merged = self.folding.combine(self.slots.load(self._slot(below, column)), state)
        for phi, value in zip([top, *phis], [below, *flat(merged)]):
            phi.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(done)
        results = []
        for phi, value in zip(phis, flat(empty)):
            result = self._phi(value, before)
            result.add_incoming(phi, head)
            results.append(result)
        return unflat(results, empty)

    def _word(self, words: ir.Value, column: ir.Value) -> ir.Value:
        if isinstance(column, ir.Constant) and column.constant == 0:
            return words
        return self.frame.builder.gep(words, [column], source_etype=I64)

    def _slot(self, level: ir.Value, column: ir.Value) -> ir.Value:
        if self.columns == 1:
            return level
        return self.frame.builder.add(self.frame.builder.mul(level, constant(self.columns)), column)

    def _phi(self, value: ir.Value, block: ir.Block) -> ir.PhiInstr:
        phi = self.frame.builder.phi(value.type)
        phi.add_incoming(value, block)
        return phi
