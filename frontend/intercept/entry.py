"""The door of interception: the function to run in place of the user's.

Not here: how.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..tracing.source import take_for_user_code
from ..tracing.state import Trace
from . import attributes, python_builtins
from .callee import callee, set_hooks
from .hooks import HOOKS

set_hooks(HOOKS, {**python_builtins.STAND_INS, **attributes.STAND_INS})


def intercepted(function: Callable[..., Any], trace: Trace) -> Callable[..., Any]:
    """What to call instead of `function`, which is being traced in `trace` (the current one)."""
    take_for_user_code(function)
    inner = getattr(function, "__wrapped__", None) if hasattr(function, "dispatcher") else None
    trace.inlined.append(inner or function)
    if trace.paths is not None:
        trace.paths.add_bound(inner or function)
    found: Callable[..., Any] = callee(inner or function)
    return found
