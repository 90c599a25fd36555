"""Outcomes of two blocks as one: how a function or a trip of a loop ends.

In a function both blocks return, so that what they return is one value. In a trip of a loop one
may go on and the other leave: then how it ends is a number of the graph, its *code*.

Invariants: an outcome of a block is None, a pair (see intercept/jumps.py), or a `Mixed` one,
which only trips have whose loop is in the graph.
Not here: the loop (rolled.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..compiler.records import dataclass
from ..tracing.memory import around
from ..tracing.state import Trace, fail
from . import nests
from .nests import Differs, Pair
from .places import UNBOUND

RETURNED = "the returned value"
_WITH_VALUE = {"return": RETURNED, "value": "this expression"}
CODES = {None: 0, "continue": 0, "break": 1, "return": 2}


class NeedsRolling(BaseException):
    """A loop that runs while the function is traced is left on a traced test."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """code: 0 goes on, 1 breaks, 2 returns `value`, UNBOUND where nothing is returned."""

    code: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Jump:
    """An outcome whose parts are leaves. kind: of a pair, None for a mixed one."""

    kind: str | None
    code: Any
    value: Any

    def filled(self, leaves: Sequence[Any]) -> Any:
        """The outcome with these leaves."""
        value = UNBOUND if self.value is UNBOUND else nests.filled(self.value, leaves)
        if self.kind is not None:
            return self.kind, value
        return Mixed(nests.filled(self.code, leaves), value)


def jump_of(trace: Trace, left: Any, right: Any, pairs: list[Pair], every: bool = False) -> Any:
    """The outcome of a node. every: numbers and arrays are leaves even where both sides are one
    object. Raises TraceError where the values are no one value, NeedsRolling
    where the loop around runs while it is traced."""
    kinds = [_kind(left), _kind(right)]
    if kinds[0] == kinds[1] and "mixed" not in kinds:
        kind = kinds[0]
        if kind not in _WITH_VALUE:
            return left
        return Jump(kind, None, _one_value(left[1], right[1], _WITH_VALUE[kind], pairs, every))
    if loop_around(trace) != "graph":
        raise NeedsRolling
    code = nests.paired(_code(left), _code(right), "code", pairs, every)
    values = [_value(left), _value(right)]
    if values[0] is UNBOUND and values[1] is UNBOUND:
        return Jump(None, code, UNBOUND)
    if values[0] is UNBOUND or values[1] is UNBOUND:
        at = len(pairs)
        item = values[1] if values[0] is UNBOUND else values[0]
        pattern = nests.paired(item, item, RETURNED, pairs, every=True)
        for index in range(at, len(pairs)):
            pair = pairs[index]
            sides = (UNBOUND, pair.right) if values[0] is UNBOUND else (pair.left, UNBOUND)
            pairs[index] = Pair(*sides, pair.path)
        return Jump(None, code, pattern)
    return Jump(None, code, _one_value(values[0], values[1], RETURNED, pairs, every))


def loop_around(trace: Trace) -> str | None:
    """What the trip is of the innermost loop of the user's around: one of the graph, one that is
    tried, or one that runs now."""
    return next((at.loop for at in around(trace) if at.loop is not None), None)


def _one_value(left: Any, right: Any, path: str, pairs: list[Pair], every: bool) -> Any:
    try:
        return nests.paired(left, right, path, pairs, every)
    except Differs as problem:
        raise fail(
            "TM260",
            f"{problem.path} is {problem.left} if this condition is true, {problem.right} if not",
            "both ways are to give one structure, dtypes and shapes",
        ) from None


def _kind(outcome: Any) -> str:
    if type(outcome) is Mixed:
        return "mixed"
    kind = None if outcome is None else outcome[0]
    return "continue" if kind is None else str(kind)


def _code(outcome: Any) -> Any:
    return (
        outcome.code if type(outcome) is Mixed else CODES[None if outcome is None else outcome[0]]
    )


def _value(outcome: Any) -> Any:
    if type(outcome) is Mixed:
        return outcome.value
    return outcome[1] if outcome is not None and outcome[0] == "return" else UNBOUND
