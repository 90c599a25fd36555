"""Batching rules of movement ops: the same move behind an axis of lanes.

Not here: the ops (movement.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .batching import Each, Lanes, Operands, aligned, same


def of_reshape(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """Row by row."""
    return same(emit, node, [operands[0].value], {"shape": (lanes.size, *node.attrs["shape"])})


def of_transpose(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """The axis of lanes stays the first."""
    perm = (0, *[axis + 1 for axis in node.attrs["perm"]])
    return same(emit, node, [operands[0].value], {"perm": perm})


def of_broadcast(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """New axes come behind that of lanes."""
    shape = node.attrs["shape"]
    value = aligned(emit, operands[0], len(shape))
    return same(emit, node, [value], {"shape": (lanes.size, *shape)})


def of_slice(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """All lanes, of each the region."""
    attrs = node.attrs
    region = {
        "start": (0, *attrs["start"]),
        "size": (lanes.size, *attrs["size"]),
        "step": (1, *attrs["step"]),
    }
    return same(emit, node, [operands[0].value], region)


def of_concatenate(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """One axis further."""
    values = [lanes.spread(emit, each) for each in operands]
    return same(emit, node, values, {"axis": node.attrs["axis"] + 1})


def of_pad(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """Fills of their own are what lies under the operand."""
    x, fill = operands
    low, high = node.attrs["low"], node.attrs["high"]
    if not fill.own:
        return same(emit, node, [x.value, fill.value], {"low": (0, *low), "high": (0, *high)})
    rows = lanes.spread(emit, x)
    inside = rows.type.shape[1:]
    shape = (lanes.size, *[a + n + b for a, n, b in zip(low, inside, high)])
    base = emit.broadcast_to(aligned(emit, fill, len(low)), shape=shape)
    made = emit.update_slice(base, rows, start=(0, *low), step=(1,) * len(shape))
    return [Each(made, True)]


def of_update(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """In all lanes the same region."""
    values = [lanes.spread(emit, each) for each in operands]
    region = {"start": (0, *node.attrs["start"]), "step": (1, *node.attrs["step"])}
    return same(emit, node, values, region)
