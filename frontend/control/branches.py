"""`if` on a traced test: both blocks are traced, and the run takes one.

    for each block:  keep what its places hold, trace it as a region, read what they hold, put back
    for each place:  what the blocks leave there is the same, or becomes a result of the node
    jumps:           a block that jumps ends there; the other one goes on with what follows, to
                     the end of the function or of the trip; the two outcomes become one

Invariants: outside of the regions nothing has happened until the node is made.
Not here: blocks whose test is known (intercept/plain_flow.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.ir.graph import Value
from ..compiler.types import BOOL
from ..intercept.calls_of_hooks import is_moved
from ..intercept.hooks import take_name
from ..numpy.operands import value_of
from ..tracing.concrete import can_be_fixed
from ..tracing.number import TracedNumber
from ..tracing.regions import OpenRegion, Region, Regions, with_operands
from ..tracing.state import Trace, fail, running
from ..tracing.undefined import Undefined
from . import nests
from .nests import Differs, LeafType, Pair
from .outcomes import Jump, NeedsRolling, jump_of, loop_around
from .places import (
    UNBOUND,
    Place,
    can_be_tried,
    contents,
    is_same_content,
    places,
    put_back,
)
from .raised import Failing, explained, is_seen
from .selected import is_cheap, written_out
from .shared import shared

_FOR_LISTS = (
    "a list has one length here: make an array with room for all (np.zeros(n)), store into it, "
    "and count how many places are taken"
)

Block = Callable[..., Any]


def branch(
    test: TracedNumber, then: Block, other: Block | None, names: tuple[str, ...],
    rest: Block | None, behind: Any, level: str | None,
) -> Any:  # fmt: skip
    """See intercept/plain_flow.py."""
    if level is not None and isinstance(behind, str):
        return _refused(test, behind, lambda: _plain(test, then, other, rest))
    rests = [] if level is None else [block for block in (rest, *behind) if block is not None]
    blocks = [block for block in (then, other, *rests) if block is not None]

    def arm(block: Block | None) -> Block:
        def run() -> Any:
            outcome = None if block is None else block()
            for following in rests:
                if outcome is not None:
                    break
                outcome = following()
            return _ended(outcome, level)

        return run

    return _decided(
        test,
        (then, other),
        lambda strict: _node(test, (arm(then), arm(other)), places(blocks, names), strict),
        lambda: _plain(test, then, other, rest),
    )


def choose(test: TracedNumber, then: Block, other: Block, user: Block | None = None) -> Any:
    """``then() if test else other()``. user: the user's expression, where these only call it."""

    def value(block: Block) -> Block:
        return lambda: ("value", block())

    made = _decided(
        test,
        (then, other, user),
        lambda strict: _node(test, (value(then), value(other)), places([then, other], ()), strict),
        lambda: ("value", then() if test else other()),
    )
    return made[1]


def _ended(outcome: Any, level: str | None) -> Any:
    """What a block that runs to the end of the function or trip comes to."""
    if outcome is not None or level is None:
        return outcome
    return ("return", None) if level == "function" else ("continue", None)


def _plain(test: Any, then: Block, other: Block | None, rest: Block | None) -> Any:
    """The branch that the example call takes, with a guard. Raises TraceError."""
    outcome = then() if test else None if other is None else other()
    return rest() if outcome is None and rest is not None else outcome


def _refused(test: TracedNumber, reason: str, plain: Block) -> Any:
    if can_be_fixed(running(), value_of(test)):
        return plain()
    raise fail(
        "TM101",
        f"a jump out of {reason} depends on {test!r}, whose value is known only when the compiled "
        "function runs",
        hint="set a variable where the jump is, and leave the function or loop behind the block",
    )


def _decided(
    test: TracedNumber, blocks: Sequence[Any], traced: Callable[[bool], Any], plain: Block
) -> Any:
    """The node; but where the test is made of arguments that could be guarded, and the blocks
    do not come to exactly the same types, the branch of the example call."""
    codes = [id(block.__code__) for block in blocks if is_moved(getattr(block, "__code__", None))]
    if not can_be_fixed(running(), value_of(test)):
        return _once(codes, lambda: traced(False))
    if not can_be_tried(blocks):
        return plain()
    try:
        return _once(codes, lambda: traced(True))
    except NeedsRolling:
        if loop_around(running()) == "trial":
            raise
        return plain()
    except Exception:  # noqa: BLE001  the branch not taken may fail in any way
        return plain()


