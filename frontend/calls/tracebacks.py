"""Tracebacks as the user sees them: his own frames, none of ours.

An exception that reaches the user keeps the frames of his files (and of other libraries); all of
them are in its ``full_traceback``. Where ``TRACEMILL_LOG`` is set nothing is left out, nor of what
is a bug of ours: a report needs it.

Invariants: the exception is the same object; nothing is done to one that passes a function which
is being traced, or plain Python under `disable_jit`.
Not here: messages and the places they name (compiler/errors.py).
"""

from __future__ import annotations

import dis
import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from ..compiler.errors import BrokenGraph, CompileError, GraphError, TracemillError
from ..settings import settings
from ..tracing.source import OWN_FOLDERS
from ..tracing.state import current

P = ParamSpec("P")
R = TypeVar("R")

_OUR_BUGS = (BrokenGraph, CompileError, GraphError)
_RAISE = dis.opmap["RAISE_VARARGS"]
# What the frontend raises because Python and NumPy would; its handlers may leave that to NumPy.
_HANDLERS = tuple(
    os.path.join(OWN_FOLDERS[0], name, "")
    for name in ("numpy", "intercept", "tracing", "nn", "optim", "random", "special")
)
_PYTHONS = (
    TypeError, ValueError, IndexError, ArithmeticError, NotImplementedError, AttributeError,
    MemoryError, KeyboardInterrupt,
)  # fmt: skip


def for_users(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose exceptions show no frames of ours."""

    @functools.wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*args, **keywords)
        except BaseException as problem:
            shorten(problem)
            raise

    return call


def shorten(problem: BaseException) -> None:
    """Leave out the frames of ours; a bare ``raise`` must follow, which adds none."""
    if current() is not None or settings().log:
        return
    if not hasattr(problem, "full_traceback") and _is_bug(problem):
        return
    seen: set[int] = set()
    at: BaseException | None = problem
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        whole = at.__traceback__
        at.__traceback__ = _of_users(whole)
        if at is problem and not hasattr(at, "full_traceback"):
            at.full_traceback = whole  # type: ignore[attr-defined]
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)


def _of_users(whole: TracebackType | None) -> TracebackType | None:
    """A traceback of the entries in files that are not ours."""
    kept = [entry for entry in _entries(whole) if not _file(entry).startswith(OWN_FOLDERS)]
    made: TracebackType | None = None
    for entry in reversed(kept):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made


def _is_bug(problem: BaseException) -> bool:
    """Whether it comes from a mistake of ours rather than from the user's or the world's."""
    if isinstance(problem, TracemillError):
        return isinstance(problem, _OUR_BUGS)
    entries = _entries(problem.__traceback__)
    if not entries or not _file(entries[-1]).startswith(OWN_FOLDERS):
        return False
    if not isinstance(problem, _PYTHONS):
        return True
    where = entries[-1]
    code, file = where.tb_frame.f_code, _file(where)
    raised = code.co_code[where.tb_lasti] == _RAISE  # and not by what the line calls
    return not raised and not file.startswith(_HANDLERS) and isinstance(problem, Exception)


def _entries(whole: TracebackType | None) -> list[TracebackType]:
    found = []
    while whole is not None:
        found.append(whole)
        whole = whole.tb_next
    return found


def _file(entry: TracebackType) -> Any:
    return entry.tb_frame.f_code.co_filename
