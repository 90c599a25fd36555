"""Gathers and scatters: one instruction where there is one, else a loop over lanes.

Where there is none, LLVM writes the lanes out, several instructions and a branch for each: of
hundreds of bytes that is code which takes seconds to compile.

Invariants: inactive lanes touch nothing; lanes are stored in order, so the last one wins.
Not here: which accesses are gathers (memory.py).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from .access import Access, ramp
from .frame import Frame, constant, offset_bytes
from .indices import scalar_size
from .types import (
    I1,
    I8,
    I32,
    I64,
    VOID,
    constant_of,
    element_of,
    intrinsic,
    splat,
    vector_of,
    width_of,
)

_WRITTEN_OUT = 16  # lanes that LLVM may write out


def lane_offsets(frame: Frame, place: Access, width: int) -> ir.Value:
    """Bytes from the first lane's address to each lane's."""
    offsets = place.offsets if place.offsets is not None else ramp(frame, place.stride)
    return splat(frame.builder, offsets, width)


def _goes_by_lane(frame: Frame, place: Access, element: ir.Type) -> bool:
    """Whether there are many lanes, of a type that no instruction gathers."""
    width: int = getattr(element, "width", 64 if isinstance(element, ir.DoubleType) else 32)
    instruction = frame.machine.has_avx512 and width >= 32
    return place.width > _WRITTEN_OUT and not frame.machine.is_device and not instruction


def _pointers(frame: Frame, place: Access, step: int) -> ir.Value:
    offsets = lane_offsets(frame, place, place.width)
    if step:
        offsets = frame.builder.add(offsets, constant_of(offsets.type, step))
    return offset_bytes(frame, place.pointer, offsets)


def _every(place: Access, mask: ir.Value | None) -> ir.Value:
    return mask if mask is not None else constant_of(vector_of(I1, place.width), 1)


def gathered(
    frame: Frame, place: Access, mask: ir.Value | None, other: ir.Value, step: int
) -> ir.Value:
    """What lies at the places of active lanes, `step` bytes on; `other` for the rest."""
    element = element_of(other.type)
    if not _goes_by_lane(frame, place, element):
        where = _pointers(frame, place, step)
        args = [where, ir.Constant(I32, 1), _every(place, mask), other]
        return intrinsic(
            frame.builder, "llvm.masked.gather", other.type, args, other.type, where.type
        )
    made = frame.stack_slot(element, place.width)
    frame.builder.store(other, made)

    def lane(number: ir.Value, pointer: ir.Value) -> None:
        found = frame.builder.load(pointer, typ=element, align=1)
        frame.builder.store(found, frame.builder.gep(made, [number], source_etype=element))

    _each_lane(frame, place, mask, step, lane)
    return frame.builder.load(made, typ=other.type)


def scatter(frame: Frame, place: Access, mask: ir.Value | None, value: ir.Value, step: int) -> None:
    """Write the active lanes to their places, `step` bytes on."""
    element = element_of(value.type)
    if not _goes_by_lane(frame, place, element):
        where = _pointers(frame, place, step)
        args = [value, where, ir.Constant(I32, 1), _every(place, mask)]
        intrinsic(frame.builder, "llvm.masked.scatter", VOID, args, value.type, where.type)
        return
    source = frame.stack_slot(element, place.width)
    frame.builder.store(value, source)

    def lane(number: ir.Value, pointer: ir.Value) -> None:
        place_of = frame.builder.gep(source, [number], source_etype=element)
        frame.builder.store(frame.builder.load(place_of, typ=element), pointer, align=1)

    _each_lane(frame, place, mask, step, lane)


def _each_lane(
    frame: Frame,
    place: Access,
    mask: ir.Value | None,
    step: int,
    emit: Callable[[ir.Value, ir.Value], None],
) -> None:
    """`emit` with the number and the address of each active lane, in order."""
    builder = frame.builder
    offset = _offsets(frame, place)
    active = None
    if mask is not None:
        flags = builder.zext(mask, ir.VectorType(I8, place.width))
        active = frame.stack_slot(I8, place.width)
        builder.store(flags, active)
    before, top, done = builder.block, frame.block("lane"), frame.block("lanes")
    builder.branch(top)
    builder.position_at_end(top)
    number = builder.phi(I64)
    number.add_incoming(constant(0), before)
    pointer = offset_bytes(frame, place.pointer, builder.add(offset(number), constant(step)))
    if active is None:
        emit(number, pointer)
    else:
        flag = builder.load(builder.gep(active, [number], source_etype=I8), typ=I8)
        with builder.if_then(builder.icmp_unsigned("!=", flag, ir.Constant(I8, 0))):
            emit(number, pointer)
    following = builder.add(number, constant(1))
    number.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, constant(place.width)), top, done)
    builder.position_at_end(done)


def _offsets(frame: Frame, place: Access) -> Callable[[ir.Value], ir.Value]:
    """The bytes from the first lane's address to a lane's, given its number."""
    builder = frame.builder
    if place.offsets is None:
        assert place.stride is not None
        stride = scalar_size(frame, place.stride)
        return lambda number: builder.mul(number, stride)
    if width_of(place.offsets) == 1:
        shared = place.offsets
        return lambda number: shared
    offsets = lane_offsets(frame, place, place.width)
    kept = frame.stack_slot(I64, place.width)
    builder.store(offsets, kept)
    return lambda number: builder.load(builder.gep(kept, [number], source_etype=I64), typ=I64)
