"""Transforms outside of traces: compiled once for each function they are applied to.

Invariants: what is compiled is kept for the functions used last, so a function that is made anew
for every call is compiled anew.
Not here: what transforms do in a trace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..calls.tracebacks import shorten
from ..compiled import jit_of_library
from ..intercept.callee import callee
from ..tracing.source import take_for_user_code

_KEPT = 128
Step = Callable[..., Any]


def run_compiled(step: Step, function: Callable[..., Any], *args: Any) -> Any:
    """``step(function, *args)``, compiled."""
    try:
        found = _kept(step, function)
    except TypeError:  # the function has no hash
        found = _compiled(step, function)
    try:
        return found(*args)
    except BaseException as problem:
        shorten(problem)
        raise


def _compiled(step: Step, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        return step(function, *args)

    run.__name__ = f"{step.__name__.strip('_')}_of_{getattr(function, '__name__', 'function')}"
    made: Callable[..., Any] = jit_of_library(run)
    return made


_kept = functools.lru_cache(maxsize=_KEPT)(_compiled)


def called(function: Callable[..., Any], *args: Any) -> Any:
    """The step that calls the function."""
    take_for_user_code(function)
    return callee(function)(*args)
