"""`while` and `for` of a function that is traced: run while tracing, or made loops of the graph.

A loop is of the graph where its test or the number of its trips is known only at run time, or
where such a test leaves it. Others run as Python runs them. Whether a loop is left in that way
shows when a trip is traced: so the first trips of one that may be left are tried, and what they
did is forgotten, before they run.

Invariants: a loop that can be run at all is run: where one of the graph does not fit, and the
example call's numbers can be guarded, these decide.
Not here: the node (rolled.py); loops outside of traces (intercept/plain_flow.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..intercept.plain_flow import asked
from ..numpy.operands import is_traced, value_of
from ..tracing.concrete import can_be_fixed
from ..tracing.integer import TracedSize
from ..tracing.regions import OpenRegion, Regions
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import TracedArray
from .outcomes import NeedsRolling
from .places import can_be_tried, contents, places, put_back
from .rolled import After, Loop, Small, rolled
from .trips import Trips, of_items

Block = Callable[..., Any]
_TRIED = 3  # trips
_FEW = 16  # trips that run while tracing: their operations are better in one kernel than in a loop
_FEW_OPERATIONS = 512  # of all trips, that do so too


def repeat_while(
    test: Block, body: Block, otherwise: Block | None, live: tuple[str, ...],
    leaves: tuple[str, ...], after: After,
) -> Any:  # fmt: skip
    """See intercept/plain_flow.py."""
    loop = Loop(test, body, otherwise, live, leaves, after)
    trip = 0
    fixed = False
    tried = _TRIED if can_be_tried(loop.blocks) else 0
    problem: Exception | None = None
    while True:
        guards = running().sizes.guards
        last = guards[-1] if guards else None
        truth = asked(test())
        if trip == _FEW and tried and truth is True and guards and guards[-1] is not last:
            going_on, _ = _attempt(loop, True, None)  # a size tells how many trips there are
            if going_on is not None:
                return going_on()
        can_be_guarded = type(truth) is not bool and can_be_fixed(running(), value_of(truth))
        fixed = fixed or (can_be_guarded and not tried)
        if type(truth) is not bool and not fixed:
            going_on, problem = _attempt(loop, truth, None)
            if going_on is not None:
                return going_on()
            fixed = True
        if problem is not None and type(truth) is not bool and not can_be_guarded:
            raise problem
        if not truth:
            return _ended(loop)
        if leaves and trip < tried and problem is None and _is_left(loop, body):
            going_on, problem = _attempt(loop, True, None)
            if going_on is not None:
                return going_on()
        outcome = _trip(body, problem)
        if outcome is not None and outcome[0] != "continue":
            return _left(loop, outcome)
        trip += 1


def repeat_for(
    items: Any, body: Block, otherwise: Block | None, live: tuple[str, ...],
    leaves: tuple[str, ...], after: After,
) -> Any:  # fmt: skip
    """See intercept/plain_flow.py."""
    loop = Loop(None, body, otherwise, live, leaves, after)
    problem: Exception | None = None
    tried = _TRIED if can_be_tried(loop.blocks) else 0
    trips = items if type(items) is Trips else of_items(items)
    if trips is not None:
        if _are_many(trips.count) and (tried or not _can_be_plain(trips.count)):
            least = _FEW_OPERATIONS if type(trips.count) is int else 0
            going_on, problem = _attempt(loop, None, trips, least)
            if going_on is not None:
                return going_on()
            if problem is not None and not _can_be_plain(trips.count):
                raise problem
        items = trips.plain()
    tried = tried if leaves and type(items) in (range, TracedArray) else 0
    for trip, item in enumerate(items):
        run = partial(body, item)
        if trip < tried and problem is None and _is_left(loop, run):
            going_on, problem = _attempt(loop, None, of_items(items, trip))
            if going_on is not None:
                return going_on()
        outcome = _trip(run, problem)
        if outcome is not None and outcome[0] != "continue":
            return _left(loop, outcome)
    return _ended(loop)


def _attempt(
    loop: Loop, first: Any, trips: Trips | None, least: int = 0
) -> tuple[Callable[[], Any] | None, Exception | None]:
    """The loop in the graph; or why it does not fit: it may still run while tracing. least: of
    all its trips, operations that are worth a loop."""
    try:
        return rolled(loop, first, trips, least), None
    except Small:
        return None, None
    except Exception as problem:  # noqa: BLE001  a body that needs its number; trips not made
        return None, problem


def _can_be_plain(count: Any) -> bool:
    if type(count) is TracedSize or not is_traced(count):
        return True
    return can_be_fixed(running(), value_of(count))


def _are_many(count: Any) -> bool:
    """Whether a loop of so many trips is one of the graph where it can be. In an example call that
    makes none nothing tells their types."""
    if type(count) is TracedSize:
        return bool(count >= 1)
    return type(count) is not int or count > _FEW


def _left(loop: Loop, outcome: Any) -> Any:
    _, rest, _, _ = loop.after
    if outcome[0] == "return":
        return outcome
    return None if rest is None else rest()


def _ended(loop: Loop) -> Any:
    _, rest, _, _ = loop.after
    outcome = None if loop.otherwise is None else loop.otherwise()
    return rest() if outcome is None and rest is not None else outcome


def _trip(body: Block, problem: Exception | None) -> Any:
    """A trip that runs while the function is traced. problem: why the loop is none of the graph,
    if that was tried."""
    try:
        with _running_now(running()):
            return body()
    except NeedsRolling:
        raise problem or fail(
            "TM101",
            "a loop that runs while the function is traced is left on a condition that is known "
            "only when the compiled function runs",
            hint="let it be left in the same way from its first trip on, over a range or an "
            "array, or set a variable and leave the trips after it empty",
        ) from None


def _is_left(loop: Loop, body: Block) -> bool:
    """Whether a trip leaves its loop on a traced test; nothing of it stays."""
    trace = running()
    watched = places(loop.blocks, loop.live)
    before = contents(watched)
    with Regions(trace) as regions:
        opened = OpenRegion(regions, "trip")
        opened.trace.loop = "trial"
        try:
            opened.run(body)
        except NeedsRolling:
            return True
        except Exception:  # noqa: BLE001  it will fail when it runs
            return False
        finally:
            put_back(watched, before)
    return False


@contextmanager
def _running_now(trace: Trace) -> Iterator[None]:
    outside, trace.loop = trace.loop, "now"
    try:
        yield
    finally:
        trace.loop = outside
