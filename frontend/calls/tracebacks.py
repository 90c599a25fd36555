"""Tracebacks as the user sees them: his own frames, none of ours.

An exception that reaches the user keeps the frames of his files (and of other libraries); all of
them are in its ``full_traceback``. Where ``TRACEMILL_LOG`` is set nothing is left out, nor of what
is a bug of ours: a report needs it.

Invariants: the exception is the same object; nothing is done to one that passes a function which
is being traced, or plain Python under `disable_jit`.
Not here: messages and the places they name (compiler/errors.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from ..settings import settings
from ..tracing.blame import entries, file_of, is_bug
from ..tracing.source import OWN_FOLDERS
from ..tracing.state import current

P = ParamSpec("P")
R = TypeVar("R")


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
    if not hasattr(problem, "full_traceback") and is_bug(problem):
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
    kept = [entry for entry in entries(whole) if not file_of(entry).startswith(OWN_FOLDERS)]
    made: TracebackType | None = None
    for entry in reversed(kept):
        made = TracebackType(made, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return made
