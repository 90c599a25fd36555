"""Loads and stores of lanes: which instruction an affine index deserves.

The stride over lanes decides: 0, one scalar shared by all lanes; the item size, one vector; its
negative, a reversed vector; a stride known only at run time, a branch between vector and gather;
anything else, a gather or scatter.

Invariants: no alignment is assumed, but on a device that of single elements; inactive lanes touch
nothing. An access whose shared condition fails goes to scrap memory of the frame instead of a
branch; on a device it is a branch, which keeps the address space of the place known.
Not here: where an index points (access.py).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ...compiler.types import BOOL, DType
from .access import Access, ramp
from .frame import Frame, Streaming, constant, offset_bytes
from .gathering import gathered, scatter
from .indices import iota, scalar_size
from .types import (
    I1,
    I8,
    I32,
    POINTER,
    VOID,
    Lane,
    constant_of,
    intrinsic,
    memory_element,
    part_count,
    vector_of,
    widen,
    width_of,
)  # fmt: skip


def load(frame: Frame, place: Access, other: Lane | None) -> Lane:
    """The lanes at `place`; `other` (0 if not given) where the condition fails."""
    condition = place.condition
    if condition is not None and width_of(condition) == 1:
        if frame.machine.is_device:
            return _load_if(frame, place, condition, other)
        place = _or_scrap(frame, place, condition)
        lane = load(frame, place, None)
        if other is None:
            return lane
        builder = frame.builder
        width = max(lane.width, other.width)
        lane, other = widen(builder, lane, width), widen(builder, other, width)
        parts = (builder.select(condition, a, b) for a, b in zip(lane.parts, other.parts))
        return Lane(lane.dtype, tuple(parts), width)
    if place.width == 1:
        return _load_scalar(frame, place)
    mask = _mask(frame, condition)
    fill = None if other is None else widen(frame.builder, other, place.width)
    return _by_stride(
        frame,
        place,
        lambda: _load_vector(frame, place, mask, fill),
        lambda: _load_reversed(frame, place, mask, fill),
        lambda: _gather(frame, place, mask, fill),
    )


def prefetch(frame: Frame, pointer: ir.Value) -> None:
    """Ask for the cache line at an address, which need not be valid."""
    args = [pointer, *(ir.Constant(I32, hint) for hint in (0, 1, 1))]  # read, keep, data
    intrinsic(frame.builder, "llvm.prefetch", VOID, args, POINTER)


def store(frame: Frame, place: Access, value: Lane, streaming: Streaming | None = None) -> None:
    """Write the lanes at `place` where the condition holds, perhaps past the caches."""
    condition = place.condition
    if condition is not None and width_of(condition) == 1:
        if frame.machine.is_device:
            with frame.builder.if_then(condition):
                _store_scalar(frame, place, value)
            return
        place = _or_scrap(frame, place, condition)
        condition = None
    if place.width == 1:
        _store_scalar(frame, place, _last_active(frame, value))
        return
    mask = _mask(frame, condition)
    wide = widen(frame.builder, value, place.width)
    _by_stride(
        frame,
        place,
        lambda: _store_vector(frame, place, mask, wide, streaming),
        lambda: _store_reversed(frame, place, mask, wide),
        lambda: _scatter(frame, place, mask, wide),
    )


def _by_stride(
    frame: Frame,
    place: Access,
    vector: Callable[[], Lane | None],
    reversed_: Callable[[], Lane | None],
    general: Callable[[], Lane | None],
) -> Lane:
    """Choose the instruction; a stride known at run time is compared there."""
    size = place.dtype.itemsize
    if place.stride == size:
        return vector()  # type: ignore[return-value]
    if place.stride == -size:
        return reversed_()  # type: ignore[return-value]
    if place.stride is None or isinstance(place.stride, int):
        return general()  # type: ignore[return-value]
    builder = frame.builder
    stride = scalar_size(frame, place.stride)
    dense, sparse, join = frame.block("dense"), frame.block("sparse"), frame.block("join")
    builder.cbranch(builder.icmp_signed("==", stride, constant(size)), dense, sparse)
    ends = []
    for block, emit in ((dense, vector), (sparse, general)):
        builder.position_at_end(block)
        made = emit()
        ends.append((made, builder.block))
        builder.branch(join)
    builder.position_at_end(join)
    first = ends[0][0]
    if first is None:
        return None  # type: ignore[return-value]
    parts = []
    for position in range(len(first.parts)):
        phi = builder.phi(first.parts[position].type)
        for made, block in ends:
            assert made is not None
            phi.add_incoming(made.parts[position], block)
        parts.append(phi)
    return Lane(place.dtype, tuple(parts), place.width)


def _mask(frame: Frame, condition: ir.Value | None) -> ir.Value | None:
    """Active lanes where the condition holds; None for all."""
    if condition is None:
        return frame.lanes.mask
    if frame.lanes.mask is None:
        return condition
    return frame.builder.and_(condition, frame.lanes.mask)


def _or_scrap(frame: Frame, place: Access, condition: ir.Value) -> Access:
    """The place, or memory nobody reads where a shared condition fails."""
    if frame.scrap is None:
        frame.scrap = frame.stack_slot(I8, 4096)
    builder = frame.builder
    pointer = builder.select(condition, place.pointer, frame.scrap)
    offsets = place.offsets
    if offsets is not None:
        offsets = builder.select(condition, offsets, constant_of(offsets.type, 0))
    stride = place.stride
    if stride not in (0, None, place.dtype.itemsize) and place.width > 1:
        steps = ramp(frame, stride)
        offsets, stride = builder.select(condition, steps, constant_of(steps.type, 0)), None
    return Access(place.dtype, pointer, stride, offsets, place.width, None)


def _part_bytes(place: Access) -> int:
    return place.dtype.itemsize // part_count(place.dtype)


def _part_pointer(frame: Frame, place: Access, pointer: ir.Value, part: int) -> ir.Value:
    step = part * _part_bytes(place)
    if width_of(pointer) > 1 and step:
        return offset_bytes(frame, pointer, constant_of(iota(width_of(pointer)).type, step))
    return offset_bytes(frame, pointer, step)


def _from_memory(frame: Frame, dtype: DType, value: ir.Value) -> ir.Value:
    if dtype is BOOL:
        return frame.builder.icmp_unsigned("!=", value, constant_of(value.type, 0))
    return value


def _to_memory(frame: Frame, dtype: DType, value: ir.Value) -> ir.Value:
    if dtype is BOOL:
        return frame.builder.zext(value, vector_of(I8, width_of(value)))
    return value


def _alignment(frame: Frame, dtype: DType) -> int:
    """What is known of an element's address."""
    return dtype.itemsize // part_count(dtype) if frame.machine.is_device else 1


