"""Gradient rules of movement ops: what was moved is moved back, what was repeated is summed.

Not here: the ops (movement.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .shaping import inverse, sum_to, zeros_like

Rule = Sequence[Any]


def of_reshape(emit: Any, node: Any, cts: Rule) -> Rule:
    """Under the operand's shape again."""
    return [emit.reshape(cts[0], shape=node.operands[0].type.shape)]


def of_transpose(emit: Any, node: Any, cts: Rule) -> Rule:
    """With the axes back in their order."""
    return [emit.transpose(cts[0], perm=inverse(node.attrs["perm"]))]


def of_broadcast(emit: Any, node: Any, cts: Rule) -> Rule:
    """Summed where elements were repeated."""
    return [sum_to(emit, cts[0], node.operands[0].type.shape)]


def of_slice(emit: Any, node: Any, cts: Rule) -> Rule:
    """The cotangent at its place among zeros."""
    (x,), (ct,) = node.operands, cts
    start, step = node.attrs["start"], node.attrs["step"]
    if any(by != 1 for by in step):
        return [emit.update_slice(zeros_like(emit, x), ct, start=start, step=step)]
    rows = zip(x.type.shape, start, ct.type.shape)
    high = tuple([extent - first - size for extent, first, size in rows])
    return [emit.pad(ct, emit.constant(0, ct.type.dtype), low=start, high=high)]


def of_pad(emit: Any, node: Any, cts: Rule) -> Rule:
    """The inside to the operand, the sum of the outside to the fill."""
    (x, _), (ct,) = node.operands, cts
    low, ones = node.attrs["low"], (1,) * len(node.attrs["low"])
    inside = emit.slice(ct, start=low, size=x.type.shape, step=ones)
    outside = emit.update_slice(ct, zeros_like(emit, x), start=low, step=ones)
    return [inside, emit.sum(outside, axes=tuple(range(len(low))))]


def of_concatenate(emit: Any, node: Any, cts: Rule) -> Rule:
    """Each operand's part."""
    (ct,), axis = cts, node.attrs["axis"]
    found, at = [], 0
    for operand in node.operands:
        shape = operand.type.shape
        start = tuple([at if i == axis else 0 for i in range(len(shape))])
        found.append(emit.slice(ct, start=start, size=shape, step=(1,) * len(shape)))
        at = at + shape[axis]
    return found


def of_update(emit: Any, node: Any, cts: Rule) -> Rule:
    """The base gets nothing where the value was written."""
    (_, value), (ct,) = node.operands, cts
    start, step = node.attrs["start"], node.attrs["step"]
    rest = emit.update_slice(ct, zeros_like(emit, value), start=start, step=step)
    return [rest, emit.slice(ct, start=start, size=value.type.shape, step=step)]
