"""Reading and writing at indices that are values.

Index arrays (i64) broadcast together and index the neighbouring axes `axes`; the result has the
index shape in their place. A negative index counts from the end; one outside the axis fails
the call: each op yields its value and a check token.

Invariants: `axes` are neighbours in order, one index array each; written values have exactly the
shape that a gather would have.
Not here: masks (select), slices (movement), axes that are not neighbours (transpose first).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Size, product
from ..types import I64, TOKEN, TensorType, Type
from .attributes import distinct_axes, equal_shapes, just, same_dtype, tensor
from .definition import Attrs, Facts, OpDef, SignatureError, Structure
from .gather_batching import of_gather, of_scatter
from .shaping import filled, zeros_like
from .signature import broadcast_shapes
from .tangents import linear

Rule = Sequence[Any]


def _gather_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x = tensor(operands, 0)
    return (TensorType(x.dtype, gathered_shape(x, operands[1:], just(attrs, "axes"))), TOKEN)


def _scatter_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    base, value = tensor(operands, 0), tensor(operands, 1, "value")
    same_dtype(base, value)
    region = gathered_shape(base, operands[2:], just(attrs, "axes"))
    equal_shapes(value.shape, region, "of value and region")
    return (base, TOKEN)


def _scatter_add_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    types = _scatter_type(operands, attrs)
    if tensor(types, 0).dtype.kind == "b":
        raise SignatureError("TM202", "needs numbers, got bool")
    return types


def gathered_shape(x: TensorType, indices: Sequence[Type], named: object) -> tuple[Size, ...]:
    """The shape of what index arrays (i64) for the axes `named` take from an array."""
    axes = distinct_axes(named, x.rank)
    if not axes or axes != tuple(range(axes[0], axes[0] + len(axes))):
        raise SignatureError("TM203", f"needs neighbouring axes in order, got {list(axes)}")
    if len(indices) != len(axes):
        raise SignatureError("TM201", f"needs {len(axes)} index arrays, got {len(indices)}")
    for place in range(len(indices)):
        index = tensor(indices, place, "index")
        if index.dtype != I64:
            raise SignatureError("TM202", f"needs i64 indices, got {index.dtype.name}")
    shape = broadcast_shapes([tensor(indices, place).shape for place in range(len(indices))])
    return (*x.shape[: axes[0]], *shape, *x.shape[axes[-1] + 1 :])


# -- references


def located(
    shape: tuple[int, ...], indices: Sequence[Any], axes: Sequence[int]
) -> tuple[tuple[Any, ...] | None, str | None]:
    """A NumPy index, clipped where it is out of bounds, and the complaint if there is one.

    The index is None where an axis of size zero leaves nothing to clip to.
    """
    found: list[Any] = [slice(None)] * axes[0]
    complaint = None
    for index, axis in zip(np.broadcast_arrays(*indices), axes):
        extent = shape[axis]
        bad = (index < -extent) | (index >= extent)
        if bad.any():
            if complaint is None:
                complaint = (
                    f"index {index[bad][0]} is out of bounds for axis {axis} with size {extent}"
                )
            if extent == 0:
                return None, complaint
        found.append(np.clip(np.where(index < 0, index + extent, index), 0, max(extent - 1, 0)))
    return tuple(found), complaint


def _gather(x: Any, *indices: Any, axes: Sequence[int]) -> tuple[Any, str | None]:
    place, complaint = located(x.shape, indices, axes)
    if place is None:
        shape = np.broadcast_shapes(*[index.shape for index in indices])
        return np.zeros((*x.shape[: axes[0]], *shape, *x.shape[axes[-1] + 1 :]), x.dtype), complaint
    return np.asarray(x[place]), complaint


def _scatter(base: Any, value: Any, *indices: Any, axes: Sequence[int]) -> tuple[Any, str | None]:
    place, complaint = located(base.shape, indices, axes)
    result = np.array(base)
    if place is not None:
        result[place] = value
    return result, complaint


def _scatter_add(
    base: Any, value: Any, *indices: Any, axes: Sequence[int]
) -> tuple[Any, str | None]:
    place, complaint = located(base.shape, indices, axes)
    result = np.array(base)
    if place is not None:
        with np.errstate(all="ignore"):
            np.add.at(result, place, value)
    return result, complaint


# -- gradients


def _gather_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    x, *indices = node.operands
    made, _ = emit.scatter_add(zeros_like(emit, x), cts[0], *indices, axes=node.attrs["axes"])
    return [made, *[None] * len(indices)]


def _scatter_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    """The base gets nothing where something was written, a value nothing that was overwritten."""
    base, value, *indices = node.operands
    axes = node.attrs["axes"]
    rest, _ = emit.scatter(cts[0], zeros_like(emit, value), *indices, axes=axes)
    taken, _ = emit.gather(cts[0], *indices, axes=axes)
    if all(index.type.rank == 0 for index in indices):
        return [rest, taken, *[None] * len(indices)]
    last = _is_last_writer(emit, base, indices, axes, value.type.shape)
    written = emit.select(last, taken, zeros_like(emit, value))
    return [rest, written, *[None] * len(indices)]


def _is_last_writer(
    emit: Any, base: Any, indices: Rule, axes: Sequence[int], shape: tuple[Size, ...]
) -> Any:
    """Per element written: is it the one that stays? Broadcastable to `shape`."""
    index_shape = broadcast_shapes([index.type.shape for index in indices])
    own = emit.reshape(emit.iota(size=product(index_shape)), shape=index_shape)
    among = tuple(range(len(axes)))
    region = tuple([base.type.shape[axis] for axis in axes])
    writers, _ = emit.scatter(filled(emit, 0, I64, region), own, *indices, axes=among)
    stays, _ = emit.gather(writers, *indices, axes=among)
    last = emit.equal(stays, own)
    behind = len(shape) - axes[0] - len(index_shape)
    return emit.reshape(last, shape=(*index_shape, *[1] * behind))


def _scatter_add_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    _, _, *indices = node.operands
    taken, _ = emit.gather(cts[0], *indices, axes=node.attrs["axes"])
    return [cts[0], taken, *[None] * len(indices)]


gather = OpDef(
    name="gather",
    signature=_gather_type,
    reference=_gather,
    gradient=_gather_gradient,
    tangent=linear(0),
    batching=of_gather,
    structure=Structure.GATHER,
    facts=Facts(can_fail=True),
    doc="Elements of the first operand at the index arrays, which stand for `axes`.",
)

scatter = OpDef(
    name="scatter",
    signature=_scatter_type,
    reference=_scatter,
    gradient=_scatter_gradient,
    tangent=linear(0, 1),
    batching=of_scatter,
    structure=Structure.SCATTER,
    facts=Facts(can_fail=True),
    doc="The first operand with the second written at the index arrays, which stand for `axes`. "
    "Where an element is written twice the last writer, in C order, wins.",
)

scatter_add = OpDef(
    name="scatter_add",
    signature=_scatter_add_type,
    reference=_scatter_add,
    gradient=_scatter_add_gradient,
    tangent=linear(0, 1),
    batching=of_scatter,
    structure=Structure.SCATTER,
    facts=Facts(can_fail=True),
    doc="The first operand with the second added at the index arrays, which stand for `axes`, "
    "one after another in C order.",
)

GATHER: tuple[OpDef, ...] = (gather, scatter, scatter_add)
