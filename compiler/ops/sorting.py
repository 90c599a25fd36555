"""Rows in order: the elements of the last axis, or where they were; and looking up in a row.

The order is NumPy's: ascending, NaN after everything else, -0.0 and 0.0 equal, false before true.
Sorting is stable: equal elements stay in the order they were in, so results are fixed bit for bit.

Invariants: the last axis is the one sorted; operands are real numbers or bools.
Not here: other axes (transpose first), complex numbers, partitions, medians and the like
(compositions).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import BF16, I64, TensorType, Type
from .attributes import count, dtype_kind, exactly, only_tensor, same_dtype, tensor
from .batching import Each, Lanes, Operands, aligned, as_it_is
from .definition import Attrs, Facts, OpDef, SignatureError, Structure

Rule = Sequence[Any]


def _rows(operands: Sequence[Type], attrs: Attrs) -> TensorType:
    exactly(attrs)
    operand = only_tensor(operands)
    dtype_kind(operand, "biuf", "real numbers or bools")
    if operand.rank == 0:
        raise SignatureError("TM208", "needs an axis to sort along, got an array of dimension 0")
    return operand


def _sort_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    return (_rows(operands, attrs),)


def _argsort_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    return (TensorType(I64, _rows(operands, attrs).shape),)


def _search_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    (side,) = exactly(attrs, "side")
    if side not in ("left", "right"):
        raise SignatureError("TM203", f"needs the side left or right, got {side!r}")
    count(operands, 2)
    row, wanted = tensor(operands, 0), tensor(operands, 1)
    dtype_kind(row, "biuf", "real numbers or bools")
    same_dtype(row, wanted)
    if row.rank != 1:
        raise SignatureError("TM208", f"searches an array of dimension 1, got {row.rank}")
    return (TensorType(I64, wanted.shape),)


def _greatest_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    (size,) = exactly(attrs, "size")
    operand = _rows(operands, {})
    if type(size) is not int or size < 0:
        raise SignatureError("TM203", f"needs a number of elements as size, got {size!r}")
    row = operand.shape[-1]
    if isinstance(row, int) and size > row:
        raise SignatureError("TM203", f"cannot give {size} of {row} elements")
    return (TensorType(I64, (*operand.shape[:-1], size)),)


def _greatest(x: Any, size: Any) -> Any:
    """From the end of the row sorted backwards, so that equal elements come in their order."""
    order = np.flip(_argsort(np.flip(x, -1)), -1)[..., :size]
    return x.shape[-1] - 1 - order


def _search(row: Any, wanted: Any, side: Any) -> Any:
    wide: Any = _wide(row)
    return np.asarray(np.searchsorted(wide, _wide(wanted), side=side), np.int64)


def _wide(x: Any) -> Any:
    """bf16 as f32, which has its order; NumPy does not know it."""
    return np.asarray(x, np.float32) if x.dtype == BF16.numpy else x


def _argsort(x: Any) -> Any:
    return np.argsort(_wide(x), axis=-1, kind="stable")


def _sort(x: Any) -> Any:
    return np.take_along_axis(x, _argsort(x), axis=-1)


def along_rows(emit: Any, x: Any, places: Any) -> Any:
    """The elements of each row of `x` at the places of the same row of `places`."""
    shape = places.type.shape
    rank = len(shape)
    index = [
        emit.reshape(
            emit.iota(size=shape[axis]),
            shape=tuple([shape[axis] if a == axis else 1 for a in range(rank)]),
        )
        for axis in range(rank - 1)
    ]
    made, _ = emit.gather(x, *index, places, axes=tuple(range(rank)))
    return made


def _sort_gradient(emit: Any, node: Any, cts: Rule) -> Rule:
    """Each cotangent goes back to where its element was."""
    places = emit.argsort(node.operands[0])
    return [along_rows(emit, cts[0], emit.argsort(places))]


def _sort_tangent(emit: Any, node: Any, tangents: Rule) -> Rule:
    """Each tangent goes where its element went."""
    return [along_rows(emit, tangents[0], emit.argsort(node.operands[0]))]


def _search_lanes(emit: Any, node: Any, operands: Operands, lanes: Lanes) -> Sequence[Each]:
    """In rows of their own all elements are compared, which takes no memory but the time."""
    row, wanted = operands
    if not row.own:
        return as_it_is(emit, node, operands, lanes)
    elements = aligned(emit, row, wanted.rank + 1)
    shape = wanted.value.type.shape
    numbers = emit.reshape(wanted.value, shape=(*shape, 1))
    is_left = node.attrs["side"] == "left"
    before = (emit.less if is_left else emit.less_equal)(elements, numbers)
    if elements.type.dtype.is_float:  # NaN comes after everything, and is equal to itself
        last = emit.isnan(numbers)
        if is_left:
            last = emit.logical_and(last, emit.logical_not(emit.isnan(elements)))
        before = emit.logical_or(before, last)
    made = emit.sum(emit.cast(before, dtype=I64), axes=(wanted.rank + 1,))
    return [Each(made, True)]


sort = OpDef(
    name="sort",
    signature=_sort_type,
    reference=_sort,
    gradient=_sort_gradient,
    tangent=_sort_tangent,
    batching=as_it_is,
    structure=Structure.SORT,
    facts=Facts(idempotent=True),
    doc="The rows of the last axis in ascending order: stable, NaN last.",
)

argsort = OpDef(
    name="argsort",
    signature=_argsort_type,
    reference=_argsort,
    batching=as_it_is,
    structure=Structure.SORT,
    facts=Facts(differentiable=False),
    doc="Where the elements of each row of the last axis stand when it is sorted: the place of the "
    "least first, equal ones in the order of their places, NaN last.",
)

searchsorted = OpDef(
    name="searchsorted",
    signature=_search_type,
    reference=_search,
    batching=_search_lanes,
    structure=Structure.SORT,
    facts=Facts(differentiable=False),
    doc="How many elements of the sorted first operand come before each element of the second; "
    "on the side `right` those equal to it as well.",
)

greatest = OpDef(
    name="greatest",
    signature=_greatest_type,
    reference=_greatest,
    batching=as_it_is,
    structure=Structure.SORT,
    facts=Facts(differentiable=False),
    doc="Where the `size` greatest elements of each row of the last axis stand, the greatest "
    "first, equal ones in the order of their places; NaN is greater than everything.",
)

SORTING: tuple[OpDef, ...] = (sort, argsort, searchsorted, greatest)
