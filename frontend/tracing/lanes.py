"""Which lane a mapped function runs in, for what has to differ between lanes: random numbers.

Invariants: lanes of functions mapped in each other are counted together, the inner ones fastest.
Not here: mapping (transforms/lanes.py), draws (random/generator.py).
"""

from __future__ import annotations

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass

from .memory import lifted_value
from .state import Trace


@dataclass(frozen=True, slots=True)
class Lane:
    """number: which one, and count: how many there are, as values of `trace` (i64)."""

    trace: Trace
    number: Value
    count: Value


def lane_of(trace: Trace) -> tuple[Value, Value] | None:
    """Number and count of lanes around this trace; None where nothing is mapped."""
    at: Trace | None = trace
    while at is not None:
        if at.lanes is not None:
            lane: Lane = at.lanes
            number = lifted_value(trace, lane.number, lane.trace)
            return number, lifted_value(trace, lane.count, lane.trace)
        at = at.outer
    return None
