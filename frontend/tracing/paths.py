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
import functools
import types
from array import array
from collections import ChainMap, UserDict, UserList, deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .access import Access, FlatArgument, HeldObject
from .guards import CaptureGuard, has_length, is_identical, is_same
from .outside import Outside
from .source import user_location

if TYPE_CHECKING:
    from .state import Trace

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype, enum.Enum, slice)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, type, np.ufunc)
CONTAINERS: tuple[Any, ...] = (
    *(list, tuple, dict, set, deque, bytearray, array, ChainMap, UserDict, UserList),
    types.MappingProxyType,
)
_CHANGES = frozenset((
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft",
    "insert", "intersection_update", "remove", "reverse", "rotate", "sort", "subtract",
    "symmetric_difference_update", "update",
))  # fmt: skip  # methods that change a container and tell nothing about it
_LARGEST = 1000  # elements of a container looked at one by one
_MISSING = object()


class Paths:
    """The paths of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._found: dict[int, tuple[Any, str, Access]] = {}
        self._guarded: set[str] = set()
        self._written: set[tuple[int, str]] = set()
        self._read: set[int] = set()
        self._noting: int | None = None  # the container whose contents are noted just now
        self._contents: list[tuple[int, str]] = []  # (container, path of a guard on what it holds)
        self.outside = Outside()

    def add_argument(self, value: Any, leaf: int, name: str) -> None:
        """A static argument: its attributes are guarded where they are read."""
        self.note(value, name or f"argument {leaf}", Access(FlatArgument(leaf)), rebindable=False)

    def add_bound(self, function: Any) -> None:
        """What a function is bound to: the object of a method, the arguments of a partial, an
        object that is called. Their attributes are guarded where they are read."""
        if isinstance(function, types.MethodType):
            self._hold(function.__self__, "self")
        elif isinstance(function, functools.partial):
            for part in (*function.args, *function.keywords.values()):
                self._hold(part, "an argument of the partial")
            self.add_bound(function.func)
        elif not isinstance(function, _FUNCTIONS):
            self._hold(function, "self")

    def _hold(self, item: Any, path: str) -> None:
        self.note(item, path, Access(HeldObject(item)), rebindable=False)

    def source_of(self, array: Any) -> tuple[str, Access] | None:
        """(name, getter) of a captured array, which is then guarded to be that object."""
        found = self._found.get(id(array))
        if found is None:
            return None
        _, path, read = found
        self._guard(path, read, is_identical, array, "the function uses this array")
        if not read.steps:  # "global table of a.module", "table of an.enclosing.<locals>.function"
            return path.removeprefix("global ").split(" of ")[0], read
        return path.rsplit(".", 1)[-1].removeprefix("global ").split(" of ")[0], read

    def found(self) -> list[Any]:
        """All that was there before the trace and has been met."""
        return [item for item, _, _ in self._found.values()]

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
        if isinstance(item, CONTAINERS):
            around, self._noting = self._noting, id(item)
            small = type(item) in (list, tuple) or isinstance(item, dict)
            if small and len(item) <= _LARGEST:
                self._container(item, path, read)
            else:
                self._bag(item, path, read)
            self._noting = around
        else:
            if isinstance(item, types.MethodType | functools.partial):
                self.add_bound(item)
            if rebindable:
                self._guard(path, read, is_identical, item, "this object is used")

    def read(self, container: Any) -> None:
        """A container is handed to code that may look at all that it holds."""
        self._read.add(id(container))

    def looked_at(self) -> frozenset[str]:
        """The paths of guards on what containers hold that the function has looked at."""
        return frozenset(path for owner, path in self._contents if owner in self._read)

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
        if isinstance(owner, CONTAINERS):
            if name not in _CHANGES:
                self.read(owner)
            if getattr(item, "__self__", None) is owner:  # a method, another object each time
                return
        if _is_method_in_c(item, owner):  # another object each time; its class does not change
            return
        path = f"{found[1]}.{name}"
        if path in self._guarded and isinstance(item, _PLAIN):
            return
        if isinstance(item, types.MethodType) and any(
            item.__self__ is one for one in (owner, type(owner))
        ):
            self._method(owner, name, path)
            return
        read = found[2]
        self.note(item, path, read.attribute(name))

    def without(self, owner: Any, name: str) -> None:
        """``owner.name`` was asked for and is not there."""
        found = self._found.get(id(owner))
        if found is not None:
            self._guard(f"{found[1]} without {name}", found[2], _lacks, name, "it was asked for")

    def _method(self, owner: Any, name: str, path: str) -> None:
        """A method that is used: its class may get another one."""
        kind = owner if isinstance(owner, type) else type(owner)
        held = getattr(kind, name, None)
        read = Access(HeldObject(kind)).attribute(name)
        if isinstance(held, types.MethodType):  # of the class
            held, read = held.__func__, read.attribute("__func__")
        if isinstance(held, types.FunctionType):
            self._guard(path, read, is_identical, held, "this method is used")

    def wrote(self, owner: Any, name: str) -> None:
        """``owner.name`` is assigned by the function itself."""
        self._written.add((id(owner), name))
        self.outside.attribute(owner, name)

    def wrote_item(self, owner: Any, key: Any) -> None:
        """``owner[key]`` is, of a list or dict that was there before the trace."""
        if isinstance(owner, list | dict) and self.is_captured(owner):
            self.outside.item(owner, key)

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
            parts = [(key, f"{path}[{key!r}]") for key in keys]
        else:
            if all(isinstance(part, _PLAIN) for part in item):
                copy = list(item)
                self._guard(path, read, _has_values, copy, "its values are used")
                return
            count = len(item)
            self._guard(f"len({path})", read, has_length, (type(item), count), "it is read")
            parts = [(i, f"{path}[{i}]") for i in range(count)]
        for key, text in parts:
            self.note(item[key], text, read.item(key, item))

    def _bag(self, item: Any, path: str, read: Access) -> None:
        """A set, deque, large list or the like, whose items are not looked at one by one: all of
        it is what it was."""
        mapping = isinstance(item, Mapping)
        parts = [*item.items()] if mapping else [*item]
        self._guard(path, read, _has_values_of, (type(item), parts), "its values are used")
        for i, part in enumerate(parts):
            held = part[1] if mapping else part
            if not isinstance(held, _PLAIN):
                self.note(held, f"{path}[{i}]", Access(HeldObject(held)), rebindable=False)

    def _guard(
        self, path: str, read: Access, check: Callable[[Any, Any], bool], expected: Any, reason: str
    ) -> None:
        if path in self._guarded:
            return
        self._guarded.add(path)
        if self._noting is not None:
            self._contents.append((self._noting, path))
        guard = CaptureGuard(path, read, check, expected, reason, user_location())
        self._trace.guards.append(guard)


def _has_keys(now: Any, keys: list[Any]) -> bool:
    return list(now) == keys


def _lacks(now: Any, name: str) -> bool:
    return not hasattr(now, name)


def _has_values(now: Any, expected: list[Any]) -> bool:
    return len(now) == len(expected) and all(map(is_same, now, expected))


def _has_values_of(now: Any, expected: tuple[type, list[Any]]) -> bool:
    kind, parts = expected
    if type(now) is not kind:
        return False
    held: Any = now
    if len(held) != len(parts):
        return False
    if isinstance(now, Mapping):
        return all(a is c and is_same(b, d) for (a, b), (c, d) in zip(now.items(), parts))
    return all(map(is_same, held, parts))


def _is_method_in_c(item: Any, owner: Any) -> bool:
    """Whether it is a method of an object of a type that is not written in Python."""
    own = isinstance(item, types.BuiltinMethodType) and item.__self__ is owner
    return own and not isinstance(owner, types.ModuleType)
