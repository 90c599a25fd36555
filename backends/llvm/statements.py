"""Straight-line statements of a kernel as code: values, loads, stores, checks, updates.

Invariants: a statement is emitted in the current vector context; names are rebound when code is
emitted again for another copy of a loop body.
Not here: statements with bodies (loops.py, reduce.py), which one comes next (block.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...compiler.dims import Dim, Size
from ...compiler.kernel.kernel import (
    Check,
    Checked,
    Constant,
    Index,
    IndexValue,
    Let,
    Load,
    Local,
    Store,
    Update,
)  # fmt: skip
from ...compiler.ops.scalar import ScalarFunction
from ...compiler.types import I64, DType, real_part_of
from . import gathering, memory
from .access import Access, resolve
from .bodies import HOLE, body_of, combine_of
from .control import fail_where, is_last
from .conversions import to_index
from .frame import Buffer, Frame, Lanes, offset_bytes
from .indices import lane_size, scalar_size
from .interleaved import load_column
from .machine import Machine
from .outlined import Hole, Routine, routine_for
from .scalar import constant_lane, emit_body
from .slot import Slot
from .slots import slot_lane
from .types import (
    I32,
    Lane,
    constant_of,
    invert,
    memory_element,
    part_count,
    register_type,
    splat,
    widen,
    width_of,
)  # fmt: skip


def emit_let(frame: Frame, s: Let) -> None:
    """An op or word applied to values, or a call of what is filled in later."""
    args = [frame.values[a] for a in s.args]
    if s.op.startswith(HOLE):
        frame.values[s.name] = _hole(frame, s, args)
        return
    chosen = _body(s, tuple(a.dtype for a in args))
    frame.values[s.name] = emit_body(frame.site, chosen, args)[0]


def _body(s: Let, dtypes: tuple[DType, ...]) -> ScalarFunction:
    body = body_of(s.op, dtypes, s.attrs, s.dtype)
    return ScalarFunction(body.params, (body.results[s.result],))


def _hole(frame: Frame, s: Let, args: list[Lane]) -> Lane:
    routines = frame.site.routines
    assert routines is not None, "a hole outside a skeleton"
    operands = tuple((a.dtype, a.width) for a in args)
    width = max(a.width for a in args)
    typ = register_type(real_part_of(s.dtype), width)
    results = [typ] * part_count(s.dtype)
    hole = Hole(int(s.op.removeprefix(HOLE)), operands)
    parts = routines.call_hole(frame.site, hole, [p for a in args for p in a.parts], results)
    return Lane(s.dtype, tuple(parts), width)


def routine_of(machine: Machine, s: Let, operands: tuple[tuple[DType, int], ...]) -> Routine:
    """What fills the hole of a `Let` whose operands have these dtypes and widths."""
    body = _body(s, tuple(dtype for dtype, _ in operands))
    width = max(width for _, width in operands)
    types = [
        register_type(real_part_of(dtype), lanes)
        for dtype, lanes in operands
        for _ in range(part_count(dtype))
    ]

    def emit(frame: Frame, values: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
        rest = iter(values)
        lanes = [
            Lane(dtype, tuple(next(rest) for _ in range(part_count(dtype))), lanes)
            for dtype, lanes in operands
        ]
        made = emit_body(frame.site, body, lanes)[0]
        return widen(frame.builder, made, width).parts

    return routine_for(("hole", body, operands), machine, types, emit)


def emit_constant(frame: Frame, s: Constant) -> None:
    """A literal, or a word that is known when the code is mapped."""
    if isinstance(s.value, Slot):
        frame.values[s.name] = slot_lane(frame, s.value, s.dtype)
    else:
        frame.values[s.name] = constant_lane(s.dtype, s.value)


def emit_index_value(frame: Frame, s: IndexValue) -> None:
    """An index as a value."""
    value = lane_size(frame, s.index)
    frame.values[s.name] = Lane(I64, (value,), width_of(value))


def emit_load(frame: Frame, s: Load) -> None:
    """A load; where its mask fails, `other`."""
    buffer = frame.buffers[s.buffer]
    column = load_column(frame, s, buffer)
    if column is not None:
        frame.values[s.name] = column
        return
    condition = None if s.mask is None else frame.values[s.mask].value
    place = _place(frame, buffer, s.index, condition, frame.codes.get(id(s)))
    if frame.ahead is not None:
        _prefetch(frame, buffer, s.index, place, *frame.ahead)
    other = None if s.other is None else frame.values[s.other]
    frame.values[s.name] = memory.load(frame, place, other)


def emit_store(frame: Frame, s: Store) -> None:
    """A store where its mask holds."""
    buffer = frame.buffers[s.buffer]
    condition = None if s.mask is None else frame.values[s.mask].value
    place = _place(frame, buffer, s.index, condition, frame.codes.get(id(s)))
    stores = frame.stores
    if stores is not None and s.buffer not in stores.buffers:
        stores = None
    memory.store(frame, place, frame.values[s.value], stores)


def emit_check(frame: Frame, s: Check) -> None:
    """A condition that must hold in all active lanes."""
    builder = frame.builder
    holds = frame.values[s.condition]
    bad = invert(builder, holds.value)
    if s.mask is not None:
        mask = frame.values[s.mask]
        width = max(mask.width, holds.width)
        bad = builder.and_(splat(builder, bad, width), splat(builder, mask.value, width))
    if frame.lanes.mask is not None and width_of(bad) > 1:
        bad = builder.and_(bad, frame.lanes.mask)
    fail_where(frame, bad, frame.codes[id(s)], None, None)


def emit_update(frame: Frame, s: Update) -> None:
    """Combine into memory; lanes one after another where two of them may meet."""
    buffer = frame.buffers[s.buffer]
    place = _place(frame, buffer, s.index, None, frame.codes.get(id(s)))
    value = frame.values[s.value]
    combine = combine_of(s.monoid, (buffer.dtype,), (value.dtype,))
    width = max(place.width, value.width)
    if width == 1 or (place.width == width and place.stride not in (None, 0)):
        old = memory.load(frame, place, None)
        (new,) = emit_body(frame.site, combine, [old, value])
        memory.store(frame, place, new)
        return
    _update_by_lane(frame, place, value, combine)


def _update_by_lane(frame: Frame, place: Access, value: Lane, combine: ScalarFunction) -> None:
    """A loop over the lanes in order."""
    builder = frame.builder
    active = frame.active()
    if place.condition is not None:
        active = builder.and_(active, splat(builder, place.condition, width_of(active)))
    width = width_of(active)
    offsets = gathering.lane_offsets(frame, place, width)
    before, head, work, onward, done = builder.block, *map(
        frame.block, ("lane", "update", "next", "done")
    )  # fmt: skip
    builder.branch(head)
    builder.position_at_end(head)
    lane = builder.phi(I32)
    lane.add_incoming(ir.Constant(I32, 0), before)
    builder.cbranch(builder.extract_element(active, lane), work, onward)
    builder.position_at_end(work)
    one = Access(
        place.dtype,
        offset_bytes(frame, place.pointer, builder.extract_element(offsets, lane)),
        0, None, 1, None,
    )  # fmt: skip
    this = value
    if value.width > 1:
        parts = tuple(builder.extract_element(p, lane) for p in value.parts)
        this = Lane(value.dtype, parts)
    with frame.vectorised(Lanes()):
        (new,) = emit_body(frame.site, combine, [memory.load(frame, one, None), this])
        memory.store(frame, one, new)
    builder.branch(onward)
    builder.position_at_end(onward)
    following = builder.add(lane, ir.Constant(I32, 1))
    lane.add_incoming(following, onward)
    more = builder.icmp_unsigned("<", following, ir.Constant(I32, width))
    builder.cbranch(more, head, done)
    builder.position_at_end(done)


def emit_local(frame: Frame, s: Local) -> None:
    """A tile on the stack; its shape is fixed."""
    count = 1
    strides: list[Size] = []
    size: Size = s.dtype.itemsize
    for extent in reversed(s.shape):
        if not isinstance(extent, int):
            raise NotImplementedError(f"local {s.name}: a tile needs a fixed shape, not {extent}")
        count *= extent
        strides.insert(0, size)
        size = size * extent
    pointer = frame.stack_slot(memory_element(s.dtype), max(1, count * part_count(s.dtype)))
    frame.buffers[s.name] = Buffer(s.name, s.dtype, pointer, tuple(strides))


def _place(
    frame: Frame,
    buffer: Buffer,
    index: tuple[Index, ...],
    condition: ir.Value | None,
    code: int | None,
) -> Access:
    """The place of an index, its checked parts tested and wrapped."""
    affine: list[Size] = []
    dynamic: list[tuple[Size, ir.Value]] = []
    for part, stride in zip(index, buffer.strides):
        if not isinstance(part, Checked):
            affine.append(part)
            continue
        affine.append(0)
        assert code is not None
        value, fits = _checked(frame, part, condition, code)
        dynamic.append((stride, value))
        if fits is not None:
            condition = fits if condition is None else _and(frame, condition, fits)
    return resolve(frame, buffer, tuple(affine), dynamic, condition)


def _checked(
    frame: Frame, index: Checked, condition: ir.Value | None, code: int
) -> tuple[ir.Value, ir.Value | None]:
    """A value used as an index: wrapped once, and whether it is in range then; None where what
    follows is only done if it is."""
    builder = frame.builder
    lane = frame.values[index.value]
    value = to_index(frame.site, lane.dtype, lane.value)
    extent = scalar_size(frame, index.extent)
    wide = splat(builder, extent, lane.width)
    negative = builder.icmp_signed("<", value, constant_of(value.type, 0))
    wrapped = builder.select(negative, builder.add(value, wide), value)
    fits = builder.icmp_unsigned("<", wrapped, wide)
    bad = invert(builder, fits)
    if condition is not None:
        bad = _and(frame, bad, condition)
    if frame.lanes.mask is not None and width_of(bad) > 1:
        bad = builder.and_(bad, frame.lanes.mask)
    fail_where(frame, bad, code, value, extent)
    return wrapped, None if is_last(frame, bad) else fits


def _and(frame: Frame, a: ir.Value, b: ir.Value) -> ir.Value:
    width = max(width_of(a), width_of(b))
    return frame.builder.and_(splat(frame.builder, a, width), splat(frame.builder, b, width))


def _prefetch(
    frame: Frame, buffer: Buffer, index: tuple[Index, ...], place: Access, axis: str, distance: int
) -> None:
    """Ask for the vector that this load wants `distance` steps of `axis` later."""
    step: Size = 0
    for part, stride in zip(index, buffer.strides):
        change = part.coefficient(axis) if isinstance(part, Dim) else 0
        if change is None:
            return
        step = step + change * stride
    if step == 0 or place.stride != place.dtype.itemsize:
        return
    pointer = offset_bytes(frame, place.pointer, scalar_size(frame, step * distance))
    for line in range(0, place.width * place.dtype.itemsize, 64):
        memory.prefetch(frame, offset_bytes(frame, pointer, line))
