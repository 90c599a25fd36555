"""Which arrays of a call share memory that is written, and whether a version was made for that.

Invariants: arrays count as sharing memory where their ranges of addresses meet, as native code
tests it; whether they have elements in common is found out from there (tracing/sharing.py).
Not here: what a trace makes of it (tracing/box.py), the native tests (bind.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.errors import error
from ..tracing.sharing import Sharing, share
from ..tracing.source import user_location


class Met(NamedTuple):
    """An array of a call. key: as in `Sharing.keys`."""

    key: Any
    name: str
    array: np.ndarray[Any, Any]
    written: bool


def sharings_of(arrays: Sequence[Met]) -> tuple[Sharing, ...]:
    """How arrays lie in memory that one of them is written in. Raises ArgError where that cannot
    be compiled."""
    found: list[Sharing] = []
    if not any(item.written for item in arrays):
        return ()
    for part in _meeting(arrays):
        if len(part) > 1 and any(item.written for item in part):
            sharing = share([item.key for item in part], [item.array for item in part])
            for group in sharing.groups:
                _refuse(sharing, [part[m] for m in group], group)
            found.append(sharing)
    return tuple(found)


def mismatch(arrays: Sequence[Met], sharings: Sequence[Sharing]) -> str | None:
    """What is different about the memory of these arrays; None if nothing."""
    if not sharings and not any(item.written for item in arrays):
        return None
    by_key = {_hashable(item.key): item for item in arrays}
    together = set()
    for sharing in sharings:
        mine = [by_key[_hashable(key)] for key in sharing.keys]
        if not sharing.holds([item.array for item in mine]):
            names = " and ".join(item.name for item in mine)
            return f"{names} do not share memory as they did"
        keys = [_hashable(key) for key in sharing.keys]
        together |= set(itertools.product(keys, keys))
    for part in _meeting(arrays):
        for one, other in itertools.permutations(part, 2):
            known = (_hashable(one.key), _hashable(other.key)) in together
            if one.written and not known and np.may_share_memory(one.array, other.array):
                return f"{one.name} is written and shares memory with {other.name}"
    return None


def same_arrays(left: Sequence[Sharing], right: Sequence[Sharing]) -> bool:
    """Whether they speak of the same arrays."""
    return [[_hashable(k) for k in s.keys] for s in left] == [
        [_hashable(k) for k in s.keys] for s in right
    ]


def refuse_sharing(names: Sequence[str], why: str) -> None:
    """Raise ArgError: these arrays share memory that is written."""
    raise _shared(names, why)


def _meeting(arrays: Sequence[Met]) -> Iterator[list[Met]]:
    """The arrays, in their order, by the stretch of memory they lie in."""
    bounds = {
        at: np.lib.array_utils.byte_bounds(item.array)
        for at, item in enumerate(arrays)
        if item.array.size
    }
    part: list[int] = []
    end = 0
    for at in sorted(bounds, key=bounds.__getitem__):
        low, high = bounds[at]
        if part and low >= end:
            yield [arrays[i] for i in sorted(part)]
            part = []
        end = max(end, high) if part else high
        part.append(at)
    if part:
        yield [arrays[i] for i in sorted(part)]


def _hashable(key: Any) -> Any:
    return key if isinstance(key, int) else ("captured", id(key))


def _refuse(sharing: Sharing, items: Sequence[Met], group: Sequence[int]) -> None:
    if len(group) == 1:
        return
    names = [item.name for item in items]
    types = list(dict.fromkeys(item.array.dtype.name for item in items))
    if len(types) > 1:
        raise _shared(names, f"their element types differ: {', '.join(types)}")
    if any(sharing.regions[m].width > 1 for m in group):
        raise _shared(names, "elements of one begin in the middle of elements of another")


def _shared(names: Sequence[str], why: str) -> Exception:
    return error(
        "TM254",
        f"{' and '.join(names)} share memory that is written, in a way that cannot be compiled",
        place=user_location(),
        detail=why,
        hint=f"pass a copy of one of them: {names[-1]}.copy()",
    )


def by_place(sharing: Sharing, places: Mapping[Any, int]) -> list[int]:
    """The number that `places` gives each array of a sharing."""
    return [places[_hashable(key)] for key in sharing.keys]


def place_key(leaf: int | None, array: Any) -> Any:
    """The key of an input for `by_place`."""
    return leaf if leaf is not None else _hashable(array)
