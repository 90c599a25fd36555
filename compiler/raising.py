"""Exceptions of the user's as text: what a check of a graph carries, and the exception again.

    ValueError("x is negative")    <->    "builtins:ValueError", "('x is negative',)"
    ShapeError [TM204] ...         <->    "TM204", "('add needs equal ...', detail, hint)"

Invariants: only classes of exceptions are made again, of modules that are loaded.
Not here: which exceptions become checks (the frontend), what a failed check is (the op `check`).
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from .errors import CODES, TracemillError, error


def as_text(problem: Exception) -> tuple[str, str] | None:
    """The class of an exception and its arguments; None for one that they do not make again."""
    if isinstance(problem, TracemillError):
        return problem.code, repr((problem.summary, problem.detail, problem.hint))
    kind, arguments = type(problem), repr(problem.args)
    name = f"{kind.__module__}:{kind.__qualname__}"
    try:
        again = _made(name, arguments)
        alike = type(again) is kind and again.args == problem.args and str(again) == str(problem)
    except Exception:  # noqa: BLE001  a class of the user's, whose code may do anything
        return None
    return (name, arguments) if alike and _state(again) == _state(problem) else None


def from_text(name: str, arguments: str, place: object) -> Exception:
    """The exception, with a note of the place; TraceError's kin where its class is gone."""
    if name in CODES:
        summary, detail, hint = ast.literal_eval(arguments)
        return error(name, summary, place=place, detail=detail, hint=hint)
    try:
        made = _made(name, arguments)
    except (AttributeError, KeyError, SyntaxError, TypeError, ValueError):
        return error(
            "TM244", f"the program raised {name.partition(':')[2]}{arguments}", place=place
        )
    made.add_note(f"raised at {place}")
    return made


def _made(name: str, arguments: str) -> Exception:
    module, _, path = name.partition(":")
    found: Any = sys.modules[module]
    for part in path.split("."):
        found = getattr(found, part)
    if not (isinstance(found, type) and issubclass(found, Exception)):
        raise TypeError(f"{name} is no exception")
    made: Exception = found(*ast.literal_eval(arguments))
    return made


def _state(problem: Exception) -> dict[str, Any]:
    return {name: value for name, value in vars(problem).items() if name != "__notes__"}
