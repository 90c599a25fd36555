"""What code without source reads from the objects it can reach.

Its reads of attributes are not seen, so they are taken for granted beforehand: attributes of all
names that the code, its methods and its properties mention, on every object that was there before
the trace. Arrays in those objects, and in lists and dicts, are traced ones while the trace runs.

Invariants: when the trace has ended each object holds what it held, or what the code put there.
Not here: code with source (rewrite.py), globals and free variables (substitution.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from ..tracing.capture import capture
from ..tracing.source import is_library_file
from ..tracing.state import Trace
from .bytecode import nested

Note = Callable[[FunctionType, Trace], None]
_NOTHING = object()


def show_reachable(function: FunctionType, trace: Trace, note: Note) -> None:
    """Note what `function` may read. note: does so for the globals of its methods."""
    paths = trace.paths
    if paths is None:
        return
    codes = [function.__code__]
    names = _names(function.__code__)
    seen = {function.__code__}
    count = -1
    while count != len(seen) + len(paths.found()):
        count = len(seen) + len(paths.found())
        for owner in paths.found():
            for name in [] if _is_closed(owner) else sorted(names):
                for method in _read(trace, owner, name):
                    if method.__code__ not in seen:
                        seen.add(method.__code__)
                        codes.append(method.__code__)
                        names |= _names(method.__code__)
                        note(method, trace)
    for owner in paths.found():
        _show_arrays(trace, owner, names)


def _names(code: CodeType) -> set[str]:
    return {name for inner in nested(code) for name in inner.co_names}


def _is_closed(owner: Any) -> bool:
    """Whether nothing of the user's is found at its attributes."""
    return isinstance(
        owner, ModuleType | FunctionType | np.ndarray | np.ufunc | list | tuple | type(len)
    )


def _read(trace: Trace, owner: Any, name: str) -> list[FunctionType]:
    """Note an attribute; the functions that run when it is used."""
    static = inspect.getattr_static(owner, name, _NOTHING)
    if static is _NOTHING:
        return []
    if isinstance(static, property):
        static = static.fget
    if isinstance(static, classmethod | staticmethod):
        static = static.__func__
    if isinstance(static, FunctionType):
        return [] if is_library_file(static.__code__.co_filename) else [static]
    try:
        found = getattr(owner, name)
    except Exception:  # noqa: BLE001  the code will meet it if it reads this
        return []
    trace.paths.attribute(owner, name, found)
    return []


def _show_arrays(trace: Trace, owner: Any, names: set[str]) -> None:
    """Put traced arrays in place of those that an object or container holds."""
    if type(owner) is list:
        _show_in(trace, owner, dict(enumerate(owner)))
    elif isinstance(owner, dict):
        _show_in(trace, owner, dict(owner))
    elif not _is_closed(owner) and not isinstance(owner, type):
        held = getattr(owner, "__dict__", None)
        if type(held) is dict:
            _show_in(trace, held, {name: held[name] for name in names if name in held})


def _show_in(trace: Trace, place: Any, items: dict[Any, Any]) -> None:
    for key, item in items.items():
        if type(item) is np.ndarray:
            place[key] = capture(trace, item)
            trace.shown.append((place, key, item, place[key]))