def _load_scalar(frame: Frame, place: Access) -> Lane:
    parts = []
    for part in range(part_count(place.dtype)):
        pointer = _part_pointer(frame, place, place.pointer, part)
        raw = frame.builder.load(
            pointer, typ=memory_element(place.dtype), align=_alignment(frame, place.dtype)
        )
        parts.append(_from_memory(frame, place.dtype, raw))
    return Lane(place.dtype, tuple(parts))


def _load_if(frame: Frame, place: Access, condition: ir.Value, other: Lane | None) -> Lane:
    """An element, or `other` (0 if not given) without touching it."""
    builder = frame.builder
    before, inside, join = builder.block, frame.block("inside"), frame.block("join")
    builder.cbranch(condition, inside, join)
    builder.position_at_end(inside)
    lane = _load_scalar(frame, place)
    end = builder.block
    builder.branch(join)
    builder.position_at_end(join)
    parts = []
    for at, part in enumerate(lane.parts):
        fill = constant_of(part.type, 0.0 if _is_float(part.type) else 0)
        phi = builder.phi(part.type)
        phi.add_incoming(part, end)
        phi.add_incoming(fill if other is None else other.parts[at], before)
        parts.append(phi)
    return Lane(lane.dtype, tuple(parts))


def _store_scalar(frame: Frame, place: Access, value: Lane) -> None:
    for part, register in enumerate(value.parts):
        pointer = _part_pointer(frame, place, place.pointer, part)
        raw = _to_memory(frame, place.dtype, register)
        frame.builder.store(raw, pointer, align=_alignment(frame, place.dtype))