def _once(codes: Sequence[int], traced: Callable[[], Any]) -> Any:
    """Trace the blocks, but not inside themselves: a function that comes to itself again under a
    traced test would be traced for ever."""
    entered = running().entered
    if not set(codes).isdisjoint(entered):
        raise fail(
            "TM104",
            "a function calls itself on a condition that is known only when the compiled function "
            "runs",
            hint="write the recursion as a loop",
        )
    entered.extend(codes)
    try:
        return traced()
    finally:
        del entered[len(entered) - len(codes) :]


class _Arm:
    """One block: its region, its outcome, what its places hold after it."""

    def __init__(
        self, regions: Regions, block: Block, watched: Sequence[Place], before: Sequence[Any]
    ) -> None:
        self.opened = OpenRegion(regions, "branch")
        self.raised: Exception | None = None
        try:
            self.outcome = self.opened.run(block)
            self.after = contents(watched)
        except Exception as problem:  # noqa: BLE001  it may be one of the user's
            self.raised = problem
        finally:
            put_back(watched, before)
        self.assigned = dict(self.opened.trace.assigned)

    def ends_as(self, other: _Arm, failing: Failing) -> None:
        """Let it fail where it raised; it comes to nothing that the other one does not come to."""
        inner = self.opened.trace
        self.opened.run(lambda: failing.check(inner, inner.builder.constant(np.bool_(False))))
        self.outcome, self.after = other.outcome, other.after

    def finished(
        self, sides: Sequence[Any], wanted: Sequence[LeafType], variables: Sequence[Any]
    ) -> Region:
        """The region, yielding these leaves and variables."""

        def values() -> list[Value]:
            inner = self.opened.trace
            made = [
                nests.zeros(inner, to.tensor) if item is UNBOUND else
                nests.converted(inner, item, to)
                for item, to in zip(sides, wanted)
            ]  # fmt: skip
            return [*made, *[variable.get(inner) for variable in variables]]

        return self.opened.finish(self.opened.run(values))


def _node(
    test: TracedNumber, blocks: tuple[Block, Block], watched: Sequence[Place], strict: bool
) -> Any:
    """Make the node, write to places, and give the outcome. Where a block only raises, the other
    one runs, behind a check."""
    trace = running()
    before = contents(watched)
    with Regions(trace) as regions:
        first = _Arm(regions, blocks[0], watched, before)
        if first.raised is not None and not is_seen(first.opened.trace):
            failing, other = Failing(first.raised), 1
        else:
            arms = [first, _Arm(regions, blocks[1], watched, before)]
            if arms[1].raised is None or first.raised is not None or is_seen(arms[1].opened.trace):
                return _joined_by_node(trace, test, arms, watched, before, strict)
            failing, other = Failing(arms[1].raised), 0
    return _behind_check(trace, value_of(test), failing, blocks, other)


def _behind_check(
    trace: Trace, test: Value, failing: Failing, blocks: tuple[Block, Block], other: int
) -> Any:
    """What the other block comes to, which does not raise."""
    failing.check(trace, trace.emit("logical_not", test) if other else test)
    try:
        return blocks[other]()
    except Exception as problem:  # noqa: BLE001  raised again, one of them explained
        raise explained(problem, "so does the other block") from problem.__cause__


def _joined_by_node(
    trace: Trace, test: TracedNumber, arms: Sequence[_Arm], watched: Sequence[Place],
    before: Sequence[Any], strict: bool,
) -> Any:  # fmt: skip
    pairs: list[Pair] = []
    fails = _failing(arms)
    outcome = jump_of(trace, arms[0].outcome, arms[1].outcome, pairs, every=any(fails))
    patterns = _patterns(watched, before, arms, pairs, strict, every=any(fails))
    if any(fails):  # that side comes to nothing
        left, right = fails
        pairs = [
            Pair(UNBOUND if left else p.left, UNBOUND if right else p.right, p.path) for p in pairs
        ]
    wanted = _types(trace, pairs, strict)
    traces = arms[0].opened.trace, arms[1].opened.trace
    found = shared(pairs, traces, traces)
    variables = list({**arms[0].assigned, **arms[1].assigned}.values())
    made = _emitted(trace, value_of(test), arms, pairs, wanted, variables)
    leaves = [kind.wrapped(trace, value) for kind, value in zip(wanted, made)]
    found.tell(trace, leaves)
    for leaf, pair in zip(leaves, pairs):
        take_name(pair.path, leaf)
    for variable, value in zip(variables, made[len(wanted) :]):
        variable.put(trace, value)
    for place, pattern in patterns:
        place.write(nests.filled(pattern, leaves))
    return outcome.filled(leaves) if isinstance(outcome, Jump) else outcome


