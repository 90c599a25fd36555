"""A native module for other types: the functions of one module with some of its names changed.

    functions_for(rows, "u32", Key=u32)["sort_row"]

Invariants: a function of the result calls functions of the result; equal demands give the same
functions. The source is the module's.
Not here: translation (native/language).
"""

from __future__ import annotations

from functools import cache
from types import FunctionType, ModuleType
from typing import Any


@cache
def functions_for(pattern: ModuleType, suffix: str, **names: Any) -> dict[str, FunctionType]:
    """The functions of `pattern` with its names `names` bound otherwise, by their names there."""
    missing = names.keys() - vars(pattern).keys()
    if missing:
        raise KeyError(f"{pattern.__name__} has no {', '.join(sorted(missing))}")
    bound = {**vars(pattern), **names}
    made: dict[str, FunctionType] = {}
    for name, found in vars(pattern).items():
        if isinstance(found, FunctionType) and found.__module__ == pattern.__name__:
            copy = FunctionType(found.__code__, bound, f"{name}_{suffix}")
            copy.__module__ = pattern.__name__
            made[name] = bound[name] = copy
    return made
