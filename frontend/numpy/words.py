"""Small compositions on graph values that several families are written with.

Invariants: operands and results are values of the trace given first.
Not here: what user code passes (operands.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracemill.compiler.dims import Size, floor_divide, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.ops.signature import shape_text
from tracemill.compiler.types import DType

from ..tracing.state import Trace, fail
from .axes import one_axis


def full(trace: Trace, shape: Sequence[Size], number: Any, dtype: DType) -> Value:
    """`number` everywhere."""
    return spread(trace, trace.literal(number, dtype), tuple(shape))


def spread(trace: Trace, value: Value, shape: tuple[Size, ...]) -> Value:
    """``broadcast_to``, nothing where the shape is there already."""
    if value.tensor.shape == shape:
        return value
    made: Value = trace.emit("broadcast_to", value, shape=shape)
    return made


def reshape(trace: Trace, value: Value, shape: Sequence[Size]) -> Value:
    """The same elements under another shape."""
    made: Value = trace.emit("reshape", value, shape=tuple(shape))
    return made


def transpose(trace: Trace, value: Value, perm: Sequence[int]) -> Value:
    """The axes in another order."""
    made: Value = trace.emit("transpose", value, perm=tuple(perm))
    return made


def slice_axis(
    trace: Trace, value: Value, axis: int, start: Size, size: Size, step: int = 1
) -> Value:
    """A region of one axis."""
    shape = value.tensor.shape
    made: Value = trace.emit(
        "slice",
        value,
        start=tuple([start if i == axis else 0 for i in range(len(shape))]),
        size=tuple([size if i == axis else n for i, n in enumerate(shape)]),
        step=tuple([step if i == axis else 1 for i in range(len(shape))]),
    )
    return made


def flip(trace: Trace, value: Value, axes: Sequence[int]) -> Value:
    """Axes reversed. Where an axis may be empty its start is given by the size alone."""
    shape = value.tensor.shape
    made: Value = trace.emit(
        "slice",
        value,
        start=tuple([n - 1 if i in axes and n != 0 else 0 for i, n in enumerate(shape)]),
        size=shape,
        step=tuple([-1 if i in axes else 1 for i in range(len(shape))]),
    )
    return made


def expand(trace: Trace, value: Value, axes: Sequence[int]) -> Value:
    """Axes of size 1 put in, at positions of the result."""
    rank = value.tensor.rank + len(axes)
    rest = iter(value.tensor.shape)
    return reshape(trace, value, [1 if i in axes else next(rest) for i in range(rank)])


def broadcast_shapes(trace: Trace, shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    """The common shape by NumPy's rule; what is not known is decided by the hints."""
    rank = max(map(len, shapes))
    common: list[Size] = []
    for axis in range(-rank, 0):
        size: Size = 1
        for shape in shapes:
            mine = shape[axis] if -axis <= len(shape) else 1
            if type(mine) is not int:
                mine = trace.sizes.normal(mine)
            size = trace.sizes.normal(size)
            if mine == 1 or mine == size:
                continue
            if size == 1:
                size = mine
            elif not trace.unify(size, mine):
                texts = " and ".join(map(shape_text, shapes))
                raise fail(
                    "TM204",
                    f"operands could not be broadcast together, got shapes {texts}",
                    f"they differ in dimension {rank + axis}",
                )
            elif trace.sizes.normal(size) == 1:
                size = mine
        common.append(size)
    return tuple([trace.sizes.normal(size) for size in common])


def broadcast_to(trace: Trace, value: Value, shape: tuple[Size, ...], what: str = "array") -> Value:
    """The value repeated to `shape`; leading axes of size 1 too many are dropped."""
    have = value.tensor.shape
    if have == shape:
        return value
    if len(have) > len(shape) and all(n == 1 for n in have[: len(have) - len(shape)]):
        value = reshape(trace, value, have[len(have) - len(shape) :])
        have = value.tensor.shape
    lead = len(shape) - len(have)
    fits = lead >= 0
    for mine, wanted in zip(have, shape[max(lead, 0) :]):
        if fits and mine != 1 and mine != wanted:
            fits = trace.sizes.equal(
                mine, wanted, "an array is broadcast to this shape"
            ) or trace.sizes.equal(mine, 1, "an array is broadcast to this shape")
    if not fits:
        raise fail(
            "TM205",
            f"could not broadcast {what} from shape {shape_text(have)} into shape "
            f"{shape_text(shape)}",
        )
    return spread(trace, value, tuple([trace.sizes.normal(size) for size in shape]))


def sequence(trace: Trace, size: Size) -> Value:
    """0, 1, ..., size - 1 as i64."""
    made: Value = trace.emit("iota", size=size)
    return made


def in_a_row(trace: Trace, value: Value, axis: Any) -> tuple[Value, int]:
    """What a function goes along, and the axis: all elements in a row where none is named. An
    array of rank 0 is a row of one."""
    rank = value.tensor.rank
    if axis is not None and rank:
        return value, one_axis(axis, rank)
    place = 0 if axis is None else one_axis(axis, 1)
    return reshape(trace, value, (product(value.tensor.shape),)), place


def slid(trace: Trace, value: Value, axis: int, window: Size, stride: int, dilation: int) -> Value:
    """The windows over an axis, their positions a new last axis."""
    shape = value.tensor.shape
    places: Size = floor_divide(shape[axis] - (window - 1) * dilation - 1, stride) + 1
    repeated = spread(trace, reshape(trace, value, (*shape, 1)), (*shape, window))
    made: Value = trace.emit(
        "slide", repeated, axes=(axis, len(shape)), dilation=dilation, size=places, stride=stride
    )
    return made
