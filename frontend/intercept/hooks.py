"""What the hooks in rewritten code do: show traced things in place of NumPy's and Python's.

Each behaves as plain Python when no trace runs in this thread, so a rewritten function that
outlives its trace is an ordinary function.

Invariants: a real array that intercepted code meets is captured before anything is done with it.
Not here: which function stands for which (callee.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..tracing.capture import capture
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, current
from ..tracing.tensor import TracedArray, TracedScalar
from . import plain_flow
from .attributes import (
    attribute,
    attribute_base,
    augment_attribute,
    load,
    shown,
    store_attribute,
)
from .callee import callee
from .iteration import context, iterated
from .special_methods import IN_PLACE, OPERATORS
from .user_methods import user_call

_NAMED = (TracedArray, TracedScalar, TracedNumber)


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
    made = user_call(owner, "__getitem__", key)
    return shown(owner[key]) if made is NotImplemented else made


def store_item(value: Any, owner: Any, key: Any) -> None:
    """``owner[key] = value``"""
    trace = current()
    if trace is not None:
        owner = _to_be_written(trace, owner, key)
    _store(owner, key, value)


def _store(owner: Any, key: Any, value: Any) -> None:
    if user_call(owner, "__setitem__", key, value) is NotImplemented:
        owner[key] = value


def delete_item(owner: Any, key: Any) -> None:
    """``del owner[key]``"""
    if user_call(owner, "__delitem__", key) is NotImplemented:
        del owner[key]


def augment_item(owner: Any, key: Any, operation: str) -> Callable[[Any], None]:
    """``owner[key] += value`` and its like, to be called with the value: what is there now is
    read before the value is computed."""
    trace = current()
    if trace is not None:
        owner = _to_be_written(trace, load(owner), key)
    found = item(owner, key)

    def update(value: Any) -> None:
        _store(owner, key, IN_PLACE[operation](found, value))

    return update


def _to_be_written(trace: Trace, owner: Any, key: Any) -> Any:
    """What an item is stored in."""
    if type(owner) is np.ndarray:
        return capture(trace, owner)
    if trace.paths is not None:
        trace.paths.wrote_item(owner, key)
    return owner


def augmented(found: Any, operation: str, value: Any) -> Any:
    """``name += value``"""
    return IN_PLACE[operation](found, value)


def augment_global(found: Any, operation: str, value: Any) -> Any:
    """``name += value`` for a name declared global or nonlocal."""
    if current() is not None and type(found) is np.ndarray:
        IN_PLACE[operation](load(found), value)
        return found
    return IN_PLACE[operation](found, value)


def iterate(items: Any) -> Any:
    """What a ``for`` runs over."""
    trace = current()
    if trace is None:
        return items
    if type(items) is np.ndarray:
        return capture(trace, items)
    if type(items) is range or type(items) is TracedArray:
        return items
    return _loaded(iterated(items))


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
    return iterated(items)


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
    **plain_flow.HOOKS, **OPERATORS,
    "callee": callee, "attribute": attribute, "attribute_base": attribute_base, "item": item,
    "item_base": item_base, "store_item": store_item, "augment_item": augment_item,
    "store_attribute": store_attribute, "augment_attribute": augment_attribute,
    "augment_global": augment_global, "load": load, "iterate": iterate, "named": named,
    "named_all": named_all, "slice": slice, "augmented": augmented, "context": context,
    "iterated": iterated, "delete_item": delete_item,
}  # fmt: skip
