"""Gradients through loops of which only the run knows how many trips they make.

What every trip began with would need memory of a size that is not known. So some is kept and the
rest computed again: the trips are cut into at most `KEPT` stretches, and what each began with is
kept. Backwards, each stretch is cut in the same way:

    for each stretch, the last one first:
        kept[0..] = what its parts began with               one more run of the forward trips
        for each trip, the last one first:
            c = from kept, through the trips since
            dc, dx = the trip's cotangents at c

Up to ``KEPT ** 2`` trips are made twice more than without a gradient; longer loops make the trips
of a part again for each of its trips.

Invariants: memory is that of ``2 * KEPT`` times what the loop carries, however many trips it
makes; a `while` is given one more result, its number of trips.
Not here: loops of a known number of trips (flow.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.attrs import freeze
from ..ir.builder import Builder
from ..ir.graph import Graph, Node, Value
from ..ops.creation import constant
from ..ops.flow import for_
from ..ops.shaping import filled, zeros_like
from ..records import dataclass
from ..types import I64, TensorType
from .loops import Form, Values, counting
from .reach import carried_between, tensors_of
from .regions import (
    Asked,
    Cotangents,
    Gradients,
    add_results,
    copied,
    move_before,
    region_again,
)
from .trips import Trip

KEPT = 32
_COUNTER = TensorType(I64, ())


def cotangents_of_trips(builder: Builder, node: Node, asked: Asked) -> Cotangents:
    """The cotangents of the operands of a `while`, or of a `for` between any bounds."""
    form, cts, wanted = Form.of(node), asked.arrived, asked.wanted
    trip = _counted_trip(node.regions[0], form)
    carried, rest = range(1, 1 + form.carried), range(1 + form.carried, len(trip.params))
    operand_of = {at: at - 1 + form.head for at in (*carried, *rest)}
    carries = carried_between(
        trip,
        {trip.params[at] for at, operand in operand_of.items() if wanted[operand]},
        [made for made, ct in zip(trip.results, cts) if ct is not None],
        list(zip(trip.params[1:], trip.results)),
    )
    uses = [at for at in rest if wanted[operand_of[at]]]
    operands = {at: node.operands[operand] for at, operand in operand_of.items()}
    begin, end = node.operands[:2] if node.op is for_ else _counted(builder, node)

    sums = [cts[at] or zeros_like(builder, operands[1 + at]) for at in carries]
    sums += [asked.start(builder, operand_of[at], operands[at]) for at in uses]
    loop = _Loop(trip, _turned(trip, carries, uses, asked.gradients), form.carried)
    held = [operands[at] for at in carried]
    made = loop.backward(builder, sums, begin, end, held, [operands[at] for at in rest])
    places = [operand_of[at] for at in (*[1 + at for at in carries], *uses)]
    return asked.answer(builder, dict(zip(places, made)), places[len(carries) :])


def _counted_trip(region: Graph, form: Form) -> Graph:
    """The region of a loop as that of a `for`: handed a counter, giving what it carries."""
    builder = Builder("region")
    builder.hints = dict(region.hints)
    params = [builder.param(param.name, param.type) for param in region.params]
    made = copied(builder, region, params)
    if not form.handed:
        builder.params.insert(0, Value(builder.names.claim("i"), _COUNTER))
    return builder.finish(made[form.yielded :], ())


def _counted(builder: Builder, node: Node) -> tuple[Value, Value]:
    """Where the trips of a `while` begin and end: it carries their number, too."""
    carried = node.attrs["carried"]
    region = node.regions[0]
    inner = Builder.extending(region)
    count = inner.param("trips", _COUNTER)
    inner.params = [*region.params[:carried], count, *region.params[carried:]]
    following = inner.emit("add", (count, inner.constant(1, I64)))
    tensors = tensors_of(region.results)
    made = inner.finish([*tensors, following], region.results[len(tensors) :])
    start = len(builder.nodes)
    zero = builder.emit(constant, (), {"value": np.zeros((), np.int64)})
    move_before(builder, node, start)
    node.regions = (made,)
    first, rest = node.operands[: 1 + carried], node.operands[1 + carried :]
    node.operands = (*first, zero, *rest)
    node.attrs = freeze({**node.attrs, "carried": carried + 1})
    (trips,) = add_results(builder, node, [_COUNTER])
    return zero, trips


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the parts of a stretch of trips began with. begin, end: the counters of its first trip
    and behind its last; stride: of a part; parts: how many. stacks: of each carried value."""

    begin: Value
    end: Value
    stride: Value
    parts: Value
    stacks: Values

    @classmethod
    def of(cls, values: Values) -> _Kept:
        """From its values in a row."""
        begin, end, stride, parts, *stacks = values
        return cls(begin, end, stride, parts, stacks)

    @property
    def values(self) -> Values:
        """In a row."""
        return [self.begin, self.end, self.stride, self.parts, *self.stacks]

    def part(self, builder: Builder, number: Value) -> tuple[Value, Value]:
        """Where a part begins and ends."""
        low = builder.add(self.begin, builder.mul(number, self.stride))
        return low, builder.minimum(builder.add(low, self.stride), self.end)

    def held(self, builder: Builder, number: Value) -> Values:
        """What a part began with."""
        return [builder.gather(stack, number, axes=(0,))[0] for stack in self.stacks]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop that is run backwards. trip: the region of a `for`, without effects. turned: what runs
    one backwards."""

    trip: Graph
    turned: Graph
    carried: int

    def backward(
        self, builder: Builder, sums: Values, begin: Value, end: Value, held: Values, rest: Values
    ) -> Values:
        """The sums after all trips. sums: the cotangents of what is carried, and what uses add to.
        held: what the first trip begins with. rest: what all use."""

        def stretch(inner: Builder, at: Value, sums: Values, given: Values) -> Values:
            kept, rest = self.split(given)
            number = inner.sub(inner.sub(kept.parts, 1), at)
            low, high = kept.part(inner, number)
            return self.trips(inner, sums, low, high, kept.held(inner, number), rest)

        kept = self.kept(builder, begin, end, held, rest)
        return counting(builder, kept.parts, sums, [*kept.values, *rest], stretch)

    def trips(
        self, builder: Builder, sums: Values, begin: Value, end: Value, held: Values, rest: Values
    ) -> Values:
        """The sums after the trips of a stretch."""

        def trip(inner: Builder, at: Value, sums: Values, given: Values) -> Values:
            kept, rest = self.split(given)
            counter = inner.sub(inner.sub(kept.end, 1), at)
            number = inner.floor_divide(inner.sub(counter, kept.begin), kept.stride)
            low, _ = kept.part(inner, number)
            now = self.advanced(inner, kept.held(inner, number), rest, low, counter)
            return copied(inner, self.turned, [counter, *now, *rest, *sums])

        kept = self.kept(builder, begin, end, held, rest)
        return counting(builder, builder.sub(end, begin), sums, [*kept.values, *rest], trip)

    def split(self, given: Values) -> tuple[_Kept, Values]:
        """What is kept of a stretch, and what the loop uses."""
        kept = len(given) - (len(self.trip.params) - 1 - self.carried)
        return _Kept.of(given[:kept]), given[kept:]

    def kept(self, builder: Builder, begin: Value, end: Value, held: Values, rest: Values) -> _Kept:
        """Run a stretch forward, in parts."""

        def part(inner: Builder, at: Value, moving: Values, given: Values) -> Values:
            held, stacks = moving[: self.carried], moving[self.carried :]
            low, high = _Kept.of(given[:4]).part(inner, at)
            stacks = [
                inner.scatter(stack, value, at, axes=(0,))[0] for stack, value in zip(stacks, held)
            ]
            return [*self.advanced(inner, held, given[4:], low, high), *stacks]

        trips = builder.maximum(builder.sub(end, begin), 0)
        stride = builder.maximum(_quotient_up(builder, trips, builder.constant(KEPT, I64)), 1)
        parts = _quotient_up(builder, trips, stride)
        stacks = [filled(builder, 0, v.tensor.dtype, (KEPT, *v.tensor.shape)) for v in held]
        given = [begin, end, stride, parts, *rest]
        made = counting(builder, parts, [*held, *stacks], given, part)
        return _Kept(begin, end, stride, parts, made[self.carried :])

    def advanced(
        self, builder: Builder, held: Values, rest: Values, begin: Value, end: Value
    ) -> Values:
        """What is carried after the trips between two counters."""
        regions = [region_again(self.trip)]
        operands = (begin, end, *held, *rest)
        return builder.emit_all(for_, operands, {"carried": self.carried}, regions=regions)


def _turned(
    trip: Graph, carries: Sequence[int], uses: Sequence[int], gradients: Gradients
) -> Graph:
    """A trip backwards, of what the trip is handed and then of what `Trip.turn` has."""
    arm = Trip(region_again(trip), gradients)
    arm.turn(carries, uses)
    return arm.backward([*arm.given, *arm.added])


def _quotient_up(builder: Builder, a: Value, b: Value) -> Value:
    made: Value = builder.floor_divide(builder.sub(builder.add(a, b), 1), b)
    return made
