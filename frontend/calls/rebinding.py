"""What a function does to the dicts, lists and dataclasses it is handed.

A trace runs on containers of its own. What it puts into them (``params["w"] = ...``,
``losses.append(loss)``, ``del``) are further results, which every call does to the caller's.

Invariants: an entry that holds what it held is left alone; a container of the arguments that is
put into another one stays the caller's own.
Not here: writes into arrays (the trace has them), attributes of other objects (intercept/hooks.py).
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

from ..compiler.records import dataclass

Place = tuple[Any, ...]  # the keys from the tuple of all arguments to a container

_DICTS = (dict, OrderedDict, defaultdict)


class Original:
    """Stands for a container of the caller's. No dataclass: those are containers themselves."""

    def __init__(self, place: Place) -> None:
        self.place = place


@dataclass(frozen=True, slots=True)
class Rebound:
    """A container that is changed. entries: those that are set. order: all entries that it has
    then, where some are gone or stand elsewhere."""

    place: Place
    entries: tuple[Any, ...]
    order: tuple[Any, ...] | None

    def apply(self, container: Any, values: Sequence[Any]) -> None:
        """Change the caller's container."""
        changed = dict(zip(self.entries, values, strict=True))
        if self.order is None:
            _set(container, changed)
            return
        whole = {**_entries(container), **changed}
        container.clear()
        if isinstance(container, MutableMapping):
            container.update({key: whole[key] for key in self.order})
        else:
            container.extend([whole[key] for key in self.order])


@dataclass(frozen=True, slots=True)
class _Handed:
    place: Place
    container: Any
    before: dict[Any, Any]


class Watch:
    """The containers handed to a function, as they were when it began."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self._handed: list[_Handed] = []
        self._places: dict[int, Place] = {}
        for index, argument in enumerate(arguments):
            self._add((index,), argument)

    def changes(self) -> tuple[tuple[Rebound, ...], list[list[Any]]]:
        """What has been rebound since, and what the entries hold now."""
        found: list[Rebound] = []
        values: list[list[Any]] = []
        for item in self._handed:
            now = _entries(item.container)
            entries = [
                key for key in now if key not in item.before or now[key] is not item.before[key]
            ]
            kept = [key for key in now if key in item.before]
            moved = kept != list(item.before) or list(now)[: len(kept)] != kept
            grown = len(now) > len(kept) and type(item.container) is list
            if entries or moved:
                order = tuple(now) if moved or grown else None
                found.append(Rebound(item.place, tuple(entries), order))
                values.append([self._named(now[key]) for key in entries])
        return tuple(found), values

    def _named(self, value: Any) -> Any:
        place = self._places.get(id(value))
        return value if place is None else Original(place)

    def _add(self, place: Place, thing: Any) -> None:
        entries = _entries(thing)
        if not entries and type(thing) not in (*_DICTS, list):
            return
        if not isinstance(thing, tuple):
            self._handed.append(_Handed(place, thing, entries))
            self._places[id(thing)] = place
        for key, part in entries.items():
            self._add((*place, key), part)


def apply_all(
    rebound: Sequence[Rebound],
    values: Sequence[Sequence[Any]],
    at: Callable[[Place], Any],
) -> None:
    """Do to the containers at these places what `changes` found in others like them."""
    for change, new in zip(rebound, values, strict=True):
        own = [at(v.place) if isinstance(v, Original) else v for v in new]
        change.apply(at(change.place), own)


def container_at(arguments: Sequence[Any], place: Place) -> Any:
    """Follow a place."""
    found: Any = arguments
    for key in place:
        found = getattr(found, key) if _is_record(found) else found[key]
    return found


def _entries(thing: Any) -> dict[Any, Any]:
    """What a container holds, by key, index or field; nothing for what is none."""
    if type(thing) in _DICTS:
        return dict(thing)
    if type(thing) is list or isinstance(thing, tuple):
        return dict(enumerate(thing))
    if _is_record(thing):
        names = [field.name for field in dataclasses.fields(thing) if field.init]
        return {name: getattr(thing, name) for name in names}
    return {}


def _is_record(thing: Any) -> bool:
    return dataclasses.is_dataclass(thing) and not isinstance(thing, type)


def _set(container: Any, changed: Mapping[Any, Any]) -> None:
    for key, value in changed.items():
        if _is_record(container):
            setattr(container, key, value)
        else:
            container[key] = value
