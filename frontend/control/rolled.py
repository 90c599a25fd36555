"""A Python loop as a node of the graph.

Its body is traced with what its places hold before the loop, to see which of them it changes;
then again, with parameters for those, until their types are settled. Jumps out of it are a number
that is carried, the *code*: 0 goes on, 1 breaks, 2 returns the value beside it.

    while t: A; if u: break; B    ->    while (more, x, code):  A; code, x = cond(u, 1, B)
                                                                more = code == 0 and t

Invariants: a variable that is first bound by the body is what the last trip made of it; where
there may be no trip, using it is an error.
Not here: whether a loop becomes one (python_loops.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.ir.graph import Value
from ..compiler.records import dataclass, replace
from ..compiler.types import BOOL, I64, TensorType
from ..intercept.hooks import take_name
from ..intercept.plain_flow import asked, branch, choose
from ..numpy.operands import value_of
from ..tracing.affine import affine_of, change_with_trips
from ..tracing.concrete import concrete
from ..tracing.integer import TracedSize
from ..tracing.kinship import spent_outside
from ..tracing.number import TracedNumber
from ..tracing.regions import Handed, OpenRegion, Region, Regions
from ..tracing.state import Trace, fail, running
from . import nests
from .loop_carried import (
    CarriedByLoop,
    changing,
    code_of,
    is_counted,
    never_bound,
    operations,
    unfit,
    value_of_outcome,
)
from .nests import Differs, LeafType, Pair
from .outcomes import RETURNED
from .places import UNBOUND, Place, contents, is_same_content, places, put_back
from .raised import explained
from .shared import shared
from .trips import Trips, grown, most_trips

Block = Callable[..., Any]
After = tuple[tuple[str, ...], Block | None, Any, str | None]  # names, rest, behind, level
_MOST_TRACES = 6
_CODE = LeafType(TensorType(I64, ()), int)


@dataclass(frozen=True, slots=True)
class Loop:
    """The blocks of a loop, the names that are read after it, and what comes then."""

    test: Block | None
    body: Block
    otherwise: Block | None
    live: tuple[str, ...]
    leaves: tuple[str, ...]  # break, return: jumps by which the body may be left
    after: After

    @property
    def blocks(self) -> list[Block]:
        """Those that run on every trip."""
        return [self.body] if self.test is None else [self.test, self.body]


class Small(Exception):
    """A loop of fewer operations than are worth one."""


def rolled(loop: Loop, first: Any, trips: Trips | None = None, least: int = 0) -> Callable[[], Any]:
    """Make the node; what goes on behind it, and gives the outcome of that.

    first: what its test is before the first trip. trips: of a `for`. least: operations of all
    its trips, where their number is known, below which it raises `Small` instead.
    """
    made = _Rolling(running(), loop, first, trips)
    return made.finished(least)


class _Rolling:
    """One loop being made."""

    def __init__(self, trace: Trace, loop: Loop, first: Any, trips: Trips | None) -> None:
        self.trace = trace
        self.loop = loop
        self.first = first
        self.trips = trips
        self.watched = places(loop.blocks, loop.live)
        self.before = contents(self.watched)
        self.more: Any = None
        self.is_endless = False  # its test is true on every trip
        self.after: list[Any] = []
        self.outcome: Any = None
        self.exact: list[str] = []  # of integers that were known before and behind the first trip
        self.handed: dict[int, Any] = {}  # what places held when the trip began, if not `before`

    def finished(self, least: int) -> Callable[[], Any]:
        """Trace the body until it is settled, and make the node."""
        known = CarriedByLoop()
        with Regions(self.trace) as regions:
            for _ in range(_MOST_TRACES):
                opened = self._trip(regions, known)
                found = self._carried(known, opened)
                if found.is_settled(known):
                    break
                known = found
            else:
                raise fail("TM260", "the types that this loop carries change on every trip")
            if self._operations(opened) < least or (least and self._is_exact(found)):
                raise Small
            start = self._start(found)  # of arrays that the body may spend
            region = opened.finish(opened.run(lambda: self._yielded(opened, found)))
            made = self._node(found, start, region)
        leaves = [kind.wrapped(self.trace, value) for kind, value in zip(found.kinds, made)]
        found.shared.tell(self.trace, leaves)
        for leaf, pair in zip(leaves, found.pairs):
            take_name(pair.path, leaf)
        for variable, value in zip(found.variables.values(), made[len(found.kinds) :]):
            variable.put(self.trace, value)
        for at, pattern in found.patterns.items():
            self.watched[at].write(nests.filled(pattern, leaves))
        for at, step in found.steps.items():
            assert self.trips is not None
            self.watched[at].write(self._at_trip(at, self.trips.count, step))
        return lambda: self._going_on(found, leaves)

    def _operations(self, opened: OpenRegion) -> float:
        """How many all trips make."""
        count = math.inf if self.trips is None else self.trips.count
        return count * operations(opened.trace.builder.nodes) if type(count) is int else math.inf

    def _is_exact(self, found: CarriedByLoop) -> bool:
        """Whether it carries integers that Python would compute while tracing, of any size."""
        carried = {pair.path for pair in found.pairs}
        return any(path in carried for path in self.exact)

    # -- tracing

    def _trip(self, regions: Regions, known: CarriedByLoop) -> OpenRegion:
        """Trace a trip with what is known to be carried."""
        handed = [
            Handed(pair.path.split("[")[0].split(".")[0].replace(" ", "_"), kind.tensor, kind.kind)
            for pair, kind in zip(known.pairs, known.kinds)
        ]
        if self.trips is not None:
            handed.insert(0, Handed("trip", TensorType(I64, ()), int))
        opened = OpenRegion(regions, "loop", handed, list(known.variables.values()))
        opened.trace.loop = "graph"
        opened.trace.is_trip = self.trips is not None
        leaves = opened.items if self.trips is None else opened.items[1:]
        if self.trips is not None:
            self.trips.count_with(opened.items[0])
            for leaf in leaves:
                change_with_trips(leaf)
        known.shared.tell(opened.trace, leaves)
        opened.trace.spent.update(known.spent)
        try:
            self.handed = opened.run(
                lambda: {at: self._at_trip(at, opened.items[0], n) for at, n in known.steps.items()}
            )
            for at, pattern in known.patterns.items():
                if self.before[at] is not UNBOUND:
                    self.handed[at] = nests.filled(pattern, leaves)
            for at, content in self.handed.items():
                self.watched[at].write(content)
            self.outcome = opened.run(lambda: self._run(opened))
            self.after = contents(self.watched)
        except Exception as problem:  # noqa: BLE001  raised again, one of them explained
            raise explained(problem) from problem.__cause__
        finally:
            put_back(self.watched, self.before)
        return opened

    def _run(self, opened: OpenRegion) -> Any:
        if self.trips is None:
            outcome = self.loop.body()
            self.more = self._again(code_of(outcome))
            return outcome
        number = opened.items[0]
        outcome = self.loop.body(self.trips.item(number))
        code = code_of(outcome)
        if code is not None:
            following = number + 1 < self.trips.count
            self.more = choose(code == 0, lambda: following, lambda: False)
        return outcome

    def _again(self, code: Any) -> Any:
        """Whether a `while` makes another trip."""
        test = self.loop.test
        assert test is not None

        def again() -> Any:
            truth = asked(test())
            self.is_endless = truth is True
            return truth

        return again() if code is None else asked(choose(code == 0, again, lambda: False))

    # -- what is carried

    def _carried(self, known: CarriedByLoop, opened: OpenRegion) -> CarriedByLoop:
        """What the trip that was traced shows to be carried."""
        found = CarriedByLoop()
        for at, place in enumerate(self.watched):
            held, now = self.before[at], self.after[at]
            step = self._step(at, place, held, now)
            if step is not None:
                found.steps[at] = step
                continue
            is_known = at in known.patterns or at in known.steps
            if not is_known and is_same_content(place, held, now):
                continue
            if held is not UNBOUND or (now is not UNBOUND and place.is_live):
                found.patterns[at] = self._pattern(found, known, place, held, now)
        if not known.pairs and not known.steps:
            numbers = [pair for pair in found.pairs if type(pair.left) is int]
            self.exact = [pair.path for pair in numbers if is_counted(pair.right, opened.items)]
        found.code = code_of(self.outcome)
        value = value_of_outcome(self.outcome)
        if value is not UNBOUND:
            found.value = self._made_anew(found, known, RETURNED, value)
        if found.code is not None:
            found.pairs.append(Pair(0, found.code, "code"))
            found.kinds.append(_CODE)
        found.variables = {**known.variables, **opened.trace.assigned}
        if known.pairs:  # else arrays that will be parameters stand for themselves
            found.shared = shared(found.pairs, (self.trace, opened.trace), [opened.trace])
            found.spent = spent_outside(opened.trace)
        return found

    def _pattern(
        self, found: CarriedByLoop, known: CarriedByLoop, place: Place, held: Any, now: Any
    ) -> Any:
        count = len(found.pairs)
        try:
            if held is UNBOUND:
                if not self._is_run():
                    return never_bound(place.name)
                return self._made_anew(found, known, place.name, now)
            if now is UNBOUND:
                raise Differs(place.name, nests.described(held), "nothing")
            pattern = nests.paired(held, now, place.name, found.pairs)
            for pair in found.pairs[count:]:
                found.kinds.append(self._kind(known, pair))
        except Differs as problem:
            del found.pairs[count:], found.kinds[count:]
            if place.is_container:
                raise unfit(problem) from None
            return changing(problem)
        return pattern

    def _step(self, at: int, place: Place, held: Any, now: Any) -> int | None:
        """By what an integer grows on every trip of a loop that is not left; None where it is not
        one number."""
        if self.trips is None or type(self.trips.count) is TracedNumber:
            return None
        if place.is_container or type(held) not in (int, TracedSize) or at not in self.handed:
            return None
        began, ended = affine_of(self.handed[at]), affine_of(now)
        if began is None or ended is None or code_of(self.outcome) is not None:
            return None
        step = ended.plus(began, -1)
        return step.rest if not step.terms and isinstance(step.rest, int) else None

    def _at_trip(self, at: int, trip: Any, step: int) -> Any:
        """Such an integer before a trip."""
        return grown(self.before[at], trip, step)

    def _made_anew(self, found: CarriedByLoop, known: CarriedByLoop, path: str, item: Any) -> Any:
        """The pattern of what every trip makes, whatever there was before."""
        count = len(found.pairs)
        pattern = nests.paired(item, item, path, found.pairs, every=True)
        for at in range(count, len(found.pairs)):
            pair = found.pairs[at]
            found.pairs[at] = Pair(UNBOUND, pair.right, pair.path)
            found.kinds.append(nests.leaf_type(pair.right))
        return pattern

    def _kind(self, known: CarriedByLoop, pair: Pair) -> LeafType:
        """The type a leaf is carried in."""
        before = nests.leaf_type(pair.left)
        for other, kind in zip(known.pairs, known.kinds):
            if other.path == pair.path and other.left is not UNBOUND:
                before = nests.joined(self.trace, before, kind, pair.path)
        return nests.joined(self.trace, before, nests.leaf_type(pair.right), pair.path)

    def _is_run(self) -> bool:
        """Whether there is a trip. Of sizes, as in the example call, with a guard; a number that
        only the call knows is fixed to that of the example."""
        if self.trips is None:
            return self.first is True
        count = self.trips.count
        if type(count) is TracedNumber:
            found = concrete(
                self.trace, count.value, "a variable that a loop binds is used after it"
            )
            if found is None:
                return False
            count = int(found)
            self.trips = replace(self.trips, count=count)
        return type(count) in (int, TracedSize) and bool(count >= 1)

    # -- the node

    def _yielded(self, opened: OpenRegion, found: CarriedByLoop) -> list[Value]:
        inner = opened.trace
        made = [nests.converted(inner, p.right, kind) for p, kind in zip(found.pairs, found.kinds)]
        is_while = self.trips is None or found.code is not None
        if self.trips is not None and is_while:
            made.insert(0, value_of(opened.items[0] + 1))
        return [_bool(inner, self.more), *made] if is_while else made

    def _start(self, found: CarriedByLoop) -> list[Value]:
        """What it carries into its first trip."""
        trace = self.trace
        return [
            nests.zeros(trace, kind.tensor) if pair.left is UNBOUND else
            nests.converted(trace, pair.left, kind)
            for pair, kind in zip(found.pairs, found.kinds)
        ]  # fmt: skip

    def _node(self, found: CarriedByLoop, start: list[Value], region: Region) -> Sequence[Value]:
        trace = self.trace
        held = [variable.get(trace) for variable in found.variables.values()]
        carried = [*start, *held]
        attrs: dict[str, Any] = {"carried": len(carried)}
        if self.trips is None:
            op, head = "while", [_bool(trace, self.first)]
        elif found.code is not None:
            op, head = "while", [_bool(trace, self.trips.count > 0)]
            carried = [trace.literal(0, I64), *carried]
            attrs["carried"] += 1
        else:
            bounds = [trace.literal(0, I64), value_of(self.trips.count)]
            op, head = "for", [trace.cast(bound, I64) for bound in bounds]
            attrs |= most_trips(trace, 0, self.trips.count)
        operands = [*head, *carried, *region.captured]
        made = trace.builder.emit_all(op, operands, attrs, regions=[region.graph])
        return made[1:] if self.trips is not None and op == "while" else made

    def _going_on(self, found: CarriedByLoop, leaves: Sequence[Any]) -> Any:
        """What comes after the loop, by the way it ended."""
        names, rest, behind, level = self.loop.after
        otherwise = self.loop.otherwise
        if found.code is None:
            outcome = None if otherwise is None else otherwise()
            return rest() if outcome is None and rest is not None else outcome
        code = leaves[-1]
        if found.value is UNBOUND:
            if otherwise is None:
                return None if rest is None else rest()
            return branch(code == 0, otherwise, None, names, rest, behind, level)
        value = nests.filled(found.value, leaves)
        if self.is_endless and "break" not in self.loop.leaves:
            return "return", value
        tail = None
        if otherwise is not None:
            ending = otherwise

            def tail() -> Any:
                return branch(code == 0, ending, None, names, rest, behind, level)

        return branch(code == 2, lambda: ("return", value), tail, names, rest, behind, level)


def _bool(trace: Trace, item: Any) -> Value:
    if type(item) is bool:
        return trace.builder.constant(np.bool_(item))
    return trace.cast(value_of(item), BOOL)
