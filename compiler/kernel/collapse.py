"""Neighbouring loops that run over neighbouring axes of every buffer become one loop.

A whole-array elementwise kernel becomes one loop over all elements, a sum over two axes one
reduction, rows of [b, h, n, m] one row axis. Parameters are reshaped to match; axes of size 1
go first. Parameters with byte strides keep their axes, and the loops that run over them.

Law: the element touched at each point, and the order of points, stay the same. For a reduction
the collapsed axis is its definition: adjacent axes fold as one where memory has them as one.
Not here: loops that could be interchanged, splitting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dims import Dim, Size
from ..records import dataclass, replace
from .kernel import (
    Checked,
    Index,
    IndexValue,
    Kernel,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Statement,
    Store,
    Update,
    walk,
)
from .symbols import map_access, map_body, substitute_axes

Body = tuple[Statement, ...]


def collapse(kernel: Kernel) -> Kernel:
    """Collapse what can be, innermost pairs first, until nothing changes."""
    kernel = _drop_units(kernel)
    kernel = replace(kernel, body=map_body(kernel.body, _without_unit))
    while True:
        pairs = _find(kernel)
        if not pairs:
            return kernel
        kernel = _merge(kernel, pairs)


def _drop_units(kernel: Kernel) -> Kernel:
    """Remove parameter axes of size 1 (they are indexed by 0)."""
    kept = {
        p.name: [at for at, size in enumerate(p.shape) if size != 1]
        for p in kernel.params
        if not p.strided and any(size == 1 for size in p.shape)
    }
    for statement in walk(kernel.body):
        if isinstance(statement, Load | Store | Update) and any(
            isinstance(i, Checked) for i in statement.index
        ):
            kept.pop(statement.buffer, None)
    if not kept:
        return kernel
    params = tuple(
        replace(p, shape=tuple(p.shape[at] for at in kept[p.name])) if p.name in kept else p
        for p in kernel.params
    )

    def access(buffer: str, index: tuple[Index, ...]) -> tuple[Index, ...]:
        return tuple(index[at] for at in kept[buffer]) if buffer in kept else index

    body = map_body(kernel.body, lambda s: map_access(s, access))
    return replace(kernel, params=params, body=body)


Loop = Parallel | Reduce


def _without_unit(outer: Statement) -> Statement:
    """Of two reductions that fold as one, the one that has more than one element."""
    inner = _perfect(outer)
    if not isinstance(outer, Reduce) or not isinstance(inner, Reduce):
        return outer
    if inner.extent == 1:
        body = substitute_axes(inner.body, {inner.axis: 0})
        return replace(outer, body=body, yields=inner.yields)
    if outer.extent == 1:
        body = substitute_axes(inner.body, {outer.axis: 0})
        return replace(inner, names=outer.names, body=body)
    return outer


def _find(kernel: Kernel) -> list[_Pair]:
    """Pairs of loops to merge at once: together they make all accesses to their buffers, and at
    the same two axes."""
    accesses: dict[str, int] = {}
    for statement in walk(kernel.body):
        if isinstance(statement, Load | Store | Update):
            accesses[statement.buffer] = accesses.get(statement.buffer, 0) + 1
    found: list[_Pair] = []
    for statement in walk(kernel.body):
        inner = _perfect(statement)
        if inner is not None and isinstance(statement, Loop):
            places = _places(kernel, statement, inner)
            if places is not None:
                found.append(_Pair(statement, inner, places))
    while True:
        together = [pair for pair in found if _agrees(pair, found, accesses)]
        if len(together) == len(found):
            break
        found = together
    axes = {pair.outer.axis for pair in found}  # of three loops the inner two first
    return [pair for pair in found if pair.inner.axis not in axes]


def _agrees(pair: _Pair, others: Sequence[_Pair], accesses: Mapping[str, int]) -> bool:
    for buffer, place in pair.places.at.items():
        users = [other for other in others if buffer in other.places.at]
        if any(other.places.at[buffer] != place for other in users):
            return False
        if sum(other.places.count(buffer) for other in users) != accesses[buffer]:
            return False
    return True


def _perfect(outer: Statement) -> Loop | None:
    if not isinstance(outer, Loop) or len(outer.body) != 1:
        return None
    (inner,) = outer.body
    if isinstance(outer, Parallel):
        return inner if isinstance(inner, Parallel) else None
    if (
        isinstance(inner, Reduce)
        and inner.names == outer.yields
        and inner.monoid == outer.monoid
        and outer.monoid not in ("argmin", "argmax")
    ):
        return inner
    return None


class _Places:
    """Where each buffer has the two axes, and how many of its accesses have them."""

    def __init__(self) -> None:
        self.at: dict[str, int] = {}
        self._count: dict[str, int] = {}

    def note(self, buffer: str, place: int) -> bool:
        if self.at.setdefault(buffer, place) != place:
            return False
        self._count[buffer] = self._count.get(buffer, 0) + 1
        return True

    def count(self, buffer: str) -> int:
        return self._count.get(buffer, 0)


@dataclass(frozen=True, slots=True)
class _Pair:
    outer: Loop
    inner: Loop
    places: _Places


def _places(kernel: Kernel, outer: Loop, inner: Loop) -> _Places | None:
    pair = {outer.axis, inner.axis}
    params = {p.name: p for p in kernel.params}
    found = _Places()
    for statement in walk(inner.body):
        if isinstance(statement, IndexValue):
            if _mentions((statement.index,), pair):
                return None
        elif isinstance(statement, Load | Store | Update):
            if not _mentions(statement.index, pair):
                continue
            place = _place(params.get(statement.buffer), statement.index, outer, inner)
            if place is None or not found.note(statement.buffer, place):
                return None
        elif isinstance(statement, Parallel | Reduce) and _mentions((statement.extent,), pair):
            return None
    return found


def _place(param: Parameter | None, index: Sequence[Index], outer: Loop, inner: Loop) -> int | None:
    if param is None or param.strided:
        return None
    for at in range(len(index) - 1):
        first, second = index[at], index[at + 1]
        if isinstance(second, Dim) and second.name == inner.axis:
            if param.shape[at + 1] != inner.extent or not isinstance(first, Dim):
                return None
            if first.coefficient(outer.axis) != 1 or inner.axis in first.symbols():
                return None
            others = [i for k, i in enumerate(index) if k not in (at, at + 1)]
            return None if _mentions(others, {outer.axis, inner.axis}) else at
    return None


def _mentions(index: Sequence[Index], axes: set[str]) -> bool:
    return any(isinstance(i, Dim) and not axes.isdisjoint(i.symbols()) for i in index)


def _merge(kernel: Kernel, pairs: Sequence[_Pair]) -> Kernel:
    places = {buffer: at for pair in pairs for buffer, at in pair.places.at.items()}
    params = tuple(
        replace(p, shape=_joined(p.shape, places[p.name])) if p.name in places else p
        for p in kernel.params
    )
    by_axis = {pair.outer.axis: pair for pair in pairs}

    def swap(statement: Statement) -> Statement:  # inside it others may have been merged
        pair = by_axis.get(statement.axis) if isinstance(statement, Loop) else None
        return statement if pair is None else _merged(statement, pair.places.at)

    return replace(kernel, params=params, body=map_body(kernel.body, swap))


def _merged(outer: Statement, places: Mapping[str, int]) -> Loop:
    inner = _perfect(outer)
    assert isinstance(outer, Loop)
    assert inner is not None
    axis = Dim.symbol(outer.axis)

    def access(buffer: str, index: tuple[Index, ...]) -> tuple[Index, ...]:
        at = places.get(buffer)
        if at is None:
            return index
        first = index[at]
        assert isinstance(first, Dim)
        offset = first - axis  # first is axis + offset
        return (*index[:at], offset * inner.extent + axis, *index[at + 2 :])

    body = map_body(inner.body, lambda s: map_access(s, access))
    made = replace(inner, axis=outer.axis, extent=outer.extent * inner.extent, body=body)
    if isinstance(made, Reduce) and isinstance(outer, Reduce):
        made = replace(made, names=outer.names)
    return made


def _joined(shape: tuple[Size, ...], at: int) -> tuple[Size, ...]:
    return (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
