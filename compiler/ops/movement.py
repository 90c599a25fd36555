"""Ops whose every result element is an operand's element or a fill: reshape to update_slice.

A region of an array is `start` and `step` per axis, and a size per axis: index i of the region
is ``start + i * step`` of the array; steps may be negative, not zero. A region's axes of size 0
or 1 have step 1, those of size 0 start 0.

Invariants: canonical forms: no op that leaves its operand as it is, no reshape of a reshape,
transpose of a transpose, broadcast of a broadcast or slice of a slice; a move of one repeated
number is that number repeated.
Not here: rules of transforms (movement_gradients.py, movement_batching.py); expand_dims, squeeze,
stack, split, roll, tile, repeat, flip: compositions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Size, dim_text, product
from ..types import TensorType, Type
from . import movement_batching as batching
from . import movement_gradients as gradients
from .attributes import (
    count,
    distinct_axes,
    equal_sizes,
    exactly,
    just,
    one_axis,
    only_tensor,
    same_dtype,
    sizes,
    tensor,
)
from .definition import Attrs, OpDef, SignatureError, Structure
from .signature import shape_text
from .tangents import linear

Rule = Sequence[Any]


# -- signatures


def _reshape_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    operand = only_tensor(operands)
    shape = sizes(just(attrs, "shape"), "shape")
    have, want = product(operand.shape), product(shape)
    if have != want:
        raise SignatureError(
            "TM206",
            f"cannot change {shape_text(operand.shape)} into {shape_text(shape)}",
            f"they have {dim_text(have)} and {dim_text(want)} elements",
            sizes=(have, want),
        )
    return (TensorType(operand.dtype, shape),)


def _transpose_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    operand = only_tensor(operands)
    perm = distinct_axes(just(attrs, "perm"), operand.rank, "perm")
    if len(perm) != operand.rank:
        raise SignatureError("TM208", f"needs {operand.rank} axes as perm, got {len(perm)}")
    return (TensorType(operand.dtype, tuple([operand.shape[axis] for axis in perm])),)


def _broadcast_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    operand = only_tensor(operands)
    shape = sizes(just(attrs, "shape"), "shape")
    extra = len(shape) - operand.rank
    pairs = [(a, b) for a, b in zip(operand.shape, shape[max(extra, 0) :]) if a != b and a != 1]
    if extra < 0 or pairs:
        raise SignatureError(
            "TM205",
            f"cannot repeat {shape_text(operand.shape)} to {shape_text(shape)}",
            sizes=pairs[0] if pairs and extra >= 0 else None,
        )
    return (TensorType(operand.dtype, shape),)


def _slice_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    operand = only_tensor(operands)
    size, start, step = exactly(attrs, "size", "start", "step")
    size = sizes(size, "size", operand.rank)
    _region(operand.shape, start, size, step)
    return (TensorType(operand.dtype, size),)


def _concatenate_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    first = tensor(operands, 0)
    axis = one_axis(just(attrs, "axis"), first.rank)
    total = first.shape[axis]
    for index in range(1, len(operands)):
        other = tensor(operands, index)
        same_dtype(first, other)
        if other.rank != first.rank:
            raise SignatureError("TM208", f"needs equal ranks, got {first} and {other}")
        for i, (a, b) in enumerate(zip(first.shape, other.shape)):
            if i != axis:
                equal_sizes(a, b, f"in axis {i}")
        total = total + other.shape[axis]
    return (TensorType(first.dtype, (*first.shape[:axis], total, *first.shape[axis + 1 :])),)


def _pad_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 2)
    operand, fill = tensor(operands, 0), tensor(operands, 1, "fill")
    high, low = exactly(attrs, "high", "low")
    same_dtype(operand, fill)
    if fill.rank:
        raise SignatureError("TM208", f"needs one number as fill, got {fill}")
    low, high = sizes(low, "low", operand.rank), sizes(high, "high", operand.rank)
    shape = tuple([a + size + b for a, size, b in zip(low, operand.shape, high)])
    return (TensorType(operand.dtype, shape),)


def _update_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 2)
    base, value = tensor(operands, 0), tensor(operands, 1, "value")
    start, step = exactly(attrs, "start", "step")
    same_dtype(base, value)
    if base.rank != value.rank:
        raise SignatureError("TM208", f"needs a value of rank {base.rank}, got {value}")
    _region(base.shape, start, value.shape, step)
    return (base,)


def _region(shape: Sequence[Size], start: object, size: Sequence[Size], step: object) -> None:
    """Refuse a region that is known to leave the array."""
    if not isinstance(start, tuple) or not isinstance(step, tuple):
        raise SignatureError("TM203", f"needs tuples as start and step, got {start!r}, {step!r}")
    if not len(start) == len(step) == len(shape):
        raise SignatureError("TM208", f"needs start and step for {len(shape)} axes")
    for axis, (extent, first, number, by) in enumerate(zip(shape, start, size, step)):
        if type(by) is not int:
            raise SignatureError("TM203", f"needs integer steps, got {by!r}")
        if by == 0:
            raise SignatureError("TM243", "has a step of zero")
        if isinstance(number, int) and number == 0:
            continue
        last = first + (number - 1) * by
        for index in (first, last):
            low = isinstance(index, int) and index < 0
            beyond = index - extent
            if low or (isinstance(beyond, int) and beyond >= 0):
                raise SignatureError(
                    "TM207",
                    f"has a region outside {shape_text(tuple(shape))}",
                    f"index {dim_text(index)} of axis {axis} of size {dim_text(extent)}",
                )


# -- references


def _slices(start: Sequence[int], size: Sequence[int], step: Sequence[int]) -> tuple[slice, ...]:
    found = []
    for first, number, by in zip(start, size, step):
        stop = first + number * by
        found.append(slice(0, 0) if number == 0 else slice(first, stop if stop >= 0 else None, by))
    return tuple(found)


def _pad(x: Any, fill: Any, high: Sequence[int], low: Sequence[int]) -> Any:
    shape = [a + n + b for a, n, b in zip(low, x.shape, high)]
    result = np.full(shape, fill, dtype=x.dtype)
    result[tuple([slice(a, a + n) for a, n in zip(low, x.shape)])] = x
    return result


def _update(base: Any, value: Any, start: Sequence[int], step: Sequence[int]) -> Any:
    result = np.array(base)
    result[_slices(start, value.shape, step)] = value
    return result


# -- canonical forms


def _made_by(value: Any, op: OpDef) -> bool:
    return value.node is not None and value.node.op is op


def _repeated(value: Any) -> Any:
    """The rank 0 value that `value` repeats, or None."""
    if _made_by(value, broadcast_to) and not value.node.operands[0].type.shape:
        return value.node.operands[0]
    return None


def _canonical_reshape(emit: Any, operands: Rule, attrs: Attrs) -> Any:
    (x,) = operands
    if x.type.shape == attrs["shape"]:
        return x
    if _made_by(x, reshape):
        return emit.reshape(x.node.operands[0], shape=attrs["shape"])
    number = _repeated(x)
    return None if number is None else emit.broadcast_to(number, shape=attrs["shape"])


def _canonical_transpose(emit: Any, operands: Rule, attrs: Attrs) -> Any:
    (x,), perm = operands, attrs["perm"]
    if perm == tuple(range(len(perm))):
        return x
    if _made_by(x, transpose):
        inner = x.node.attrs["perm"]
        return emit.transpose(x.node.operands[0], perm=tuple([inner[axis] for axis in perm]))
    number = _repeated(x)
    if number is None:
        return None
    return emit.broadcast_to(number, shape=tuple([x.type.shape[axis] for axis in perm]))


def _canonical_broadcast(emit: Any, operands: Rule, attrs: Attrs) -> Any:
    (x,) = operands
    if x.type.shape == attrs["shape"]:
        return x
    if _made_by(x, broadcast_to):
        return emit.broadcast_to(x.node.operands[0], shape=attrs["shape"])
    return None


def _canonical_slice(emit: Any, operands: Rule, attrs: Attrs) -> Any:
    (x,) = operands
    start, size, step = attrs["start"], attrs["size"], attrs["step"]
    if size == x.type.shape and _is_whole(start, size, step):
        return x
    number = _repeated(x)
    if number is not None:
        return emit.broadcast_to(number, shape=size)
    if _made_by(x, slice_):
        inner = x.node.attrs
        rows = zip(inner["start"], inner["step"], start, step)
        moved = [(a + b * by, by * step_) for a, by, b, step_ in rows]
        return emit.slice(
            x.node.operands[0],
            start=tuple([first for first, _ in moved]),
            size=size,
            step=tuple([by for _, by in moved]),
        )
    plain = _plain_region(start, size, step)
    if plain != (start, step):
        return emit.slice(x, start=plain[0], size=size, step=plain[1])
    return None


def _canonical_pad(emit: Any, operands: Rule, attrs: Attrs) -> Any:
    x, fill = operands
    if not any(attrs["low"] + attrs["high"]):
        return x
    number = _repeated(x)
    if number is not fill:
        return None
    rows = zip(attrs["low"], x.type.shape, attrs["high"])
    return emit.broadcast_to(fill, shape=tuple([a + n + b for a, n, b in rows]))


def _canonical_update(emit: Any, operands: Rule, attrs: Attrs) -> Any:
    base, value = operands
    start, step = attrs["start"], attrs["step"]
    shape = value.type.shape
    if any(type(size) is int and size == 0 for size in shape):
        return base
    if shape == base.type.shape and _is_whole(start, shape, step):
        return value
    plain = _plain_region(start, shape, step)
    if plain != (start, step):
        return emit.update_slice(base, value, start=plain[0], step=plain[1])
    return None


def _is_whole(start: Sequence[Size], size: Sequence[Size], step: Sequence[int]) -> bool:
    """True where a region of the array's own size is the array, in its order."""
    rows = zip(start, size, step)
    return all(n == 0 or (first == 0 and (by == 1 or n == 1)) for first, n, by in rows)


