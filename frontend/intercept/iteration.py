"""Loops over objects of the user's, and their context managers, by Python's protocols.

Not here: loops as such (flow.py), what becomes of their trips (control/).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..tracing.state import current
from .user_methods import PLAIN, method_of, user_call


def is_iterated(items: Any) -> bool:
    """Whether a loop over it calls methods of the user's."""
    kind = type(items)
    if kind in PLAIN or current() is None:
        return False
    if method_of(kind, "__iter__") is not None or method_of(kind, "__next__") is not None:
        return True
    return not hasattr(kind, "__iter__") and method_of(kind, "__getitem__") is not None


def iterated(items: Any) -> Any:
    """What a loop over an object of the user's runs over."""
    if not is_iterated(items):
        return items
    kind = type(items)
    if not hasattr(kind, "__iter__"):
        return _by_number(items)
    made = user_call(items, "__iter__")
    if made is NotImplemented:
        made = iter(items)
    return made if method_of(type(made), "__next__") is None else _by_next(made)


def _by_number(items: Any) -> Iterator[Any]:
    at = 0
    while True:
        try:
            found = user_call(items, "__getitem__", at)
        except IndexError:
            return
        yield found
        at += 1


def _by_next(items: Any) -> Iterator[Any]:
    while True:
        try:
            found = user_call(items, "__next__")
        except StopIteration:
            return
        yield found


class Context:
    """Stands for a context manager of the user's in a ``with`` statement."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return user_call(self.manager, "__enter__")

    def __exit__(self, *problem: Any) -> Any:
        return user_call(self.manager, "__exit__", *problem)


def context(manager: Any) -> Any:
    """What a ``with`` statement enters."""
    kind = type(manager)
    if current() is None or None in (method_of(kind, "__enter__"), method_of(kind, "__exit__")):
        return manager
    return Context(manager)
