"""Where an index points: one address and a stride over lanes, or an offset for each lane.

The byte offset of an access is one polynomial in axes and dims. Its part that changes with a
level is added there, so row addresses leave the inner loops; its coefficient for the vector axis
is the stride over lanes.

Not here: which instructions use it (memory.py), range checks (statements.py).
"""

from __future__ import annotations

from llvmlite import ir

from ...compiler.dims import Dim, Size
from ...compiler.records import dataclass
from ...compiler.types import DType
from .frame import Buffer, Frame, offset_bytes
from .indices import iota, lane_size, level_of, scalar_size
from .types import constant_of, splat, width_of


@dataclass(frozen=True, slots=True)
class Access:
    """A place in memory, per lane or shared.

    pointer: address of the first lane. stride: bytes from lane to lane: an int, or a size
    known at run time; None when `offsets` (per-lane bytes from `pointer`) says more.
    condition: where it is allowed, a shared i1 or a lane mask.
    """

    dtype: DType
    pointer: ir.Value
    stride: Size | None
    offsets: ir.Value | None
    width: int
    condition: ir.Value | None


def resolve(
    frame: Frame,
    buffer: Buffer,
    index: tuple[Size, ...],
    dynamic: list[tuple[Size, ir.Value]],
    condition: ir.Value | None,
) -> Access:
    """Resolve an index: affine parts `index`, and values times byte strides `dynamic`."""
    offset: Size = 0
    for part, stride in zip(index, buffer.strides):
        offset = offset + part * stride
    axis, width = frame.lanes.axis, frame.lanes.width
    step: Size | None = 0
    if axis is not None and isinstance(offset, Dim):
        step = offset.coefficient(axis)
    lane_offsets: ir.Value | None = None
    if step is None:
        lane_offsets = lane_size(frame, offset)
        pointer = buffer.pointer
    else:
        pointer = address(frame, buffer, offset)
    for stride, value in dynamic:
        scaled = times(frame, value, stride)
        if width_of(scaled) == 1:
            pointer = offset_bytes(frame, pointer, scaled)
        else:
            if lane_offsets is None and step != 0:
                lane_offsets = ramp(frame, step)
            lane_offsets = scaled if lane_offsets is None else frame.builder.add(
                splat(frame.builder, lane_offsets, width), scaled
            )  # fmt: skip
    shared = lane_offsets is None and step == 0
    if condition is not None and width_of(condition) > 1 and shared:
        lane_offsets, shared = constant_of(iota(width).type, 0), False
    return Access(
        buffer.dtype,
        pointer,
        None if lane_offsets is not None else step,
        lane_offsets,
        1 if shared else width,
        condition,
    )


def address(frame: Frame, buffer: Buffer, offset: Size) -> ir.Value:
    """The address of the first lane, built level by level, each part where it changes."""
    if isinstance(offset, int):
        return offset_bytes(frame, buffer.pointer, offset)
    parts: dict[int, Size] = {}
    last = 0
    for factors, coefficient in offset.terms:
        if not factors:
            last = coefficient
            continue
        term = Dim(((factors, coefficient),))
        level = level_of(frame, term)
        parts[level] = parts.get(level, 0) + term
    pointer = buffer.pointer
    for level in sorted(parts):
        memo = frame.levels[level].memo
        key = (id(pointer), parts[level])
        found = memo.get(key)
        if found is None:
            with frame.at_level(level):
                found = _advance(frame, buffer, pointer, parts[level])
            memo[key] = found
        pointer = found
    return offset_bytes(frame, pointer, last)


def _advance(frame: Frame, buffer: Buffer, pointer: ir.Value, part: Size) -> ir.Value:
    """pointer + part; an axis alone, scaled by the item size, fits an addressing mode."""
    if isinstance(part, Dim) and len(part.terms) == 1:
        ((factors, coefficient),) = part.terms
        known = frame.axes.get(factors[0]) if isinstance(factors[0], str) else None
        if len(factors) == 1 and known is not None and coefficient in (1, 2, 4, 8):
            typ = ir.IntType(8 * coefficient)
            moved = frame.builder.gep(pointer, [known.base], source_etype=typ)
            return offset_bytes(frame, moved, known.offset * coefficient)
    return offset_bytes(frame, pointer, scalar_size(frame, part))


def times(frame: Frame, value: ir.Value, stride: Size) -> ir.Value:
    """value * stride per lane."""
    factor = splat(frame.builder, scalar_size(frame, stride), width_of(value))
    return frame.builder.mul(value, factor)


def ramp(frame: Frame, step: Size | None) -> ir.Value:
    """0, step, 2 step, ... per lane."""
    assert step is not None
    width = frame.lanes.width
    return times(frame, iota(width), step)
