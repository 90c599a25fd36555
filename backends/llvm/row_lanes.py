"""What a row leaves before its last lanes are folded, and the fold of many rows' lanes at once.

Invariants: `over_lanes` of a row's state is the row's value, as reduce.py gives it; of a row that
has no lanes (it is short, or of several blocks), the value stands in the first lane and the others
change nothing.
Not here: which rows (rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ...compiler.kernel.kernel import Reduce
from ...compiler.kernel.monoids import BLOCK, LANES
from .control import poll
from .counter import Counter
from .folding import Folding, State, flat, is_free, unflat
from .frame import Frame, constant
from .indices import scalar_size
from .loops import counted, mask_below
from .reduce import Reduction
from .types import I32, Lane, intrinsic


class RowLanes(Reduction):
    """A reduction whose result is one vector."""

    def __init__(self, frame: Frame, r: Reduce) -> None:
        super().__init__(frame, r, r.vector, r.vector)

    def state(self) -> State:
        """The lanes; those of no elements are neutral."""
        return self.free() if is_free(self.folding) else self.strict()

    def longest(self) -> int:
        """Of how many elements a row may be that `short` takes."""
        return max(LANES, self.vector) if self.light else self.vector

    def short(self) -> State:
        """The lanes of a row that is as short as `longest` says, and long enough to have lanes:
        as many vectors as there are, each computed once."""
        frame, folding = self.frame, self.folding
        end = scalar_size(frame, self.s.extent)
        neutral = folding.neutral()
        frame.emit(self.moved)
        states: list[State] = []

        def more() -> State:
            for k in range(len(states), max(2 * len(states), 1)):
                mask = mask_below(frame, constant(k * self.vector), end, self.vector)
                with frame.iteration(self.s.axis, constant(k * self.vector)):
                    states.append(folding.select(mask, self.element(mask), neutral))
            made = list(states)
            if len(made) * self.vector >= self.longest():
                return folding.halved(made)
            there = frame.builder.icmp_signed("<=", end, constant(len(made) * self.vector))
            return folding.either(there, lambda: folding.halved(made), more)

        return more()

    def _tree(self, states: list[State]) -> State:
        return self.folding.halved(states)

    def _or_empty(self, end: ir.Value, state: State) -> State:
        return state

    def _of_lanes(self, states: list[State], begin: ir.Value, end: ir.Value) -> State:
        folding = self.folding
        length = end if isinstance(end, ir.Constant) else self.frame.builder.sub(end, begin)
        return folding.few_or_many(
            length, lambda: self._alone(folding.in_order(states)), lambda: folding.halved(states)
        )

    def _blocks(self, prepare: Callable[[], None] | None = None) -> State:
        """One block as lanes; of more, the value."""
        frame, builder, folding = self.frame, self.frame.builder, self.folding
        counter = Counter.of(frame, self.scalars)
        counter.reset()
        total = scalar_size(frame, self.s.extent)
        many = builder.icmp_signed(">", total, constant(BLOCK))
        whole = isinstance(self.s.extent, int) and self.s.extent % LANES == 0
        neutral = folding.neutral()

        def block(begin: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            end = builder.add(begin, constant(BLOCK))
            end = intrinsic(builder, "llvm.smin", end.type, [end, total], end.type)
            state = self._block(begin, end, whole)
            with builder.if_then(many, likely=False):
                counter.push(folding.over_lanes(state))
                poll(frame, constant(BLOCK))
            return flat(state)

        start = flat(neutral)
        last = counted(frame, "(block)", constant(0), total, BLOCK, block, start, prepare)
        state = unflat(last, neutral)
        return folding.either(many, lambda: self._alone(counter.result()), lambda: state)

    def _alone(self, scalar: State) -> State:
        builder = self.frame.builder
        first = ir.Constant(I32, 0)
        return [
            Lane(
                lane.dtype,
                tuple(builder.insert_element(p, q, first) for p, q in zip(lane.parts, value.parts)),
                lane.width,
            )
            for lane, value in zip(self.folding.neutral(), scalar)
        ]


def folded_together(folding: Folding, states: list[State]) -> State:
    """The values of as many rows as a row has lanes, in lanes: row k in lane k."""
    width = folding.width

    def emit(frame: Frame, args: Sequence[ir.Value]) -> list[ir.Value]:
        here = folding.at(frame)
        rows, half = here.states_of(args, width), width // 2
        while len(rows) > 1:
            pairs = zip(rows[::2], rows[1::2])
            rows = [
                here.combine(_picked(frame, a, b, half, 0), _picked(frame, a, b, half, half))
                for a, b in pairs
            ]
            half //= 2
        return flat(rows[0])

    args = [value for state in states for value in flat(state)]
    made = folding.frame.piece(("rows", folding.key), args, emit)
    return folding.states_of(made, width)[0]


def _picked(frame: Frame, a: State, b: State, half: int, begin: int) -> State:
    """Of each group of 2 * half lanes of a, then of b, the half from `begin` on."""
    width = a[0].width
    order = [g + begin + k for g in range(0, 2 * width, 2 * half) for k in range(half)]
    mask = ir.Constant(ir.VectorType(I32, width), [ir.Constant(I32, lane) for lane in order])
    shuffle = frame.builder.shuffle_vector
    return [
        Lane(x.dtype, tuple(shuffle(p, q, mask) for p, q in zip(x.parts, y.parts)), width)
        for x, y in zip(a, b)
    ]
