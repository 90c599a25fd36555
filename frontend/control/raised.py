"""Exceptions of the user's in blocks that the run may not take.

A block is traced whether it is taken or not, so ``if x.min() < 0: raise ValueError`` would raise
in any case.

Not here: checks that fail a call when it runs (compiler ops `check`).
"""

from __future__ import annotations

import linecache
from types import TracebackType

from ..compiler.errors import TracemillError, error
from ..compiler.ir.graph import Location
from ..tracing.source import is_library_file


def explained(problem: Exception) -> Exception:
    """What to raise for an exception of a block: another one where a `raise` of the user's made
    it."""
    at: TracebackType | None = problem.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None or isinstance(problem, TracemillError):
        return problem
    code = at.tb_frame.f_code
    line = linecache.getline(code.co_filename, at.tb_lineno).strip()
    if is_library_file(code.co_filename) or "raise" not in line.split():
        return problem
    made = error(
        "TM101",
        "`raise` stands under a condition that is known only when the compiled function runs"
        f"\n    {line}",
        detail="a block is traced whether it is taken or not, so this would be raised in any case",
        place=Location(code.co_filename, at.tb_lineno, code.co_name),
        hint="check it before the call, or return a flag beside the result",
    )
    made.__cause__ = problem
    return made
