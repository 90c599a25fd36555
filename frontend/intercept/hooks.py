"""What the hooks in rewritten code do: show traced things in place of NumPy's and Python's.

Each behaves as plain Python when no trace runs in this thread, so a rewritten function that
outlives its trace is an ordinary function.

Invariants: a real array that intercepted code meets is captured before anything is done with it.
Not here: which function stands for which (callee.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from ..numpy.cut import Cut
from ..numpy.operands import is_traced
from ..numpy.selection import Selection
from ..tracing.access import Access, HeldObject
from ..tracing.capture import capture
from ..tracing.number import TracedNumber
from ..tracing.paths import CONTAINERS
from ..tracing.source import is_library_file
from ..tracing.state import Trace, current, stored_outside
from ..tracing.tensor import TracedArray, TracedScalar
from . import plain_flow
from .callee import callee

_IN_PLACE: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": operator.iadd, "Sub": operator.isub, "Mult": operator.imul,
    "Div": operator.itruediv, "FloorDiv": operator.ifloordiv, "Mod": operator.imod,
    "Pow": operator.ipow, "MatMult": operator.imatmul, "BitAnd": operator.iand,
    "BitOr": operator.ior, "BitXor": operator.ixor, "LShift": operator.ilshift,
    "RShift": operator.irshift,
}  # fmt: skip
_NAMED = (TracedArray, TracedScalar, TracedNumber)
_ARRAYS: frozenset[type] = frozenset((TracedArray, Selection, Cut))


def load(item: Any) -> Any:
    """A global or free variable: an array becomes a traced one, a container may be looked at."""
    if isinstance(item, CONTAINERS):
        trace = current()
        if trace is not None and trace.paths is not None:
            trace.paths.read(item)
        return item
    return _shown(item)


def _shown(item: Any) -> Any:
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
    descriptor = getattr(kind, name, None)
    if type(descriptor) is property and _is_user_function(descriptor.fget):
        return callee(descriptor.fget)(owner)
    found = getattr(owner, name)
    if trace.paths is not None and type(found) is not TracedArray:
        trace.paths.attribute(owner, name, found)
    return _shown(found)


def _module_attribute(module: ModuleType, name: str, found: Any) -> Any:
    trace = current()
    if trace is None or trace.paths is None or isinstance(found, ModuleType):
        return found
    file = getattr(module, "__file__", None)
    if file is not None and not is_library_file(file):
        read = Access(HeldObject(module)).attribute(name)
        trace.paths.note(found, f"{module.__name__}.{name}", read)
    return _shown(found)


def _is_user_function(function: Any) -> bool:
    code = getattr(function, "__code__", None)
    return code is not None and not is_library_file(code.co_filename)


def item(owner: Any, key: Any) -> Any:
    """``owner[key]``"""
    return load(item_base(owner, key))


def item_base(owner: Any, key: Any) -> Any:
    """``owner[key]`` of which an attribute or item is taken."""
    kind = type(owner)
    if kind is TracedArray:
        return owner[key]
    trace = current()
    if trace is None:
        return owner[key]
    if kind is np.ndarray:
        return capture(trace, owner)[key]
    if kind in (list, tuple) and type(key) in _NAMED and not isinstance(key, int):
        key = operator.index(key)
    load(owner)
    return _shown(owner[key])


def store_item(value: Any, owner: Any, key: Any) -> None:
    """``owner[key] = value``"""
    trace = current()
    if trace is not None:
        owner = _to_be_written(trace, owner, key)
    owner[key] = value


def augment_item(owner: Any, key: Any, operation: str) -> Callable[[Any], None]:
    """``owner[key] += value`` and its like, to be called with the value: what is there now is
    read before the value is computed."""
    trace = current()
    if trace is not None:
        owner = _to_be_written(trace, load(owner), key)
    found = load(owner[key])

    def update(value: Any) -> None:
        owner[key] = _IN_PLACE[operation](found, value)

    return update


def _to_be_written(trace: Trace, owner: Any, key: Any) -> Any:
    """What an item is stored in."""
    if type(owner) is np.ndarray:
        return capture(trace, owner)
    if trace.paths is not None:
        trace.paths.wrote_item(owner, key)
    return owner


def store_attribute(value: Any, owner: Any, name: str) -> None:
    """``owner.name = value``"""
    trace = current()
    if trace is not None and trace.paths is not None and trace.paths.is_captured(owner):
        trace.paths.wrote(owner, name)
        if is_traced(value):
            raise stored_outside(name)
    setattr(owner, name, value)


def augment_attribute(owner: Any, name: str, operation: str) -> Callable[[Any], None]:
    """``owner.name += value`` and its like, to be called with the value: what is there now is
    read before the value is computed."""
    found = getattr(owner, name)
    held = isinstance(found, np.ndarray) and not is_traced(found) and current() is not None
    read = attribute(owner, name) if held else found

    def update(value: Any) -> None:
        made = _IN_PLACE[operation](read, value)
        if not held:
            store_attribute(made, owner, name)

    return update


def augment_global(found: Any, operation: str, value: Any) -> Any:
    """``name += value`` for a name declared global or nonlocal."""
    if current() is not None and type(found) is np.ndarray:
        _IN_PLACE[operation](load(found), value)
        return found
    return _IN_PLACE[operation](found, value)


def iterate(items: Any) -> Any:
    """What a ``for`` runs over."""
    trace = current()
    if trace is None:
        return items
    if type(items) is np.ndarray:
        return capture(trace, items)
    if type(items) is range or type(items) is TracedArray:
        return items
    return _loaded(items)


def _loaded(items: Any) -> Iterator[Any]:
    for part in items:
        if type(part) is tuple:
            yield tuple([load(inner) for inner in part])
        else:
            yield load(part)


def named(name: str, item: Any) -> Any:
    """``name = item``: a value without a name of its own takes this one."""
    if type(item) in _NAMED:
        take_name(name, item)
        return item
    return load(item)


def named_all(names: tuple[str, ...], items: Any) -> Any:
    """``a, b = items``"""
    if type(items) in (tuple, list) and len(items) == len(names):
        return [named(name, item) for name, item in zip(names, items)]
    if current() is not None and type(items) in (tuple, list):
        return [load(item) for item in items]
    return items


def take_name(name: str, item: Any) -> None:
    """Name the value of a traced item, if it has no name of the user's."""
    trace: Trace = item.tracing
    value = item._last_value() if type(item) is not TracedNumber else item.value
    node = value.node
    if node is None or not trace.alive or value in trace.named:
        return
    trace.named.add(value)
    names = trace.builder.names
    names.release(value.name)
    value.name = names.claim(name)


HOOKS: Mapping[str, Callable[..., Any]] = {
    **plain_flow.HOOKS,
    "callee": callee, "attribute": attribute, "attribute_base": attribute_base, "item": item,
    "item_base": item_base, "store_item": store_item, "augment_item": augment_item,
    "store_attribute": store_attribute, "augment_attribute": augment_attribute,
    "augment_global": augment_global, "load": load, "iterate": iterate, "named": named,
    "named_all": named_all, "slice": slice,
}  # fmt: skip
