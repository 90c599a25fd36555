"""Attributes in intercepted code: what is read is noted and shown, what computes it intercepted.

An attribute may be a function of the user's in disguise: a property, a `cached_property`,
another descriptor, `__getattr__`, `__setattr__`. These run as functions that are called do.

Invariants: a real array that intercepted code meets is captured before anything is done with it.
Not here: what is noted, and how it is read again (tracing/paths.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..numpy.cut import Cut
from ..numpy.operands import is_traced
from ..numpy.selection import Selection
from ..tracing.access import Access, HeldObject
from ..tracing.capture import capture
from ..tracing.paths import CONTAINERS
from ..tracing.source import is_library_file, runs_intercepted
from ..tracing.state import Trace, current, stored_outside
from ..tracing.tensor import TracedArray, TracedScalar
from .callee import callee
from .special_methods import IN_PLACE
from .user_methods import held_by, method_of, user_call

_ARRAYS: frozenset[type] = frozenset((TracedArray, Selection, Cut))


def load(item: Any) -> Any:
    """A global or free variable: an array becomes a traced one, a container may be looked at."""
    if isinstance(item, CONTAINERS):
        trace = current()
        if trace is not None and trace.paths is not None:
            trace.paths.read(item)
        return item
    return shown(item)


def shown(item: Any) -> Any:
    """An array as a traced one; anything else as it is."""
    if type(item) in _ARRAYS or not isinstance(item, np.ndarray):
        return item
    trace = current()
    return item if trace is None else capture(trace, item)


def attribute(owner: Any, name: str) -> Any:
    """``owner.name``"""
    return load(attribute_base(owner, name))


def attribute_base(owner: Any, name: str) -> Any:
    """``owner.name`` of which an attribute or item is taken."""
    kind = type(owner)
    if kind is ModuleType:
        found = getattr(owner, name)
        return found if callable(found) else _module_attribute(owner, name, found)
    if kind is TracedArray or kind is TracedScalar:
        return getattr(owner, name)
    trace = current()
    if trace is None:
        return getattr(owner, name)
    if kind is np.ndarray:
        return getattr(capture(trace, owner), name)
    made = _computed(trace, owner, name)
    if made is not NotImplemented:
        return made
    found = getattr(owner, name)
    if trace.paths is not None and type(found) is not TracedArray:
        trace.paths.attribute(owner, name, found)
    return shown(found)


def _module_attribute(module: ModuleType, name: str, found: Any) -> Any:
    trace = current()
    if trace is None or trace.paths is None or isinstance(found, ModuleType):
        return found
    file = getattr(module, "__file__", None)
    if file is not None and not is_library_file(file):
        read = Access(HeldObject(module)).attribute(name)
        trace.paths.note(found, f"{module.__name__}.{name}", read)
    return shown(found)


def _computed(trace: Trace, owner: Any, name: str) -> Any:
    """What a function of the user's makes of ``owner.name``; NotImplemented where none does."""
    kind = type(owner)
    made = user_call(owner, "__getattribute__", name)
    if made is not NotImplemented:
        return made
    descriptor = held_by(kind, name)
    items = getattr(owner, "__dict__", ())
    if type(descriptor) is property:
        if _is_user_function(descriptor.fget):
            return callee(descriptor.fget)(owner)
    elif type(descriptor) is functools.cached_property:
        if name not in items and _is_user_function(descriptor.func):
            return _cached(trace, owner, name, descriptor.func)
    elif method_of(type(descriptor), "__get__") is not None:
        if name not in items or hasattr(type(descriptor), "__set__"):
            return user_call(descriptor, "__get__", owner, kind)
    elif descriptor is None and name not in items and method_of(kind, "__getattr__") is not None:
        return user_call(owner, "__getattr__", name)
    return NotImplemented


def _cached(trace: Trace, owner: Any, name: str, function: Any) -> Any:
    """A `cached_property` that is asked for the first time. An object from outside the trace
    does not keep what the trace computes: it is computed by every run."""
    made = callee(function)(owner)
    if trace.paths is None or not trace.paths.is_captured(owner):
        owner.__dict__[name] = made
    return made


def _is_user_function(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and runs_intercepted(code)


def store_attribute(value: Any, owner: Any, name: str) -> None:
    """``owner.name = value``"""
    trace = current()
    if trace is not None and _takes(owner, name, value):
        return
    if trace is not None and trace.paths is not None and trace.paths.is_captured(owner):
        trace.paths.wrote(owner, name)
        if is_traced(value):
            raise stored_outside(name)
    setattr(owner, name, value)


def _takes(owner: Any, name: str, value: Any) -> bool:
    """Whether a function of the user's takes what is assigned."""
    kind = type(owner)
    setter = method_of(kind, "__setattr__")
    if setter is not None and setter.__code__.co_filename != "<string>":  # of a frozen dataclass
        callee(setter)(owner, name, value)
        return True
    descriptor = held_by(kind, name)
    if type(descriptor) is property and _is_user_function(descriptor.fset):
        callee(descriptor.fset)(owner, value)
        return True
    return user_call(descriptor, "__set__", owner, value) is not NotImplemented


def set_attribute(owner: Any, name: str, value: Any) -> None:
    """setattr"""
    store_attribute(value, owner, name)


def augment_attribute(owner: Any, name: str, operation: str) -> Callable[[Any], None]:
    """``owner.name += value`` and its like, to be called with the value: what is there now is
    read before the value is computed."""
    trace = current()
    made = NotImplemented if trace is None else _computed(trace, owner, name)
    found = getattr(owner, name) if made is NotImplemented else made
    held = isinstance(found, np.ndarray) and not is_traced(found) and trace is not None
    read = attribute(owner, name) if held else found

    def update(value: Any) -> None:
        made = IN_PLACE[operation](read, value)
        if not held:
            store_attribute(made, owner, name)

    return update


def attributes_of(*owner: Any) -> Any:
    """vars"""
    return attribute(owner[0], "__dict__") if owner else vars()


STAND_INS: dict[Any, Callable[..., Any]] = {setattr: set_attribute, vars: attributes_of}
