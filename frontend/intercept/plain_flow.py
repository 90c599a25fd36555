"""What choosing and repeating does: at once, as Python does, where what is asked is known.

Where it is traced, the functions in control/ do it; they are loaded when that first happens.

Invariants: outside of traces, and where no test is traced, everything runs in Python's order and
as often as Python runs it.
Not here: how blocks become functions (flow.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..loading import load
from ..numpy.unsized import Unsized
from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.state import current
from ..tracing.tensor import TracedArray, TracedScalar
from .special_methods import OPERATORS
from .user_methods import user_call

Block = Callable[..., Any]
_BOOLS = (bool, TracedNumber)
_TRACED = frozenset((TracedArray, TracedScalar, TracedNumber))
_OPERATORS: Mapping[str, Callable[..., Any]] = {
    **OPERATORS, "Is": lambda item, other: is_the(item, other),
    "IsNot": lambda item, other: negated(is_the(item, other)),
}  # fmt: skip


def asked(test: Any) -> Any:
    """The test as Python's truth value, or the traced one that a branch can be taken on."""
    kind = type(test)
    if kind is bool:
        return test
    if kind in _TRACED or (
        current() is not None
        and (kind is np.ndarray or issubclass(kind, Unsized) or hasattr(kind, "traced"))
    ):
        return load("control.asking").truth(test)
    made = user_call(test, "__bool__")
    if made is not NotImplemented:
        if type(made) in _BOOLS:
            return asked(made)
        gave = made.__class__  # of what is traced, the class that it has when the function runs
        name = f"{gave.__module__}.{gave.__qualname__}".removeprefix("builtins.")
        raise TypeError(f"__bool__ should return bool, returned {name}")
    made = user_call(test, "__len__")
    return bool(test) if made is NotImplemented else asked(made)


def is_the(item: Any, other: Any) -> Any:
    """``item is other``; a bool of the run is True or False when its value is."""
    if type(item) is TracedNumber and item.kind is bool and type(other) is bool:
        return operator.eq(item, other)
    return item is other


def branch(
    test: Any, then: Block, other: Block | None, names: tuple[str, ...],
    rest: Block | None, behind: Any, level: str | None,
) -> Any:  # fmt: skip
    """``if test: then() else: other()``, and `rest` where they run to their ends; the outcome.

    names: those that the blocks bind and others read. behind: what runs after `rest`. level:
    whether the outermost rest ends the function or a trip of a loop, None where no jump is.
    """
    truth = asked(test)
    if type(truth) is bool:
        outcome = then() if truth else None if other is None else other()
        return rest() if outcome is None and rest is not None else outcome
    return load("control.branches").branch(truth, then, other, names, rest, behind, level)


def choose(test: Any, then: Block, other: Block) -> Any:
    """``then() if test else other()``"""
    truth = asked(test)
    if type(truth) is bool:
        return then() if truth else other()
    return load("control.branches").choose(truth, then, other)


def both(first: Any, *others: Block) -> Any:
    """``first and others[0]() and ...``"""
    if not others:
        return first
    truth = asked(first)
    if type(truth) is bool:
        return both(others[0](), *others[1:]) if truth else first
    return load("control.branches").choose(
        truth, lambda: both(others[0](), *others[1:]), lambda: first, others[0]
    )


def either(first: Any, *others: Block) -> Any:
    """``first or others[0]() or ...``"""
    if not others:
        return first
    truth = asked(first)
    if type(truth) is bool:
        return first if truth else either(others[0](), *others[1:])
    return load("control.branches").choose(
        truth, lambda: first, lambda: either(others[0](), *others[1:]), others[0]
    )


def negated(item: Any) -> Any:
    """``not item``"""
    truth = asked(item)
    return not truth if type(truth) is bool else load("control.asking").negation(truth)


def chained(names: tuple[str, ...], left: Any, right: Any, *others: Block) -> Any:
    """``left < right < others[0]() ...``, by names of operators"""
    found = _OPERATORS[names[0]](left, right)
    if not others:
        return found

    def following() -> Any:
        return chained(names[1:], right, others[0](), *others[1:])

    return both(found, following)


def repeat_while(
    test: Block, body: Block, otherwise: Block | None, names: tuple[str, ...],
    live: tuple[str, ...], leaves: tuple[str, ...], rest: Block | None, behind: Any,
    level: str | None,
) -> Any:  # fmt: skip
    """``while test(): body()``; the outcome, as of `branch`. live: names that are read after it.
    leaves: by which jumps the body may be left."""
    if current() is not None:
        after = names, rest, behind, level
        return load("control.python_loops").repeat_while(test, body, otherwise, live, leaves, after)
    while test():
        outcome = body()
        if outcome is not None and outcome[0] != "continue":
            return _left(outcome, rest)
    return _ended(otherwise, rest)


def repeat_for(
    items: Any, body: Block, otherwise: Block | None, names: tuple[str, ...],
    live: tuple[str, ...], leaves: tuple[str, ...], rest: Block | None, behind: Any,
    level: str | None,
) -> Any:  # fmt: skip
    """``for item in items: body(item)``, as `repeat_while`."""
    if current() is not None:
        after = names, rest, behind, level
        return load("control.python_loops").repeat_for(items, body, otherwise, live, leaves, after)
    for item in items:
        outcome = body(item)
        if outcome is not None and outcome[0] != "continue":
            return _left(outcome, rest)
    return _ended(otherwise, rest)


def _left(outcome: Any, rest: Block | None) -> Any:
    """After a jump out of a loop's body."""
    if outcome[0] == "return":
        return outcome
    return None if rest is None else rest()


def _ended(otherwise: Block | None, rest: Block | None) -> Any:
    """After a loop that ended by itself."""
    outcome = None if otherwise is None else otherwise()
    return rest() if outcome is None and rest is not None else outcome


def trips_of(function: Any, *args: Any) -> Any:
    """``range``, ``enumerate``, ``zip`` or ``reversed`` of a loop, by its trips where it may be a
    loop of the graph."""
    if current() is None or function not in (range, enumerate, zip, reversed):
        return function(*args)
    if function is range and not any(_is_traced_number(arg) for arg in args):
        return range(*args)
    return load("control.trips").trips_of(function, args)


def _is_traced_number(item: Any) -> bool:
    kind = type(item)
    return kind in _TRACED or kind is TracedSize


HOOKS: Mapping[str, Callable[..., Any]] = {
    "asked": asked, "Is": _OPERATORS["Is"], "IsNot": _OPERATORS["IsNot"],
    "branch": branch, "choose": choose, "both": both, "either": either, "negated": negated,
    "chained": chained, "repeat_while": repeat_while, "repeat_for": repeat_for,
    "trips_of": trips_of,
}  # fmt: skip
