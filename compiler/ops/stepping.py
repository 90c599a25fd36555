"""Folding by any elementwise op of two operands, which the attribute `step` names.

Elements are taken from first to last, each into what the ones before it gave: nothing is assumed
of the step, neither that it associates nor that it has a neutral value.

Invariants: a scan's step takes the element type twice and gives it back. A step that writes takes
the type of the values; elements are cast to it and back, each time.
Not here: folds by a monoid, whose order is free (reduction.py), and their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..types import TOKEN, DType, TensorType, Type, dtype_of
from .attributes import equal_shapes, exactly, one_axis, only_tensor, tensor
from .batching import shifted
from .definition import Attrs, Facts, OpDef, SignatureError, Structure
from .elementwise import ELEMENTWISE
from .elementwise_cast import cast_array
from .gather import gathered_shape, located
from .gather_batching import of_scatter

STEPS = {op.name: op for op in ELEMENTWISE}


def op_of(name: object) -> OpDef:
    """The op that the attribute names. Raises SignatureError."""
    found = STEPS.get(name) if isinstance(name, str) else None
    if found is None:
        raise SignatureError("TM203", f"needs the name of an elementwise op, got {name!r}")
    return found


def step_of(name: object, dtype: DType) -> tuple[int, DType]:
    """How many elements of a dtype the step takes, 2 or 1, and the dtype of what it gives.
    Raises SignatureError."""
    one = TensorType(dtype, ())
    op = op_of(name)
    for count in (2, 1):
        try:
            (made,) = op.signature((one,) * count, {})
        except (SignatureError, ValueError):  # of several results there is no step
            continue
        if isinstance(made, TensorType):
            return count, made.dtype
    raise SignatureError("TM202", f"{op.name} does not step through {dtype.name}")


def _accumulate_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    operand = only_tensor(operands)
    axis, step = exactly(attrs, "axis", "step")
    one_axis(axis, operand.rank)
    if step_of(step, operand.dtype) != (2, operand.dtype):
        raise SignatureError("TM202", f"{step} does not step through {operand.dtype.name}")
    return (operand,)


def _accumulate(x: Any, *, axis: int, step: str) -> Any:
    rows = np.moveaxis(np.array(x), axis, 0)
    reference = op_of(step).reference
    for at in range(1, len(rows)):
        rows[at] = reference(rows[at - 1], rows[at])
    return np.moveaxis(rows, 0, axis)


def _scatter_step_type(operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    base, value = tensor(operands, 0), tensor(operands, 1, "value")
    axes, step = exactly(attrs, "axes", "step")
    equal_shapes(value.shape, gathered_shape(base, operands[2:], axes), "of value and region")
    step_of(step, value.dtype)
    return (base, TOKEN)


def _scatter_step(
    base: Any, value: Any, *indices: Any, axes: Sequence[int], step: str
) -> tuple[Any, str | None]:
    place, complaint = located(base.shape, indices, axes)
    result = np.array(base)
    if place is None:
        return result, complaint
    lead, arrays = place[: axes[0]], place[axes[0] :]
    reference = op_of(step).reference
    own, wide = _dtype(base), _dtype(value)
    count, _ = step_of(step, wide)
    for at in np.ndindex(*arrays[0].shape):
        one = (*lead, *(int(index[at]) for index in arrays))
        operands = (cast_array(result[one], wide), value[(*lead, *at)])[:count]
        result[one] = cast_array(reference(*operands), own)
    return result, complaint


def _dtype(array: Any) -> DType:
    found = dtype_of(array.dtype)
    assert found is not None
    return found


STEPPING: tuple[OpDef, ...] = (
    OpDef(
        name="accumulate",
        signature=_accumulate_type,
        reference=_accumulate,
        batching=shifted("axis"),
        structure=Structure.SCAN,
        doc="Each element after all before it along `axis`: the elementwise op `step` is given "
        "what it made of those and the element.",
    ),
    OpDef(
        name="scatter_step",
        signature=_scatter_step_type,
        reference=_scatter_step,
        batching=of_scatter,
        structure=Structure.SCATTER,
        facts=Facts(can_fail=True),
        doc="The first operand, of which each element at the index arrays, which stand for `axes`, "
        "is replaced by what the elementwise op `step` makes of it and of the value there, one "
        "after another in C order. It steps in the type of the values; of those a step of one "
        "operand sees none.",
    ),
)
