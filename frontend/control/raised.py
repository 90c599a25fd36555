"""Exceptions in blocks that the run may not take.

A block is traced whether it is taken or not. One that ends with a ``raise``, or with a line that
Python or NumPy would refuse for these sizes, becomes a check of the test, and what follows is
traced as if it were not taken, for behind it the test is false. One that does something else before
stays a block, whose check fails when it comes to its end:

    if x.min() < 0: raise ValueError(..)    ->    check(not x.min() < 0), raising ValueError(..)
    if x[0] > 5: y = x + np.ones(3)         ->    check(not x[0] > 5), raising ShapeError [TM204]

Invariants: a block that a ``try`` stands around is refused, which might catch what it raises. A
call that raises has written nothing, whatever stands before it.
Not here: what happens when a check fails (calls/failures.py), the exception as text
(compiler/raising.py), whose mistake an exception is (tracing/blame.py), an index that leaves its
axis (numpy/positions.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType

import numpy as np

from ..compiler.errors import error
from ..compiler.ir.graph import Location, Value
from ..compiler.raising import as_text
from ..intercept.source_code import is_inside_try
from ..tracing import run
from ..tracing.blame import entries, found_at, raised_at
from ..tracing.source import source_line
from ..tracing.state import Trace

_TRACED = re.compile(r"<traced [^<>]*>")  # in a text that was made while tracing


def explained(problem: Exception, reason: str = "") -> Exception:
    """What to raise for an exception of a block: another one where a `raise` of the user's made
    it."""
    at = raised_at(problem)
    if at is None:
        return problem
    place = _place(at)
    made = error(
        "TM101",
        "`raise` stands under a condition that is known only when the compiled function runs"
        f"\n    {source_line(place)}",
        detail=reason
        or "a block is traced whether it is taken or not, so this would be raised in any case",
        place=place,
        hint="check it before the call, or return a flag beside the result",
    )
    made.__cause__ = problem
    return made


class Failing:
    """What a block raised, as a check raises it. Raises TraceError where it cannot be."""

    def __init__(self, problem: Exception) -> None:
        at = raised_at(problem) or found_at(problem)
        text = as_text(problem)
        reason = ""
        if at is None:
            raise problem
        if text is None:
            reason = "its arguments are not plain numbers and texts, or its class is a local one"
        elif any(is_inside_try(*place) for place in _lines(problem)):
            reason = "`try` stands around it, and catches only what is raised while tracing"
        if text is None or reason:
            raise explained(problem, reason) from problem.__cause__
        self._raises, arguments = text
        self._arguments = _TRACED.sub("...", arguments)
        self._place = _place(at)

    def check(self, trace: Trace, ok: Value) -> None:
        """Check `ok`, else raise it."""
        made = {"raises": self._raises, "arguments": self._arguments}
        token = trace.emit("check", ok, code="TM244", **made)
        token.node.location = self._place


def fails(trace: Trace, problem: Exception) -> bool:
    """Let the run raise what ended a function while it was traced, if something stands before it
    that may fail or be seen; whether that was done."""
    if not trace.builder.tokens:
        return False
    try:
        failing = Failing(problem)
    except Exception:  # noqa: BLE001  raised now, as it is
        return False
    failing.check(trace, trace.builder.constant(np.bool_(False)))
    return True


def is_seen(block: Trace) -> bool:
    """Whether a block writes to something, shows something, or checks for another exception: then
    it does not only fail."""
    nodes = [token.node for token in block.builder.tokens if token.node is not None]
    shown = any("raises" in node.attrs or not node.op.facts.can_fail for node in nodes)
    return shown or bool(block.assigned)


def _place(at: TracebackType) -> Location:
    code = at.tb_frame.f_code
    return Location(code.co_filename, at.tb_lineno, code.co_name)


def _lines(problem: Exception) -> Iterator[tuple[str, int]]:
    """The lines of the user's that an exception would pass on its way out of the trace."""
    for at in entries(problem.__traceback__):
        yield at.tb_frame.f_code.co_filename, at.tb_lineno
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    while frames and frames.pop().f_code is not run.trace.__code__:
        pass  # what is around the outermost trace sees the call fail
    for frame in frames:
        yield frame.f_code.co_filename, frame.f_lineno