def _plain_region(
    start: Sequence[Size], size: Sequence[Size], step: Sequence[int]
) -> tuple[tuple[Size, ...], tuple[int, ...]]:
    """`start` and `step` with no choice where the size leaves one."""
    return (
        tuple([0 if n == 0 else first for n, first in zip(size, start)]),
        tuple([1 if n in (0, 1) else by for n, by in zip(size, step)]),
    )


reshape = OpDef(
    name="reshape",
    signature=_reshape_type,
    reference=lambda x, shape: np.reshape(x, shape),
    gradient=gradients.of_reshape,
    tangent=linear(),
    batching=batching.of_reshape,
    canonical=_canonical_reshape,
    structure=Structure.MOVEMENT,
    doc="The same elements, in C order, under another shape.",
)

transpose = OpDef(
    name="transpose",
    signature=_transpose_type,
    reference=lambda x, perm: np.transpose(x, perm),
    gradient=gradients.of_transpose,
    tangent=linear(),
    batching=batching.of_transpose,
    canonical=_canonical_transpose,
    structure=Structure.MOVEMENT,
    doc="Axes in another order: axis i of the result is axis `perm[i]` of the operand.",
)

broadcast_to = OpDef(
    name="broadcast_to",
    signature=_broadcast_type,
    reference=lambda x, shape: np.broadcast_to(x, shape),
    gradient=gradients.of_broadcast,
    tangent=linear(),
    batching=batching.of_broadcast,
    canonical=_canonical_broadcast,
    structure=Structure.MOVEMENT,
    doc="Repeat along new leading axes and axes of size 1.",
)

