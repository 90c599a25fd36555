"""States of a reduction as LLVM values: neutral, combined, in memory, folded over lanes.

A state is a list of lanes: one per name of the `Reduce`. A monoid of one part folds each name on
its own; one of two parts folds a value and its index together.

Not here: in which order elements are folded (reduce.py, scan.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

from llvmlite import ir

from ...compiler.kernel.monoids import FEW, named
from ...compiler.types import DType, real_part_of
from .bodies import combine_of
from .conversions import convert
from .frame import Frame, constant
from .scalar import constant_lane, emit_body
from .types import I32, Lane, any_lane, invert, part_count, register_type, widen

State = list[Lane]


class Folding:
    """One monoid over the given dtypes, at one width of lanes."""

    def __init__(self, frame: Frame, monoid: str, dtypes: Sequence[DType], width: int) -> None:
        self.frame = frame
        self.monoid = named(monoid)
        self.dtypes = tuple(dtypes)
        self.width = width

    @property
    def key(self) -> tuple[object, ...]:
        """What code for states depends on."""
        return self.monoid.name, self.dtypes, self.width

    def at(self, frame: Frame) -> Folding:
        """The same at another place."""
        return Folding(frame, self.monoid.name, self.dtypes, self.width)

    def neutral(self) -> State:
        """The state that changes nothing."""
        return self._constants(self.monoid.neutral)

    def empty(self) -> State:
        """The result of no elements (anything where that is an error)."""
        return self._constants(self.monoid.empty or self.monoid.neutral)

    def element(self, lanes: Iterable[Lane], width: int) -> State:
        """Yielded values as a state: in the folded dtype, one per lane."""
        site = self.frame.site
        state = []
        for lane, dtype in zip(lanes, self.dtypes):
            if lane.dtype is not dtype:
                lane = Lane(dtype, (convert(site, lane.dtype, dtype, lane.value),), lane.width)
            state.append(widen(site.builder, lane, width))
        return state

    def combine(self, a: State, b: State) -> State:
        """a then b."""
        arity = self.monoid.arity
        result: State = []
        for at in range(0, len(a), arity):
            first, second = a[at : at + arity], b[at : at + arity]
            body = combine_of(self.monoid.name, tuple(lane.dtype for lane in first))
            result += emit_body(self.frame.site, body, [*first, *second])
        return result

    def next(self, turn: ir.Value, state: State, element: State) -> State:
        """What a fold in order has after its `turn`-th element."""
        made = self.combine(state, element)
        if not self.monoid.starts:
            return made
        first = self.frame.builder.icmp_signed("==", turn, constant(0))
        return self.select(first, element, made)

    def states_of(self, values: Sequence[ir.Value], width: int) -> list[State]:
        """States of `width` lanes from their LLVM values."""
        rest = iter(values)
        size = sum(map(part_count, self.dtypes))
        return [
            [Lane(d, tuple(next(rest) for _ in range(part_count(d))), width) for d in self.dtypes]
            for _ in range(len(values) // size)
        ]

    def select(self, mask: ir.Value | None, a: State, b: State) -> State:
        """a in the lanes of `mask` (None: everywhere), else b."""
        if mask is None:
            return a
        select = self.frame.builder.select
        return [
            Lane(x.dtype, tuple(select(mask, p, q) for p, q in zip(x.parts, y.parts)), x.width)
            for x, y in zip(a, b)
        ]

    def over_lanes(self, state: State) -> State:
        """The tree over the lanes of a vector: lane l takes in lane l + half."""
        width = state[0].width
        if self.monoid.absorbing is not None and width > 1:
            return [self._any_lane(lane, self.monoid.absorbing) for lane in state]
        while width > 1:
            half = width // 2
            state = self.combine(self._slice(state, 0, half), self._slice(state, half, half))
            width = half
        return state

    def tree(self, states: list[State]) -> State:
        """The tree over accumulators, then over their lanes."""

        def emit(frame: Frame, args: Sequence[ir.Value]) -> list[ir.Value]:
            here = self.at(frame)
            return flat(here.over_lanes(here.halved(here.states_of(args, self.width))))

        args = [value for state in states for value in flat(state)]
        return self.states_of(self.frame.piece(("tree", self.key, len(states)), args, emit), 1)[0]

    def halved(self, states: list[State]) -> State:
        """The tree over accumulators: the lower half takes in the upper."""
        while len(states) > 1:
            half = len(states) // 2
            states = [self.combine(states[k], states[k + half]) for k in range(half)]
        return states[0]

    def block(self, states: list[State], length: ir.Value) -> State:
        """A block of `length` elements from its 64 lanes: their tree, or, where it has few,
        one after another."""

        def emit(frame: Frame, args: Sequence[ir.Value]) -> list[ir.Value]:
            here = self.at(frame)
            lanes = here.states_of(args[1:], self.width)
            tree = lambda: here.tree(lanes)
            return flat(here.few_or_many(args[0], lambda: here.in_order(lanes), tree))

        if isinstance(length, ir.Constant):
            return self.in_order(states) if length.constant < FEW else self.tree(states)
        args = [length, *(value for state in states for value in flat(state))]
        made = self.frame.piece(("block", self.key, len(states)), args, emit)
        return self.states_of(made, 1)[0]

    def few_or_many(
        self, length: ir.Value, few: Callable[[], State], many: Callable[[], State]
    ) -> State:
        """`few` where a block of `length` elements has no lanes, else `many`."""
        if isinstance(length, ir.Constant):
            return few() if length.constant < FEW else many()
        small = self.frame.builder.icmp_signed("<", length, constant(FEW))
        return self.either(small, few, many)

    def either(
        self, condition: ir.Value, first: Callable[[], State], second: Callable[[], State]
    ) -> State:
        """`first` where a condition shared by all lanes holds, else `second`."""
        builder = self.frame.builder
        blocks = [self.frame.block(name) for name in ("first", "second", "folded")]
        builder.cbranch(condition, *blocks[:2])
        made = []
        for block, emit in zip(blocks, (first, second)):
            builder.position_at_end(block)
            state = emit()
            made.append((flat(state), builder.block))
            builder.branch(blocks[2])
        builder.position_at_end(blocks[2])
        results = []
        for value, other in zip(made[0][0], made[1][0]):
            result = builder.phi(value.type)
            result.add_incoming(value, made[0][1])
            result.add_incoming(other, made[1][1])
            results.append(result)
        return unflat(results, state)

    def in_order(self, states: list[State]) -> State:
        """The first lanes one after another; those without elements change nothing."""
        width = states[0][0].width
        lanes = [self._slice(states[k // width], k % width, 1) for k in range(FEW - 1)]
        return reduce(self.combine, lanes)

    def _any_lane(self, lane: Lane, wanted: bool) -> Lane:
        """`wanted` where some lane is that: all lanes in one comparison."""
        builder = self.frame.builder
        found = any_lane(builder, lane.value if wanted else invert(builder, lane.value))
        return Lane(lane.dtype, (found if wanted else invert(builder, found),))

    def _slice(self, state: State, begin: int, width: int) -> State:
        builder = self.frame.builder
        result = []
        for lane in state:
            if width == 1:
                parts = [builder.extract_element(p, ir.Constant(I32, begin)) for p in lane.parts]
            else:
                order = [ir.Constant(I32, begin + i) for i in range(width)]
                mask = ir.Constant(ir.VectorType(I32, width), order)
                parts = [builder.shuffle_vector(p, p, mask) for p in lane.parts]
            result.append(Lane(lane.dtype, tuple(parts), width))
        return result

    def _constants(self, values: Callable[[DType], tuple[Any, ...]]) -> State:
        state: State = []
        arity = self.monoid.arity
        for at in range(0, len(self.dtypes), arity):
            for dtype, value in zip(self.dtypes[at : at + arity], values(self.dtypes[at])):
                lane = constant_lane(dtype, value)
                state.append(widen(self.frame.builder, lane, self.width))
        return state


def is_free(folding: Folding) -> bool:
    """Whether any order gives the same value."""
    if folding.monoid.indexed:
        return True
    return all(d.kind in "biu" for d in folding.dtypes)


def flat(state: State) -> list[ir.Value]:
    """All LLVM values of a state."""
    return [part for lane in state for part in lane.parts]


def unflat(values: Sequence[ir.Value], like: State) -> State:
    """A state of the form of `like` from its LLVM values."""
    rest = iter(values)
    return [Lane(x.dtype, tuple(next(rest) for _ in x.parts), x.width) for x in like]


class Slots:
    """States in the function's frame, indexed at run time."""

    def __init__(
        self, frame: Frame, dtypes: Sequence[DType], width: int, memory: Sequence[ir.Value]
    ) -> None:
        """memory: for each part of each dtype."""
        self.frame = frame
        self.dtypes = dtypes
        self.width = width
        rest = iter(memory)
        self.memory = [[next(rest) for _ in range(part_count(dtype))] for dtype in dtypes]

    @classmethod
    def of(cls, frame: Frame, dtypes: Sequence[DType], width: int, count: int) -> Slots:
        """New memory for `count` states."""
        types = [
            register_type(real_part_of(d), width) for d in dtypes for _ in range(part_count(d))
        ]
        return cls(frame, dtypes, width, [frame.stack_slot(typ, count) for typ in types])

    @property
    def places(self) -> list[ir.Value]:
        """All memory."""
        return [place for places in self.memory for place in places]

    def load(self, index: ir.Value | int) -> State:
        """The state at `index`."""
        builder = self.frame.builder
        state = []
        for dtype, memory in zip(self.dtypes, self.memory):
            typ = register_type(real_part_of(dtype), self.width)
            parts = [builder.load(self._at(m, typ, index), typ=typ) for m in memory]
            state.append(Lane(dtype, tuple(parts), self.width))
        return state

    def store(self, index: ir.Value | int, state: State) -> None:
        """Put a state at `index`."""
        for lane, memory in zip(state, self.memory):
            for part, slot in zip(lane.parts, memory):
                self.frame.builder.store(part, self._at(slot, part.type, index))

    def _at(self, memory: ir.Value, typ: ir.Type, index: ir.Value | int) -> ir.Value:
        if isinstance(index, int):
            index = constant(index)
        if isinstance(index, ir.Constant) and index.constant == 0:
            return memory
        return self.frame.builder.gep(memory, [index], source_etype=typ)