def _last_active(frame: Frame, value: Lane) -> Lane:
    """The value of the last active lane: the last writer in index order."""
    if value.width == 1:
        return value
    builder = frame.builder
    last = ir.Constant(I32, value.width - 1)
    if frame.lanes.mask is not None:
        bits = builder.bitcast(frame.lanes.mask, ir.IntType(value.width))
        zeros = intrinsic(builder, "llvm.ctlz", bits.type, [bits, ir.Constant(I1, 0)], bits.type)
        distance = builder.sub(ir.Constant(bits.type, value.width - 1), zeros)
        last = distance if value.width == 32 else (
            builder.trunc(distance, I32) if value.width > 32 else builder.zext(distance, I32)
        )  # fmt: skip
    return Lane(value.dtype, tuple(builder.extract_element(p, last) for p in value.parts))


def _spread(frame: Frame, mask: ir.Value | None, width: int, parts: int) -> ir.Value | None:
    """A mask for elements of several parts side by side."""
    if mask is None or parts == 1:
        return mask
    order = [lane for lane in range(width) for _ in range(parts)]
    return _shuffle(frame, mask, mask, order)


def _shuffle(frame: Frame, a: ir.Value, b: ir.Value, order: list[int]) -> ir.Value:
    mask = ir.Constant(ir.VectorType(I32, len(order)), [ir.Constant(I32, i) for i in order])
    return frame.builder.shuffle_vector(a, b, mask)


def _masked_load(
    frame: Frame, pointer: ir.Value, typ: ir.Type, mask: ir.Value | None, fill: ir.Value | None
) -> ir.Value:
    if mask is None:
        return frame.builder.load(pointer, typ=typ, align=1)
    if fill is None:
        fill = constant_of(typ, 0.0 if _is_float(typ) else 0)
    args = [pointer, ir.Constant(I32, 1), mask, fill]
    return intrinsic(frame.builder, "llvm.masked.load", typ, args, typ, POINTER)


def _is_float(typ: ir.Type) -> bool:
    element = typ.element if isinstance(typ, ir.VectorType) else typ
    return isinstance(element, ir.FloatType | ir.DoubleType)


def _load_vector(frame: Frame, place: Access, mask: ir.Value | None, fill: Lane | None) -> Lane:
    width, parts = place.width, part_count(place.dtype)
    typ = vector_of(memory_element(place.dtype), width * parts)
    mask = _spread(frame, mask, width, parts)
    if parts == 1:
        other = None if fill is None else _to_memory(frame, place.dtype, fill.value)
        raw = _masked_load(frame, place.pointer, typ, mask, other)
        return Lane(place.dtype, (_from_memory(frame, place.dtype, raw),), width)
    other = None if fill is None else _interleave(frame, fill)
    raw = _masked_load(frame, place.pointer, typ, mask, other)
    even, odd = list(range(0, 2 * width, 2)), list(range(1, 2 * width, 2))
    return Lane(
        place.dtype, (_shuffle(frame, raw, raw, even), _shuffle(frame, raw, raw, odd)), width
    )


def _interleave(frame: Frame, value: Lane) -> ir.Value:
    order = [lane + part * value.width for lane in range(value.width) for part in range(2)]
    return _shuffle(frame, value.parts[0], value.parts[1], order)


