"""Values of an enclosing trace, used in an inner one.

Invariants: a value is lifted once into each trace between its own and the one that uses it.
Not here: arrays from outside all traces (capture.py).
"""

from __future__ import annotations

from typing import Any

from tracemill.compiler.ir.graph import Value

from .state import Trace, fail


def lift(trace: Trace, item: Any) -> Value:
    """A value of an enclosing trace as an input of this one. Raises TraceError for others."""
    chain = [trace]
    while chain[-1] is not item.tracing:
        outer = chain[-1].outer
        if outer is None:
            item.tracing.check_alive(item.made)
            raise fail(
                "TM103",
                f"{item!r} belongs to another trace that is still running",
                hint="pass it as an argument",
            )
        chain.append(outer)
    item.tracing.check_alive(item.made)
    if trace.is_inside(item.tracing) and hasattr(item, "seen_by"):
        seen: Value = item.seen_by(trace).value  # its memory may be written in between
        return seen
    value: Value = item.value
    for inner in reversed(chain[:-1]):
        value = inner.lifted(value)
    return value
