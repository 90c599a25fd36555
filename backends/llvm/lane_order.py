"""Short reductions in the lanes of a vector loop: every row when its turn in the tree comes.

At most 64 rows, each an accumulator of its own: their tree is walked from its leaves, so that only
a path of it is alive, in registers. Rows with equal r % 8 are one subtree; the eight meet in the
end. Fewer than 8 rows are a chain.

Invariants: the same values as reduce.py gives. Rows are visited out of their order: this is for
rows that a cache holds, `are_read_again` says which those are.
Not here: rows that stream (columns.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from llvmlite import ir

from ...compiler.dims import Dim
from ...compiler.kernel.kernel import Load, Statement
from ...compiler.kernel.monoids import LANES
from .folding import Folding, Slots, State, flat, unflat
from .frame import Frame, constant
from .loops import counted

SUBTREES = 8


def are_read_again(frame: Frame, body: Iterable[Statement], column: str | None) -> bool:
    """True where a loop around reads the same rows time and again."""
    for s in body:
        if isinstance(s, Load) and column is not None:
            used = {n for index in s.index if isinstance(index, Dim) for n in index.symbols()}
            if column in used and not used >= frame.axes.keys():
                return True
    return False


class LaneOrder:
    """At most 64 rows, from 0 to `end`. `element`: the body at a row."""

    def __init__(
        self,
        frame: Frame,
        folding: Folding,
        axis: str,
        end: ir.Value,
        element: Callable[[], State],
    ) -> None:
        self.frame = frame
        self.folding = folding
        self.axis = axis
        self.end = end
        self.element = element

    def folded(self) -> State:
        """The rows' value; the neutral one where there are none."""
        return self.folding.few_or_many(self.end, self._in_order, self._in_subtrees)

    def _in_order(self) -> State:
        neutral = self.folding.neutral()

        def row(_: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            return flat(self.folding.combine(unflat(carried, neutral), self.element()))

        start = flat(neutral)
        return unflat(counted(self.frame, self.axis, constant(0), self.end, 1, row, start), neutral)

    def _in_subtrees(self) -> State:
        frame, folding = self.frame, self.folding
        slots = Slots.of(frame, folding.dtypes, folding.width, SUBTREES)

        def subtree(number: ir.Value, _: list[ir.Value]) -> None:
            slots.store(number, self._tree(number, 0, 1))

        counted(frame, "(subtree)", constant(0), constant(SUBTREES), 1, subtree)
        return folding.halved([slots.load(k) for k in range(SUBTREES)])

    def _tree(self, first: ir.Value, leaf: int, step: int) -> State:
        """The rows leaf, leaf + step, ... of a subtree, the first of which there is."""
        builder = self.frame.builder
        if step == LANES // SUBTREES:
            with self.frame.iteration(self.axis, self._row(first, leaf)):
                return self.element()
        left = self._tree(first, leaf, 2 * step)
        there, after = self.frame.block("there"), self.frame.block("met")
        exists = builder.icmp_signed("<", self._row(first, leaf + step), self.end)
        before = builder.block
        builder.cbranch(exists, there, after)
        builder.position_at_end(there)
        both = self.folding.combine(left, self._tree(first, leaf + step, 2 * step))
        last = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        results = []
        for alone, value in zip(flat(left), flat(both)):
            phi = builder.phi(value.type)
            phi.add_incoming(alone, before)
            phi.add_incoming(value, last)
            results.append(phi)
        return unflat(results, left)

    def _row(self, first: ir.Value, leaf: int) -> ir.Value:
        return self.frame.builder.add(first, constant(leaf * SUBTREES)) if leaf else first