def _masked_store(frame: Frame, pointer: ir.Value, value: ir.Value, mask: ir.Value | None) -> None:
    if mask is None:
        frame.builder.store(value, pointer, align=1)
        return
    args = [value, pointer, ir.Constant(I32, 1), mask]
    intrinsic(frame.builder, "llvm.masked.store", VOID, args, value.type, POINTER)


def _store_past_caches(frame: Frame, pointer: ir.Value, value: ir.Value, across: int) -> None:
    instruction = frame.builder.store(value, pointer, align=min(64, across))
    once = frame.builder.module.add_metadata([ir.Constant(I32, 1)])
    instruction.set_metadata("nontemporal", once)


def _store_vector(
    frame: Frame,
    place: Access,
    mask: ir.Value | None,
    value: Lane,
    streaming: Streaming | None = None,
) -> None:
    builder = frame.builder
    parts = part_count(place.dtype)
    mask = _spread(frame, mask, place.width, parts)
    wide = value.value if parts == 1 else _interleave(frame, value)
    raw = _to_memory(frame, place.dtype, wide)
    if streaming is None:
        _masked_store(frame, place.pointer, raw, mask)
        return
    across = place.width * place.dtype.itemsize
    if streaming.when is None:
        _store_past_caches(frame, place.pointer, raw, across)
        return
    past, through, after = map(frame.block, ("past", "through", "after"))
    builder.cbranch(streaming.when, past, through)
    builder.position_at_end(past)
    _store_past_caches(frame, place.pointer, raw, across)
    builder.branch(after)
    builder.position_at_end(through)
    _masked_store(frame, place.pointer, raw, mask)
    builder.branch(after)
    builder.position_at_end(after)


def _reverse(frame: Frame, lane: Lane) -> Lane:
    order = list(reversed(range(lane.width)))
    return Lane(lane.dtype, tuple(_shuffle(frame, p, p, order) for p in lane.parts), lane.width)


def _mirrored(frame: Frame, place: Access, mask: ir.Value | None) -> tuple[Access, ir.Value | None]:
    """The same elements in ascending order of address, and the mask for them."""
    back = -(place.width - 1) * place.dtype.itemsize
    pointer = offset_bytes(frame, place.pointer, back)
    turned = Access(place.dtype, pointer, place.dtype.itemsize, None, place.width, None)
    if mask is not None:
        mask = _shuffle(frame, mask, mask, list(reversed(range(place.width))))
    return turned, mask


def _load_reversed(frame: Frame, place: Access, mask: ir.Value | None, fill: Lane | None) -> Lane:
    turned, mask = _mirrored(frame, place, mask)
    fill = None if fill is None else _reverse(frame, fill)
    return _reverse(frame, _load_vector(frame, turned, mask, fill))


def _store_reversed(frame: Frame, place: Access, mask: ir.Value | None, value: Lane) -> None:
    turned, mask = _mirrored(frame, place, mask)
    _store_vector(frame, turned, mask, _reverse(frame, value))


def _gather(frame: Frame, place: Access, mask: ir.Value | None, fill: Lane | None) -> Lane:
    typ = vector_of(memory_element(place.dtype), place.width)
    parts = []
    for part in range(part_count(place.dtype)):
        other = constant_of(typ, 0.0 if _is_float(typ) else 0)
        if fill is not None:
            other = _to_memory(frame, place.dtype, fill.parts[part])
        raw = gathered(frame, place, mask, other, part * _part_bytes(place))
        parts.append(_from_memory(frame, place.dtype, raw))
    return Lane(place.dtype, tuple(parts), place.width)


def _scatter(frame: Frame, place: Access, mask: ir.Value | None, value: Lane) -> None:
    for part, register in enumerate(value.parts):
        raw = _to_memory(frame, place.dtype, register)
        scatter(frame, place, mask, raw, part * _part_bytes(place))