slice_ = OpDef(
    name="slice",
    signature=_slice_type,
    reference=lambda x, size, start, step: x[_slices(start, size, step)],
    gradient=gradients.of_slice,
    tangent=linear(),
    batching=batching.of_slice,
    canonical=_canonical_slice,
    structure=Structure.MOVEMENT,
    doc="A region of the operand: `size[i]` elements from `start[i]` by `step[i]`, backwards for "
    "a negative step.",
)

concatenate = OpDef(
    name="concatenate",
    signature=_concatenate_type,
    reference=lambda *arrays, axis: np.concatenate(arrays, axis),
    gradient=gradients.of_concatenate,
    tangent=linear(),
    batching=batching.of_concatenate,
    canonical=lambda emit, operands, attrs: operands[0] if len(operands) == 1 else None,
    structure=Structure.MOVEMENT,
    doc="The operands one after another along `axis`.",
)

pad = OpDef(
    name="pad",
    signature=_pad_type,
    reference=_pad,
    gradient=gradients.of_pad,
    tangent=linear(),
    batching=batching.of_pad,
    canonical=_canonical_pad,
    structure=Structure.MOVEMENT,
    doc="The operand with `low` fills before and `high` after it, per axis.",
)

update_slice = OpDef(
    name="update_slice",
    signature=_update_type,
    reference=_update,
    gradient=gradients.of_update,
    tangent=linear(),
    batching=batching.of_update,
    canonical=_canonical_update,
    structure=Structure.MOVEMENT,
    doc="The first operand with a region replaced by the second, whose shape is the region's.",
)

MOVEMENT: tuple[OpDef, ...] = (
    reshape, transpose, broadcast_to, slice_, concatenate, pad, update_slice,
)  # fmt: skip
