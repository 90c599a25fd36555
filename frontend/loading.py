"""Modules of this package loaded when they are asked for, by the façade and by the doors.

Invariants: the garbage collector rests meanwhile.
Not here: which modules those are (`__init__`, calls/doors.py).
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from .compiler.uncollected import here_to_stay


def load(name: str) -> ModuleType:
    """The module of that name below tracemill, loaded if it is not."""
    with here_to_stay():
        return import_module(f".{name}", __package__)
