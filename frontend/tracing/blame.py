"""Whose an exception is that comes out of a function which is traced: the program's, or ours.

Invariants: tracebacks are read, never changed.
Not here: what is done about it (calls/tracebacks.py, control/raised.py).
"""

from __future__ import annotations

import dis
import os
from types import TracebackType
from typing import Any

from ..compiler.errors import (
    AxisError,
    BoundsError,
    BrokenGraph,
    CompileError,
    GraphError,
    ShapeError,
    TracemillError,
)
from .source import OWN_FOLDERS, is_library_file

_OUR_BUGS = (BrokenGraph, CompileError, GraphError)
_RAISE = dis.opmap["RAISE_VARARGS"]
# What the frontend raises because Python and NumPy would; its handlers may leave that to NumPy.
_HANDLERS = tuple(
    os.path.join(OWN_FOLDERS[0], name, "")
    for name in ("numpy", "intercept", "tracing", "nn", "optim", "random", "special")
)
_HOOKS = os.path.join(OWN_FOLDERS[0], "intercept", "")  # which do the user's own subscripts
_PYTHONS = (
    TypeError, ValueError, IndexError, ArithmeticError, NotImplementedError, AttributeError,
    MemoryError, KeyboardInterrupt,
)  # fmt: skip
# Mistakes that NumPy or Python would find in the same line when it runs. Of others it is not
# known whether they are ours: what cannot be traced, or an option that is not supported.
_FOUND_WHEN_RUN = (LookupError, ArithmeticError)
_FOUND_IN_SHAPES = (ShapeError, AxisError, BoundsError)


def entries(whole: TracebackType | None) -> list[TracebackType]:
    """The entries of a traceback, the outermost first."""
    found = []
    while whole is not None:
        found.append(whole)
        whole = whole.tb_next
    return found


def file_of(entry: TracebackType) -> Any:
    """The file of the code of an entry."""
    return entry.tb_frame.f_code.co_filename


def is_bug(problem: BaseException) -> bool:
    """Whether it comes from a mistake of ours rather than from the user's or the world's."""
    if isinstance(problem, TracemillError):
        return isinstance(problem, _OUR_BUGS)
    found = entries(problem.__traceback__)
    if not found or not file_of(found[-1]).startswith(OWN_FOLDERS):
        return False
    if isinstance(problem, KeyError):
        return not file_of(found[-1]).startswith(_HOOKS)
    if not isinstance(problem, _PYTHONS):
        return True
    handled = file_of(found[-1]).startswith(_HANDLERS)
    return not _raises(found[-1]) and not handled and isinstance(problem, Exception)


def raised_at(problem: BaseException) -> TracebackType | None:
    """Where a ``raise`` or ``assert`` in the user's code made an exception; None where something
    else did."""
    found = entries(problem.__traceback__)
    if not found or isinstance(problem, TracemillError) or is_library_file(file_of(found[-1])):
        return None
    return found[-1] if _raises(found[-1]) else None


def found_at(problem: BaseException) -> TracebackType | None:
    """The line of the user's that Python or NumPy would refuse when it runs, for values of the
    same sizes; None where it is not known that they would."""
    if isinstance(problem, TracemillError):
        known = isinstance(problem, _FOUND_IN_SHAPES)
    else:
        known = isinstance(problem, _FOUND_WHEN_RUN) and not is_bug(problem)
    users = [at for at in entries(problem.__traceback__) if not is_library_file(file_of(at))]
    return users[-1] if known and users else None


def _raises(entry: TracebackType) -> bool:
    """Whether a `raise` stands there, and not what the line calls."""
    return entry.tb_frame.f_code.co_code[entry.tb_lasti] == _RAISE
