"""Sums of products over pairs of axes: matmul, dot, tensordot, einsum and outer in one form.

Invariants: the result is the batch axes in the order of `batch`, then the free axes of the first
operand, then those of the second. Pairs in `axes` are sorted by the first operand's axis.
Not here: the order of summation (kernels promise an error bound).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import product
from ..types import BF16, TensorType, Type
from .attributes import count, distinct_axes, dtype_kind, equal_sizes, exactly, same_dtype, tensor
from .batching import Each, Lanes, Operands, moved_axis
from .definition import Attrs, OpDef, SignatureError, Structure
from .record import conjugate
from .shaping import inverse
from .tangents import bilinear

Pairs = Sequence[tuple[int, int]]


def _contract_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    count(operands, 2)
    a, b = tensor(operands, 0), tensor(operands, 1)
    axes, batch = exactly(attrs, "axes", "batch")
    same_dtype(a, b)
    dtype_kind(a, "iufc", "numbers")
    pairs = (*pairs_of(batch, "batch"), *pairs_of(axes, "axes"))
    distinct_axes(tuple(p[0] for p in pairs), a.rank, "axes of the first operand")
    distinct_axes(tuple(p[1] for p in pairs), b.rank, "axes of the second operand")
    for i, j in pairs:
        equal_sizes(a.shape[i], b.shape[j], f"in axes {i} and {j}, of {a} and {b}")
    return (TensorType(a.dtype, (
        *[a.shape[i] for i, _ in batch],
        *[a.shape[i] for i in free_axes(a.rank, [p[0] for p in pairs])],
        *[b.shape[j] for j in free_axes(b.rank, [p[1] for p in pairs])],
    )),)  # fmt: skip


def pairs_of(value: object, what: str) -> Pairs:
    """An attribute as pairs of axes."""
    if isinstance(value, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in value):
        return value
    raise SignatureError("TM203", f"needs pairs of axes as {what}, got {value!r}")


def free_axes(rank: int, taken: Sequence[int]) -> list[int]:
    """The axes that are neither batch nor contracted."""
    return [axis for axis in range(rank) if axis not in taken]


def _contract(a: Any, b: Any, axes: Pairs, batch: Pairs) -> Any:
    wide = [x.astype(np.float32) if x.dtype == BF16.numpy else x for x in (a, b)]
    batch_a, batch_b = [i for i, _ in batch], [j for _, j in batch]
    sum_a, sum_b = [i for i, _ in axes], [j for _, j in axes]
    free_a = free_axes(a.ndim, batch_a + sum_a)
    free_b = free_axes(b.ndim, batch_b + sum_b)
    shape_batch = tuple(a.shape[i] for i in batch_a)
    shape_a = tuple(a.shape[i] for i in free_a)
    shape_b = tuple(b.shape[j] for j in free_b)
    inner = product(tuple(a.shape[i] for i in sum_a))
    left = (
        wide[0].transpose(batch_a + free_a + sum_a).reshape(*shape_batch, product(shape_a), inner)
    )
    right = (
        wide[1].transpose(batch_b + sum_b + free_b).reshape(*shape_batch, inner, product(shape_b))
    )
    with np.errstate(all="ignore"):
        made = np.matmul(left, right)
    return made.reshape(shape_batch + shape_a + shape_b).astype(a.dtype, copy=False)


def _sorted_pairs(emit: Any, operands: Sequence[Any], attrs: Attrs) -> Any:
    pairs = tuple(sorted(attrs["axes"]))
    if pairs == attrs["axes"]:
        return None
    return emit.contract(*operands, axes=pairs, batch=attrs["batch"])


def _contract_gradient(emit: Any, node: Any, cts: Sequence[Any]) -> Sequence[Any]:
    a, b = node.operands
    axes, batch = node.attrs["axes"], node.attrs["batch"]
    swapped = tuple((j, i) for i, j in axes), tuple((j, i) for i, j in batch)
    free_b = len(b.type.shape) - len(axes) - len(batch)
    free_a = len(a.type.shape) - len(axes) - len(batch)
    first_b = len(batch) + free_a
    of_a = _operand_gradient(
        emit, cts[0], conjugate(emit, b), len(a.type.shape), axes, batch, (first_b, free_b)
    )
    of_b = _operand_gradient(
        emit, cts[0], conjugate(emit, a), len(b.type.shape), *swapped, (len(batch), free_a)
    )
    return [of_a, of_b]


def _operand_gradient(
    emit: Any, ct: Any, other: Any, rank: int, axes: Pairs, batch: Pairs, free: tuple[int, int]
) -> Any:
    """Contract `ct` with `other` over the other's free axes, then put the axes in their places.

    axes, batch: pairs of (my axis, the other's axis). free: where in `ct` the other's free axes
    begin, and how many they are.
    """
    other_free = free_axes(len(other.type.shape), [j for _, j in (*batch, *axes)])
    begin, number = free
    made = emit.contract(
        ct,
        other,
        axes=tuple(zip(range(begin, begin + number), other_free)),
        batch=tuple((place, j) for place, (_, j) in enumerate(batch)),
    )
    # The result: batch axes, my free axes, then the summed axes in the other's order.
    mine = [i for i, _ in batch]
    mine += free_axes(rank, [i for i, _ in (*batch, *axes)])
    mine += [i for i, _ in sorted(axes, key=lambda pair: pair[1])]
    return emit.transpose(made, perm=inverse(mine))


def _contract_lanes(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    axes, batch, place = lanes_among_axes(node, operands)
    a, b = operands
    made = emit.contract(a.value, b.value, axes=axes, batch=batch)
    return [Each(moved_axis(emit, made, place, 0), True)]


def lanes_among_axes(node: Any, operands: Operands) -> tuple[Pairs, Pairs, int]:
    """Of two operands' pairs of axes: `axes` and `batch` where lanes are a batch pair, or a free
    axis of the operand that has them; and where they are in the result."""
    a, b = operands
    axes = shifted_pairs(node.attrs["axes"], operands)
    batch = shifted_pairs(node.attrs["batch"], operands)
    if a.own and b.own:
        return axes, ((0, 0), *batch), 0
    windows = len(node.attrs.get("windows", ()))
    free_a = a.rank - len(axes) - len(batch) - windows
    return axes, batch, len(batch) + (0 if a.own else free_a)


def shifted_pairs(pairs: Pairs, operands: Operands) -> Pairs:
    """Pairs of axes behind the lanes that operands have."""
    a, b = operands
    return tuple([(i + a.own, j + b.own) for i, j in pairs])


contract = OpDef(
    name="contract",
    signature=_contract_type,
    reference=_contract,
    gradient=_contract_gradient,
    tangent=bilinear,
    batching=_contract_lanes,
    canonical=_sorted_pairs,
    structure=Structure.CONTRACTION,
    doc="Sums of products: pairs in `axes` are summed, pairs in `batch` run together, all other "
    "axes are free.",
)

CONTRACTION: tuple[OpDef, ...] = (contract,)
