"""Operands of a product in memory: where they begin, and bytes from element to element.

Invariants: the byte offset of an operand is linear in the product's axes.
Not here: operands in panels, which have a fixed form (packed.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from llvmlite import ir

from ....compiler.dims import Dim, Size
from ....compiler.kernel.contraction import Axis, Operand
from ....compiler.records import dataclass
from ....compiler.types import DType
from ..access import address
from ..frame import Frame
from ..indices import scalar_size
from .code import number


@dataclass(frozen=True, slots=True)
class Place:
    """An operand: the address of its first element for the current outer axes, its strides.

    strides: bytes per axis as sizes; 0 for an axis that it does not have.
    """

    dtype: DType
    pointer: ir.Value
    strides: dict[str, Size]

    def stride(self, frame: Frame, axis: Axis | None) -> ir.Value:
        """Bytes from one element to the next along an axis."""
        return scalar_size(frame, 0 if axis is None else self.strides.get(axis.name, 0))

    def runs_along(self, axis: Axis | None) -> bool | None:
        """Whether neighbours along an axis are neighbours in memory; None: not known yet."""
        if axis is None:
            return False
        return is_near(self.strides.get(axis.name, 0), self.dtype)


def is_near(stride: Size, dtype: DType) -> bool | None:
    """Whether elements so many bytes apart are neighbours; None: not known yet."""
    if isinstance(stride, int):
        return stride == dtype.itemsize
    lone = stride.name is not None and ".stride" in stride.name
    return None if lone else False


def place_of(frame: Frame, inner: Sequence[Axis | None], operand: Operand) -> Place:
    """The operand for the current outer axes, in the plane of the inner ones."""
    buffer = frame.buffers[operand.buffer]
    offset: Size = 0
    for part, stride in zip(operand.index, buffer.strides):
        offset = offset + part * stride
    axes = [a for a in inner if a is not None]
    strides = {a.name: _factor(offset, a) for a in axes}
    start = offset
    if isinstance(offset, Dim):
        start = offset.substitute({a.name: 0 for a in axes})
    return Place(operand.dtype, address(frame, buffer, start), strides)


def _factor(offset: Size, axis: Axis) -> Size:
    factor = offset.coefficient(axis.name) if isinstance(offset, Dim) else 0
    assert factor is not None
    return factor


@contextmanager
def at_outer(frame: Frame, outer: Sequence[Axis], point: ir.Value) -> Iterator[None]:
    """Bind the outer axes to the point with this number, the last axis fastest."""
    builder = frame.builder
    values = []
    for axis in reversed(outer[1:]):
        extent = scalar_size(frame, axis.extent)
        values.append(builder.urem(point, extent))
        point = builder.udiv(point, extent)
    if outer:
        values.append(point)
    with ExitStack() as stack:
        for axis, value in zip(outer, reversed(values)):
            stack.enter_context(frame.iteration(axis.name, value))
        if not outer:
            stack.enter_context(frame.iteration("(product)", number(0)))
        yield
