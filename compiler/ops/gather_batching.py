"""Batching rules of reading and writing at places.

Where places are a lane's own, the number of the lane is a further index:

    x[pre..., axes..., rest...] at i   ->   x[pre..., lane, axes..., rest...] at (lane, i)

Not here: the ops (gather.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .batching import Each, Lanes, Operands, aligned, moved_axis, numbered, same


def of_gather(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """Of an array that all lanes share the places of all lanes at once."""
    x, axes = operands[0], node.attrs["axes"]
    indices = [lanes.harmless(emit, index, 0) for index in operands[1:]]
    if not any(index.own for index in indices):
        return _at_shared_places(emit, node, [x], indices)
    places, first = _aligned(emit, indices), axes[0]
    if not x.own:
        made, token = emit.gather(x.value, *places, axes=axes)
    else:
        rows = moved_axis(emit, x.value, 0, first)
        places = [_numbers(emit, lanes, indices), *places]
        made, token = emit.gather(rows, *places, axes=_with_lanes(axes))
    return [Each(moved_axis(emit, made, first, 0), True), Each(token, False)]


def of_scatter(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """In each lane the writes keep their order."""
    axes = node.attrs["axes"]
    indices = [lanes.harmless(emit, index, 0) for index in operands[2:]]
    arrays = list(operands[:2])
    if any(each.own for each in (*arrays, *indices)):
        arrays = [Each(lanes.spread(emit, each), True) for each in arrays]
    if not any(index.own for index in indices):
        return _at_shared_places(emit, node, arrays, indices)
    first = axes[0]
    places = [_numbers(emit, lanes, indices), *_aligned(emit, indices)]
    rows = [moved_axis(emit, each.value, 0, first) for each in arrays]
    made, token = same(emit, node, [*rows, *places], {"axes": _with_lanes(axes)})
    return [Each(moved_axis(emit, made.value, first, 0), True), Each(token.value, False)]


def _at_shared_places(emit: Any, node: Any, arrays: Operands, indices: Operands) -> Sequence[Each]:
    own = arrays[0].own
    axes = tuple([axis + own for axis in node.attrs["axes"]])
    values = [each.value for each in (*arrays, *indices)]
    made, token = same(emit, node, values, {"axes": axes})
    return [Each(made.value, own), Each(token.value, False)]


def _aligned(emit: Any, indices: Operands) -> list[Any]:
    rank = max(index.rank for index in indices)
    return [aligned(emit, index, rank) for index in indices]


def _numbers(emit: Any, lanes: Lanes, indices: Operands) -> Any:
    return numbered(emit, lanes, max(index.rank for index in indices))


def _with_lanes(axes: Sequence[int]) -> tuple[int, ...]:
    return (axes[0], *[axis + 1 for axis in axes])
