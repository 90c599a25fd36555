"""The tree over blocks of a reduction, streamed: a stack of states merged like a binary counter.

Invariants: as `tree` in monoids.py; the stack lies in the function's frame.
"""

from __future__ import annotations

from llvmlite import ir

from .folding import Folding, Slots, State, flat, unflat
from .frame import Frame, constant
from .types import I64

_DEPTH = 64


class Counter:
    """A stack of partial results and how many elements were pushed."""

    def __init__(self, frame: Frame, folding: Folding) -> None:
        self.frame = frame
        self.folding = folding
        self.slots = Slots(frame, folding.dtypes, folding.width, _DEPTH)
        self.depth = frame.stack_slot(I64)
        self.count = frame.stack_slot(I64)

    def reset(self) -> None:
        """Forget everything."""
        self.frame.builder.store(constant(0), self.depth)
        self.frame.builder.store(constant(0), self.count)

    def push(self, element: State) -> None:
        """Take the next element in, merging equal ranks."""
        builder = self.frame.builder
        count, depth = (builder.load(m, typ=I64) for m in (self.count, self.depth))
        builder.store(builder.add(count, constant(1)), self.count)
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
        merged = self.folding.combine(self.slots.load(below), state)
        pairs = zip([rank, top, *phis], [builder.lshr(rank, constant(1)), below, *flat(merged)])
        for phi, value in pairs:
            phi.add_incoming(value, builder.block)
        builder.branch(head)
        builder.position_at_end(done)
        self.slots.store(top, state)
        builder.store(builder.add(top, constant(1)), self.depth)

    def result(self) -> State:
        """All elements folded; the empty result if there was none."""
        builder = self.frame.builder
        depth = builder.load(self.depth, typ=I64)
        empty = self.folding.empty()
        before = builder.block
        start, head, merge, done = map(self.frame.block, ("last", "fold", "merge", "folded"))
        builder.cbranch(builder.icmp_signed("==", depth, constant(0)), done, start)
        builder.position_at_end(start)
        last = builder.sub(depth, constant(1))
        first = self.slots.load(last)
        builder.branch(head)
        builder.position_at_end(head)
        top = self._phi(last, start)
        phis = [self._phi(value, start) for value in flat(first)]
        state = unflat(phis, first)
        builder.cbranch(builder.icmp_signed(">", top, constant(0)), merge, done)
        builder.position_at_end(merge)
        below = builder.sub(top, constant(1))
        merged = self.folding.combine(self.slots.load(below), state)
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

    def _phi(self, value: ir.Value, block: ir.Block) -> ir.PhiInstr:
        phi = self.frame.builder.phi(value.type)
        phi.add_incoming(value, block)
        return phi
