"""Where the least or greatest element is: the value first, then the first place that has it.

Lanes that carry an index for each value compare and choose twice, and indices are wide. So a
block is folded for its value alone; where that beats what earlier blocks gave, the block, which
the cache still holds, is searched from its beginning.

Invariants: the same value and index as the fold with indices gives: the first of equals, the
first NaN before all. Whether a block beats the earlier ones is decided by the monoid itself.
Not here: what an element is, loops over the free monoids (reduce.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from llvmlite import ir

from ...compiler.kernel.monoids import BLOCK, same
from ...compiler.ops.scalar import ScalarFunction, trace_body
from ...compiler.types import DType
from .folding import Folding, State, flat, unflat
from .frame import Frame, constant
from .loops import counted, mask_below
from .scalar import emit_body
from .types import I1, I64, Lane, intrinsic, widen

Element = Callable[[ir.Value | None], Lane]
TOGETHER = 4  # vectors that are folded side by side


class FirstPlace:
    """An indexed reduction in vectors. `vector`: the value's lanes at the current index, under a
    mask; `single`: the state at the current index."""

    def __init__(
        self,
        frame: Frame,
        axis: str,
        monoid: Folding,
        width: int,
        vector: Element,
        single: Callable[[], State],
    ) -> None:
        self.frame = frame
        self.axis = axis
        self.pairs = monoid
        self.width = width
        self.vector = vector
        self.single = single
        assert monoid.monoid.of_values is not None
        self.values = Folding(frame, monoid.monoid.of_values, monoid.dtypes[:1], width)

    def folded(self, end: ir.Value) -> State:
        """The elements from 0 to `end`; the neutral state if there are none."""
        neutral = self.pairs.neutral()

        def block(begin: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            builder = self.frame.builder
            stop = builder.add(begin, constant(BLOCK))
            stop = intrinsic(builder, "llvm.smin", stop.type, [stop, end], stop.type)
            best = unflat(carried, neutral)
            return flat(self._taken(best, self._value(begin, stop), begin, stop))

        start = flat(neutral)
        last = counted(
            self.frame, "(block)", constant(0), end, BLOCK, block, start, work=BLOCK
        )  # fmt: skip
        return unflat(last, neutral)

    def _value(self, begin: ir.Value, stop: ir.Value) -> State:
        """The value of a block: a scalar."""
        frame, values, width = self.frame, self.values, self.width
        builder, neutral = frame.builder, values.neutral()
        stride = TOGETHER * width
        length = builder.and_(builder.sub(stop, begin), constant(-stride))
        middle = builder.add(begin, length)

        def whole(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            made: list[ir.Value] = []
            for copy, value in enumerate(carried):
                with frame.iteration(self.axis, index, copy * width):
                    made += flat(values.combine(unflat([value], neutral), [self.vector(None)]))
            return made

        def rest(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            state = unflat(carried, neutral)
            mask = mask_below(frame, index, stop, width)
            new = values.combine(state, [self.vector(mask)])
            return flat(values.select(mask, new, state))

        lanes = counted(frame, self.axis, begin, middle, stride, whole, flat(neutral) * TOGETHER)
        first = flat(values.halved([unflat([lane], neutral) for lane in lanes]))
        made = counted(frame, self.axis, middle, stop, width, rest, first)
        return values.over_lanes(unflat(made, neutral))

    def _taken(self, best: State, value: State, begin: ir.Value, stop: ir.Value) -> State:
        """The better of what there is and a block's value, with its place."""
        builder = self.frame.builder
        here = Lane(best[1].dtype, (begin,))
        winner = self.pairs.combine(best, [value[0], here])
        beats = builder.icmp_signed("==", winner[1].value, begin)
        return self.pairs.either(beats, lambda: self.found(value[0], begin, stop), lambda: best)

    def found(self, value: Lane, begin: ir.Value, stop: ir.Value) -> State:
        """The state at the first place that has the value: several vectors at once while none
        of them has it, then one at a time."""
        builder, width = self.frame.builder, self.width
        wanted = widen(builder, value, width)
        near = self._looked(begin, stop, TOGETHER, lambda k, at: self._hits(wanted, at, k, None))

        def last_hits(_: int, at: ir.Value) -> ir.Value:
            return self._hits(wanted, at, 0, mask_below(self.frame, at, stop, width))

        place = self._looked(near[0], stop, 1, last_hits)
        lane = intrinsic(
            builder, "llvm.cttz", place[1].type, [place[1], ir.Constant(I1, 0)], place[1].type
        )  # fmt: skip
        if width < 64:
            lane = builder.zext(lane, I64)
        index = builder.add(place[0], lane)
        # Beyond the end only if the elements change meanwhile.
        last = builder.sub(stop, constant(1))
        index = intrinsic(builder, "llvm.smin", I64, [index, last], I64)
        with self.frame.iteration(self.axis, index):
            return self.single()

    def _hits(self, wanted: Lane, at: ir.Value, copy: int, mask: ir.Value | None) -> ir.Value:
        """Which lanes have the wanted value, as bits."""
        builder = self.frame.builder
        with self.frame.iteration(self.axis, at, copy * self.width):
            lanes = [self.vector(mask), wanted]
            (hit,) = emit_body(self.frame.site, _equal(wanted.dtype), lanes)
        value = hit.value if mask is None else builder.and_(hit.value, mask)
        return builder.bitcast(value, ir.IntType(self.width))

    def _looked(
        self,
        begin: ir.Value,
        stop: ir.Value,
        times: int,
        hits: Callable[[int, ir.Value], ir.Value],
    ) -> tuple[ir.Value, ir.Value]:
        """The first index from `begin` on, in steps of so many vectors, with a hit, and the hits;
        where there is none, the first that leaves too little for a step (of one vector: any)."""
        builder = self.frame.builder
        step = constant(times * self.width)
        bits = ir.IntType(self.width)
        before, top, look, onward, done = (
            builder.block, *map(self.frame.block, ("near", "look", "onward", "done")),
        )  # fmt: skip
        builder.branch(top)
        builder.position_at_end(top)
        index, found = builder.phi(I64), builder.phi(bits)
        room = builder.add(index, step if times > 1 else constant(1))
        builder.cbranch(builder.icmp_signed("<=", room, stop), look, done)
        builder.position_at_end(look)
        made = [hits(k, index) for k in range(times)]
        some = made[0]
        for other in made[1:]:
            some = builder.or_(some, other)
        looked = builder.block
        builder.cbranch(builder.icmp_unsigned("==", some, ir.Constant(bits, 0)), onward, done)
        builder.position_at_end(onward)
        following = builder.add(index, step)
        builder.branch(top)
        index.add_incoming(begin, before)
        index.add_incoming(following, onward)
        found.add_incoming(ir.Constant(bits, 0), before)
        found.add_incoming(ir.Constant(bits, 0), onward)
        builder.position_at_end(done)
        result = builder.phi(bits)
        result.add_incoming(found, top)
        result.add_incoming(some, looked)
        return index, result


@cache
def _equal(dtype: DType) -> ScalarFunction:
    return trace_body(lambda a, b: (same(a, b),), (dtype, dtype))
