"""Special methods of the user's classes: what Python calls by itself runs intercepted, too.

``a + b`` calls ``type(a).__add__``, ``len(a)`` its ``__len__``, a loop its ``__iter__``: such a
method reads globals, attributes and arrays, and chooses and repeats, as any function does.

Invariants: outside a trace, and for classes of Python, NumPy and libraries, nothing is changed.
Not here: the protocols that call them (special_methods.py, iteration.py, attributes.py,
plain_flow.py for truth), calls and constructors (callee.py).
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.source import runs_intercepted
from ..tracing.state import current
from ..tracing.tensor import TracedArray, TracedScalar
from .callee import callee

# Classes that have no such methods, the frequent ones: others are looked at.
PLAIN: frozenset[type] = frozenset((
    TracedArray, TracedScalar, TracedNumber, TracedSize, np.ndarray, np.float64, np.float32,
    np.int64, np.bool_, int, float, complex, bool, str, bytes, list, tuple, dict, set, frozenset,
    range, slice, type(None),
))  # fmt: skip


def method_of(kind: type, name: str) -> FunctionType | None:
    """The special method of a class, if it is a function of the user's."""
    if kind in PLAIN:
        return None
    found = held_by(kind, name)
    own = type(found) is FunctionType and runs_intercepted(found.__code__)
    return found if own else None


def held_by(kind: type, name: str) -> Any:
    """What a class, or one it is made of, holds under a name; None where none does."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def user_call(owner: Any, name: str, *args: Any) -> Any:
    """What the user's special method of this name gives; NotImplemented where there is none."""
    method = None if current() is None else method_of(type(owner), name)
    return NotImplemented if method is None else callee(method)(owner, *args)