def _failing(arms: Sequence[_Arm]) -> list[bool]:
    """Which block fails where it raised, and ends as the other one does."""
    problems = [arm.raised for arm in arms]
    if problems[0] is not None and problems[1] is not None:
        raise explained(problems[1], "so does the other block") from problems[1].__cause__
    for arm, other in (arms, arms[::-1]):
        if arm.raised is not None:
            arm.ends_as(other, Failing(arm.raised))
    return [problem is not None for problem in problems]


def _patterns(
    watched: Sequence[Place], before: Sequence[Any], arms: Sequence[_Arm], pairs: list[Pair],
    strict: bool, every: bool,
) -> list[tuple[Place, Any]]:  # fmt: skip
    """What each changed place holds behind the node."""
    found: list[tuple[Place, Any]] = []
    for place, held, left, right in zip(watched, before, arms[0].after, arms[1].after):
        if is_same_content(place, held, left) and is_same_content(place, held, right):
            continue
        if not place.is_live:
            continue
        kept = len(pairs)
        try:
            if (left is UNBOUND) != (right is UNBOUND):
                raise Differs(place.name, _bound(left), _bound(right))
            pattern = nests.paired(left, right, place.name, pairs, every)
            for pair in pairs[kept:]:
                _joined(running(), pair, strict)
        except Differs as problem:
            del pairs[kept:]
            if strict or place.is_container:
                raise _unfit(problem) from None
            pattern = _undefined(problem)
        found.append((place, pattern))
    return found


def _bound(item: Any) -> str:
    return "nothing" if item is UNBOUND else nests.described(item)


def _types(trace: Trace, pairs: Sequence[Pair], strict: bool) -> list[LeafType]:
    try:
        return [_joined(trace, pair, strict) for pair in pairs]
    except Differs as problem:
        raise _unfit(problem) from None


def _joined(trace: Trace, pair: Pair, strict: bool) -> LeafType:
    if pair.left is UNBOUND or pair.right is UNBOUND:
        return nests.leaf_type(pair.right if pair.left is UNBOUND else pair.left)
    left, right = nests.leaf_type(pair.left), nests.leaf_type(pair.right)
    made = nests.joined(trace, left, right, pair.path)
    unlike = left.kind != right.kind or left.tensor.dtype != right.tensor.dtype
    if strict and unlike and not left.tensor.dtype == right.tensor.dtype == BOOL:
        raise Differs(pair.path, repr(left), repr(right))
    return made


def _unfit(problem: Differs) -> Exception:
    return fail(
        "TM260",
        f"{problem.path} is {problem.left} if this condition is true, {problem.right} if not",
        "it is known only when the compiled function runs, so both are to have one structure, "
        "dtype and shape",
        _FOR_LISTS if problem.of_lists else "",
    )


def _undefined(problem: Differs) -> Undefined:
    return Undefined(
        f"{problem.path} is used, which is {problem.left} if this condition is true, "
        f"{problem.right} if not",
        "it is known only when the compiled function runs, so both are to have one structure, "
        "dtype and shape",
        _FOR_LISTS
        if problem.of_lists
        else f"give {problem.path} such a value in both branches, or before",
    )


def _emitted(
    trace: Trace, test: Value, arms: Sequence[_Arm], pairs: Sequence[Pair],
    wanted: Sequence[LeafType], variables: Sequence[Any],
) -> Sequence[Value]:  # fmt: skip
    """The results of the node; of cheap numbers, of the choice between both."""
    sides = ([pair.left for pair in pairs], [pair.right for pair in pairs])
    regions = [arm.finished(side, wanted, variables) for arm, side in zip(arms, sides)]
    if all(map(is_cheap, regions)):
        left, right = [written_out(trace, region) for region in regions]
        return [a if a is b else trace.emit("select", test, a, b) for a, b in zip(left, right)]
    captured = list(dict.fromkeys(v for region in regions for v in region.captured))
    graphs = [with_operands(region, captured) for region in regions]
    return trace.builder.emit_all("cond", [test, *captured], {}, regions=graphs)
