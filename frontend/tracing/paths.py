"""What a function reads from outside: guarded by value, so that nothing captured goes stale.

Globals, closure cells, attributes of objects found there and contents of containers are known
by their path. Plain values (numbers, strings, None, dtypes) are guarded by value, functions and
other objects by identity; arrays become inputs, guarded to be the same array object.

Invariants: objects made while tracing have no path and no guard; what the function itself
rebinds (``global counter``) is not guarded.
Not here: noticing the reads (intercept/).
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .access import Access, FlatArgument
from .guards import CaptureGuard, has_length, is_identical, is_same
from .source import user_location

if TYPE_CHECKING:
    from .state import Trace

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, enum.Enum, slice)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type, np.ufunc)
_LARGEST = 1000  # elements of a container looked at one by one
_MISSING = object()


class Paths:
    """The paths of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: dict[int, tuple[Any, str, Access]] = {}
        self._guarded: set[str] = set()
        self._written: set[tuple[int, str]] = set()

    def add_argument(self, value: Any, leaf: int, name: str) -> None:
        """A static argument: its attributes are guarded where they are read."""
        self.note(value, name or f"argument {leaf}", Access(FlatArgument(leaf)), rebindable=False)

    def source_of(self, array: Any) -> tuple[str, Access] | None:
        """(name, getter) of a captured array, which is then guarded to be that object."""
        found = self._found.get(id(array))
        if found is None:
            return None
        _, path, read = found
        self._guard(path, read, is_identical, array, "the function uses this array")
        return path.rsplit(".", 1)[-1].removeprefix("global ").split(" of ")[0], read

    def is_captured(self, item: Any) -> bool:
        """True for an object that was there before the trace."""
        return id(item) in self._found

    def note(self, item: Any, path: str, read: Access, rebindable: bool = True) -> None:
        """Remember where `item` is read from, and guard it as its kind asks."""
        if isinstance(item, _PLAIN):
            if rebindable:
                self._guard(path, read, is_same, item, "its value is used")
            return
        if isinstance(item, types.ModuleType):
            self._found.setdefault(id(item), (item, path, read))
            return
        known = self._found.setdefault(id(item), (item, path, read))
        if known[1] is not path:
            if rebindable:
                self._guard(path, read, is_identical, item, "this object is used")
            return
        if isinstance(item, np.ndarray):
            return
        if isinstance(item, list | tuple | dict) and type(item).__module__ == "builtins":
            self._container(item, path, read)
        elif rebindable:
            self._guard(path, read, is_identical, item, "this object is used")

    def note_immutable(self, items: tuple[Any, ...], path: str, read: Access) -> None:
        """A tuple that is replaced as a whole, such as the defaults of a function."""
        self._guard(path, read, is_identical, items, "they are used")
        for i, item in enumerate(items):
            self.note(item, f"{path}[{i}]", read.item(i, items), rebindable=False)

    def attribute(self, owner: Any, name: str, item: Any) -> None:
        """``owner.name`` was read and is `item`."""
        found = self._found.get(id(owner))
        if found is None or (id(owner), name) in self._written:
            return
        path = f"{found[1]}.{name}"
        if path in self._guarded and isinstance(item, _PLAIN):
            return
        if isinstance(item, types.MethodType) and item.__self__ is owner:
            return
        read = found[2]
        self.note(item, path, read.attribute(name))

    def wrote(self, owner: Any, name: str) -> None:
        """``owner.name`` is assigned by the function itself."""
        self._written.add((id(owner), name))

    def _container(self, item: Any, path: str, read: Access) -> None:
        if isinstance(item, dict):
            keys = list(item)
            self._guard(
                f"keys of {path}",
                read,
                _has_keys,
                keys,
                "it is iterated or read",
            )
            parts = [(key, f"{path}[{key!r}]") for key in keys[:_LARGEST]]
        else:
            if all(isinstance(part, _PLAIN) for part in item):
                copy = list(item)
                self._guard(path, read, _has_values, copy, "its values are used")
                return
            count = len(item)
            self._guard(f"len({path})", read, has_length, (type(item), count), "it is read")
            parts = [(i, f"{path}[{i}]") for i in range(min(count, _LARGEST))]
        for key, text in parts:
            self.note(item[key], text, read.item(key, item))

    def _guard(
        self, path: str, read: Access, check: Callable[[Any, Any], bool], expected: Any, reason: str
    ) -> None:
        if path in self._guarded:
            return
        self._guarded.add(path)
        guard = CaptureGuard(path, read, check, expected, reason, user_location())
        self._trace.guards.append(guard)


def _has_keys(now: Any, keys: list[Any]) -> bool:
    return list(now) == keys


def _has_values(now: Any, expected: list[Any]) -> bool:
    return len(now) == len(expected) and all(map(is_same, now, expected))
