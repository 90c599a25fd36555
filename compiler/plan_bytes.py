"""A finished plan as bytes, and back: what is kept of a compilation beside its machine code.

Kernels are left out: their code is kept elsewhere, and whoever wants to look at them compiles
again. Places in the user's program are written as numbers of the traced graph's nodes, so that a
plan serves the same program after its lines have moved.

Invariants: reading gives a plan equal to the one written, but for `kernels`; nothing is read that
this module would not have written (`PlanBytesError`), and no name in the bytes reaches code.
Not here: under which key a plan is kept, and what else a call needs (the frontend).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import plan as plan_module
from .ir.graph import Graph, Location
from .plan import ExecutionPlan, Origin
from .records import replace
from .types import DType, dtype_named, dtype_of

# What a record is written as: a list of its class's name and its fields. Lists of other things
# begin with one of these.
_NUMBERS, _ITEMS, _MAPPING, _DTYPE, _ORIGIN, _PLACE, _ARRAY = range(7)
_RECORDS: Mapping[str, type] = {
    name: kind
    for name, kind in vars(plan_module).items()
    if hasattr(kind, "__match_args__") and kind.__module__ == plan_module.__name__
}
_FIELDS: Mapping[type, tuple[str, ...]] = {
    kind: kind.__match_args__  # type: ignore[attr-defined]
    for kind in _RECORDS.values()
}
_AS_THEY_ARE = frozenset((int, str, bool, float, type(None)))


class PlanBytesError(ValueError):
    """A plan holds what cannot be written, or bytes are no plan."""


def places_of(graph: Graph) -> tuple[list[Location | None], list[int]]:
    """The place of every node, nodes of regions after their own; and for each the first node that
    has the same one: what the numbers in the bytes rely on, so it belongs in the plan's key."""
    places: list[Location | None] = []
    pending = [graph]
    for inner in pending:
        for node in inner.nodes:
            places.append(node.location)
            pending.extend(node.regions)
    first: dict[int, int] = {}
    return places, [first.setdefault(id(place), at) for at, place in enumerate(places)]


def plan_to_bytes(plan: ExecutionPlan, places: Sequence[Location | None]) -> bytes:
    """Write a plan. places: those of the traced graph. Raises PlanBytesError for a plan with a
    part that has no written form."""
    writer = _Writer(places)
    text = json.dumps(writer.value(replace(plan, kernels=())), separators=(",", ":")).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *writer.arrays])


def plan_from_bytes(data: bytes, places: Sequence[Location | None]) -> ExecutionPlan:
    """Read what `plan_to_bytes` wrote. places: those of a graph that is traced alike."""
    end = 8 + int.from_bytes(data[:8], "little")
    try:
        plan = _Reader(places, memoryview(data)[end:]).value(json.loads(data[8:end]))
    except (ValueError, TypeError, KeyError, IndexError) as problem:
        raise PlanBytesError(f"these bytes are no plan: {problem}") from None
    if not isinstance(plan, ExecutionPlan):
        raise PlanBytesError("these bytes hold something else than a plan")
    return plan


class _Writer:
    def __init__(self, places: Sequence[Location | None]) -> None:
        self.arrays: list[bytes] = []
        self._size = 0
        self._places: dict[Location | None, int] = {}
        for at, place in enumerate(places):
            self._places.setdefault(place, at)

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind in _AS_THEY_ARE:
            return value
        if kind is tuple:
            if all(type(item) is int for item in value):
                return [_NUMBERS, *value]
            return [_ITEMS, *map(self.value, value)]
        names = _FIELDS.get(kind)
        if names is not None:
            return [kind.__name__, *[self.value(getattr(value, name)) for name in names]]
        if kind is dict:
            return [_MAPPING, *[[self.value(k), self.value(v)] for k, v in value.items()]]
        if kind is DType:
            return [_DTYPE, value.name]
        if kind is Origin:
            return [_ORIGIN, value.value]
        if kind is Location and value in self._places:
            return [_PLACE, self._places[value]]
        if isinstance(value, np.ndarray) and dtype_of(value.dtype) is not None:
            return self._array(value)
        raise PlanBytesError(f"a plan holds {value!r:.80}, which has no written form")

    def _array(self, array: np.ndarray[Any, Any]) -> Any:
        data = array.tobytes()
        start, self._size = self._size, self._size + len(data)
        self.arrays.append(data)
        dtype = dtype_of(array.dtype)
        assert dtype is not None
        return [_ARRAY, dtype.name, start, len(data), list(array.shape)]


class _Reader:
    def __init__(self, places: Sequence[Location | None], arrays: memoryview) -> None:
        self._places = places
        self._arrays = arrays
        self._parts: dict[int, Callable[[list[Any]], Any]] = {
            _NUMBERS: lambda parts: tuple(parts[1:]),
            _ITEMS: lambda parts: tuple([self.value(part) for part in parts[1:]]),
            _MAPPING: lambda parts: {self.value(k): self.value(v) for k, v in parts[1:]},
            _DTYPE: lambda parts: dtype_named(parts[1]),
            _ORIGIN: lambda parts: Origin(parts[1]),
            _PLACE: lambda parts: self._places[parts[1]],
            _ARRAY: self._array,
        }

    def value(self, value: Any) -> Any:
        if type(value) is not list:
            return value
        tag = value[0]
        if type(tag) is int:
            return self._parts[tag](value)
        return _RECORDS[tag](*[self.value(part) for part in value[1:]])

    def _array(self, parts: list[Any]) -> np.ndarray[Any, Any]:
        _, name, start, size, shape = parts
        flat = np.frombuffer(self._arrays[start : start + size], dtype_named(name).numpy)
        array = flat.reshape(shape).copy()  # aligned, and not a view of the whole entry
        array.flags.writeable = False
        return array
