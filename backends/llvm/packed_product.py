"""A matrix product over a right operand in panels: pack strips of the left, multiply by panels.

A launch runs over tiles, a strip of 12 rows by some panels each, row tiles fastest. Neighbouring
strips go together: their rows are packed into the frame, `KU` values of k of a row side by side,
then every panel is multiplied by all of them while it is in the cache. The microkernel holds a
strip by 128 bytes of columns in registers.

Invariants: each element is one chain of multiply-adds in the order of k, however tiles, strips,
blocks of k and machines' registers divide the work. Rows beyond the last are copies of it and
are dropped.
Not here: which kernels are products and how they are launched (compiler/kernel/products.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from ...compiler.dims import Dim, minimum
from ...compiler.kernel.contraction import Contraction
from ...compiler.kernel.products import STRIP, WIDE, tile_counts, tile_panels
from ...compiler.types import DType
from . import memory
from .access import Access, resolve
from .control import poll
from .folding import flat, unflat
from .frame import Frame, Lanes, constant, offset_bytes
from .indices import scalar_size
from .loops import counted
from .product_parts import (
    Tile,
    bound,
    epilogue,
    flat_extent,
    lanes_of,
    multiply_add,
    operand_value,
    over_tile_groups,
    smallest,
    step_of,
    unflatten,
    zeros,
)  # fmt: skip
from .types import Lane, memory_element, part_count

KU = 4  # values of k that lie side by side in a packed strip
_PACK_BYTES = 256 << 10  # of packed strips: they and a panel share the second cache
_BLOCK_BYTES = 16 << 10  # of one row's values of k in a packed strip
_GROUP = 8  # strips packed together at most


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes of the product, and where things lie in the frame."""

    found: Contraction
    dtype: DType
    depth: ir.Value  # all of k
    block: ir.Value  # values of k packed at a time
    strips: ir.Value
    panels: ir.Value
    wide: ir.Value  # panels of a tile
    packed: ir.Value
    tile: Tile
    columns: int

    def block_padded(self, builder: ir.IRBuilder) -> ir.Value:
        """Values of k that a packed strip has room for: whole groups of `KU`."""
        return builder.and_(builder.add(self.block, constant(KU - 1)), constant(-KU))


def emit_packed_product(frame: Frame, found: Contraction) -> None:
    """The body of a kernel that is a product over panels."""
    frame.emit(found.shared)
    dtype = found.right.dtype
    size = dtype.itemsize
    depth = flat_extent((*found.sums, found.k))
    most = _BLOCK_BYTES // size
    strips, _ = tile_counts(found, True)
    columns = found.right.panels
    shape = _Shape(
        found, dtype,
        depth=scalar_size(frame, depth),
        block=scalar_size(frame, minimum(depth, most)),
        strips=scalar_size(frame, strips),
        panels=scalar_size(frame, (found.columns + columns - 1) // columns),
        wide=scalar_size(frame, tile_panels(strips)),
        packed=frame.stack_slot(memory_element(dtype), _PACK_BYTES // size * part_count(dtype)),
        tile=Tile(frame, dtype, STRIP, columns, WIDE),
        columns=columns,
    )  # fmt: skip
    _over_tiles(frame, shape)


def _over_tiles(frame: Frame, shape: _Shape) -> None:
    """Groups of neighbouring strips, up to the end of the range."""
    builder = frame.builder
    wide_tiles = scalar_size(frame, tile_counts(shape.found, True)[1])
    room = builder.udiv(
        constant(_PACK_BYTES // shape.dtype.itemsize // STRIP), _at_least_one(frame, shape.block)
    )
    room = smallest(frame, room, constant(_GROUP))
    whole = builder.icmp_signed("<=", shape.depth, shape.block)
    room = builder.select(whole, room, constant(1))

    def group(position: ir.Value) -> ir.Value:
        strip = builder.urem(position, shape.strips)
        rest = builder.udiv(position, shape.strips)
        left = builder.sub(frame.end, position)
        count = smallest(frame, left, builder.sub(shape.strips, strip), room)
        outer = unflatten(frame, builder.udiv(rest, wide_tiles), shape.found.outer)
        with bound(frame, outer):
            _group(frame, shape, strip, count, builder.urem(rest, wide_tiles))
        work = builder.mul(builder.mul(shape.depth, shape.wide), count)
        poll(frame, builder.lshr(work, constant(3)))
        return count

    over_tile_groups(frame, group)


def _at_least_one(frame: Frame, value: ir.Value) -> ir.Value:
    none = frame.builder.icmp_signed("<", value, constant(1))
    return frame.builder.select(none, constant(1), value)


def _group(frame: Frame, shape: _Shape, strip: ir.Value, count: ir.Value, column: ir.Value) -> None:
    """All of `count` strips times the panels of one tile."""
    builder = frame.builder
    first = builder.mul(column, shape.wide)
    last = smallest(frame, builder.add(first, shape.wide), shape.panels)
    # With several blocks of k the sums of all panels wait in memory (one strip at a time then).
    apart = builder.icmp_signed("<", shape.block, shape.depth)

    def block(begin: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        end = smallest(frame, builder.add(begin, shape.block), shape.depth)
        counted(
            frame, "(strip)", constant(0), count, 1,
            lambda index, _: _pack(frame, shape, builder.add(strip, index), index, begin, end),
        )  # fmt: skip

        def panel(number: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            index = builder.sub(number, first)
            slot = builder.mul(
                builder.select(apart, index, constant(0)), constant(shape.tile.bytes)
            )
            sums = offset_bytes(frame, shape.tile.memory, slot)
            source = _panel(frame, shape, number, begin)
            counted(
                frame, "(strip)", constant(0), count, 1,
                lambda index, _: _strip_by_panel(
                    frame, shape, (begin, end), sums, source, number, builder.add(strip, index), index
                ),
            )  # fmt: skip
            return ()

        counted(frame, "(panel)", first, last, 1, panel)
        return ()

    # One turn even where k is empty: the sums are 0 and the epilogue runs.
    depth = _at_least_one(frame, shape.depth)
    frame_step = _at_least_one(frame, shape.block)
    _stepped(frame, "(block)", depth, frame_step, block)


def _stepped(frame: Frame, axis: str, end: ir.Value, step: ir.Value, body) -> None:  # type: ignore[no-untyped-def]
    """A loop from 0 to `end`, at least one turn, by a step known at run time."""
    builder = frame.builder
    before, top, done = builder.block, frame.block("turn"), frame.block("turned")
    builder.branch(top)
    builder.position_at_end(top)
    index = builder.phi(end.type)
    index.add_incoming(constant(0), before)
    with frame.iteration(axis, index):
        body(index, [])
    following = builder.add(index, step)
    index.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, end), top, done)
    builder.position_at_end(done)


def _panel(frame: Frame, shape: _Shape, number: ir.Value, begin: ir.Value) -> ir.Value:
    """Address of a panel's row `begin` of k."""
    found, builder = shape.found, frame.builder
    buffer = frame.buffers[found.right.buffer]
    axes = [(found.n, builder.mul(number, constant(shape.columns)))]
    axes += [(axis, constant(0)) for axis in (*found.sums, found.k)]
    with bound(frame, axes):
        place = resolve(frame, buffer, found.right.index, [], None)
        row = constant(shape.columns * shape.dtype.itemsize)
        return offset_bytes(frame, place.pointer, builder.mul(begin, row))


def _strip_by_panel(
    frame: Frame,
    shape: _Shape,
    block: tuple[ir.Value, ir.Value],
    sums: ir.Value,
    source: ir.Value,
    panel: ir.Value,
    strip: ir.Value,
    index: ir.Value,
) -> None:
    builder = frame.builder
    found = shape.found
    begin, end = block
    _clear_if(frame, shape, builder.icmp_signed("==", begin, constant(0)), sums)
    strip_bytes = builder.mul(shape.block_padded(builder), constant(STRIP * shape.dtype.itemsize))
    packed = offset_bytes(frame, shape.packed, builder.mul(index, strip_bytes))
    length = builder.sub(end, begin)
    width = min(lanes_of(frame, shape.dtype), shape.columns)
    rows, vectors = _registers(frame, shape.dtype, shape.columns // width)
    for r in range(0, STRIP, rows):
        for v in range(0, shape.columns // width, vectors):
            _microkernel(frame, shape, packed, source, sums, length, (r, rows), (v, vectors, width))
    last, after = frame.block("finish"), frame.block("finished")
    builder.cbranch(builder.icmp_signed(">=", end, shape.depth), last, after)
    builder.position_at_end(last)
    row = builder.mul(strip, constant(STRIP))
    rows_end = smallest(frame, builder.add(row, constant(STRIP)), scalar_size(frame, found.rows))
    column = builder.mul(panel, constant(shape.columns))
    columns_end = smallest(
        frame, builder.add(column, constant(shape.columns)), scalar_size(frame, found.columns)
    )
    epilogue(frame, found, shape.tile, sums, (row, rows_end), (column, columns_end))
    builder.branch(after)
    builder.position_at_end(after)


def _clear_if(frame: Frame, shape: _Shape, first: ir.Value, sums: ir.Value) -> None:
    builder = frame.builder
    clear, ready = frame.block("clear"), frame.block("cleared")
    builder.cbranch(first, clear, ready)
    builder.position_at_end(clear)
    width = min(lanes_of(frame, shape.dtype), shape.columns)
    zero = zeros(frame, shape.dtype, width)
    for row in range(STRIP):
        for column in range(0, shape.columns, width):
            memory.store(frame, shape.tile.place(sums, row, column, width), zero)
    builder.branch(ready)
    builder.position_at_end(ready)


def _registers(frame: Frame, dtype: DType, vectors: int) -> tuple[int, int]:
    """Rows and vectors of columns that accumulators are held for."""
    wide = frame.machine.has_avx512 or not frame.machine.is_x86
    parts = part_count(dtype)
    taken = min(vectors, 2)
    rows = (24 if wide else 12) // (taken * parts)
    return max(r for r in (1, 2, 3, 4, 6, 12) if r <= rows), taken


def _microkernel(
    frame: Frame,
    shape: _Shape,
    packed: ir.Value,
    source: ir.Value,
    sums: ir.Value,
    length: ir.Value,
    rows: tuple[int, int],
    vectors: tuple[int, int, int],
) -> None:
    """Rows by vectors of columns, all of a block of k, sums in registers."""
    builder = frame.builder
    (r0, row_count), (v0, vector_count, width) = rows, vectors
    size = shape.dtype.itemsize
    places = [
        shape.tile.place(sums, r0 + r, (v0 + v) * width, width)
        for r in range(row_count) for v in range(vector_count)
    ]  # fmt: skip
    start = [memory.load(frame, place, None) for place in places]

    def step(inside: ir.Value, block: ir.Value, totals: list[Lane]) -> list[Lane]:
        """One value of k: block * KU + inside."""
        moved = builder.add(builder.mul(block, constant(KU)), inside)
        right = offset_bytes(frame, source, builder.mul(moved, constant(shape.columns * size)))
        left = offset_bytes(frame, packed, builder.mul(block, constant(KU * STRIP * size)))
        left = offset_bytes(frame, left, builder.mul(inside, constant(size)))
        columns = [
            memory.load(frame, _vector(frame, shape, right, (v0 + v) * width, width), None)
            for v in range(vector_count)
        ]
        made: list[Lane] = []
        for r in range(row_count):
            place = _vector(frame, shape, left, (r0 + r) * KU, 1)
            value = memory.load(frame, place, None)
            for column in columns:
                made.append(multiply_add(frame, totals[len(made)], value, column))
        return made

    def group(block: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
        left = builder.sub(length, builder.mul(block, constant(KU)))
        return counted(
            frame, "(step)", constant(0), smallest(frame, left, constant(KU)), 1,
            lambda inside, values: flat(step(inside, block, unflat(values, start))), carried,
        )  # fmt: skip

    blocks = builder.lshr(builder.add(length, constant(KU - 1)), constant(KU.bit_length() - 1))
    values = counted(frame, "(k)", constant(0), blocks, 1, group, flat(start))
    for place, total in zip(places, unflat(values, start)):
        memory.store(frame, place, total)


def _vector(frame: Frame, shape: _Shape, base: ir.Value, element: int, width: int) -> Access:
    size = shape.dtype.itemsize
    pointer = offset_bytes(frame, base, element * size)
    return Access(shape.dtype, pointer, size if width > 1 else 0, None, width, None)


def _pack(
    frame: Frame, shape: _Shape, strip: ir.Value, index: ir.Value, begin: ir.Value, end: ir.Value
) -> None:
    """Copy a strip's values of k in [begin, end) into the frame, converted."""
    builder = frame.builder
    found = shape.found
    assert found.m is not None
    strip_bytes = builder.mul(shape.block_padded(builder), constant(STRIP * shape.dtype.itemsize))
    target = offset_bytes(frame, shape.packed, builder.mul(index, strip_bytes))
    last = builder.sub(scalar_size(frame, found.rows), constant(1))
    first = builder.mul(strip, constant(STRIP))

    def row(number: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        assert found.m is not None
        with frame.iteration(found.m.name, smallest(frame, builder.add(first, number), last)):
            _pack_row(frame, shape, target, number, begin, end)
        return ()

    counted(frame, "(row)", constant(0), constant(STRIP), 1, row)


def _pack_row(
    frame: Frame, shape: _Shape, target: ir.Value, row: ir.Value, begin: ir.Value, end: ir.Value
) -> None:
    builder = frame.builder
    found = shape.found
    dense = not found.sums and _may_be_dense(frame, found)
    middle = builder.and_(builder.sub(end, begin), constant(-KU)) if dense else constant(0)

    def several(offset: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        at = builder.add(begin, offset)
        with frame.iteration(found.k.name, at), frame.vectorised(Lanes(found.k.name, KU)):
            _copy(frame, shape, target, row, offset, KU)
        return ()

    def one(offset: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        at = builder.add(begin, offset)
        with bound(frame, unflatten(frame, at, (*found.sums, found.k))):
            _copy(frame, shape, target, row, offset, 1)
        return ()

    if dense:
        counted(frame, "(k)", constant(0), middle, KU, several)
    counted(frame, "(k)", middle, builder.sub(end, begin), 1, one)


def _copy(
    frame: Frame, shape: _Shape, target: ir.Value, row: ir.Value, offset: ir.Value, width: int
) -> None:
    """`width` values of k of a row to their place in the packed strip."""
    builder = frame.builder
    found = shape.found
    value = operand_value(frame, shape.dtype, found.left)
    block = builder.mul(builder.lshr(offset, constant(KU.bit_length() - 1)), constant(STRIP * KU))
    inside = builder.and_(offset, constant(KU - 1))
    element = builder.add(builder.add(block, builder.mul(row, constant(KU))), inside)
    size = shape.dtype.itemsize
    pointer = offset_bytes(frame, target, builder.mul(element, constant(size)))
    memory.store(
        frame, Access(shape.dtype, pointer, size if width > 1 else 0, None, width, None), value
    )


def _may_be_dense(frame: Frame, found: Contraction) -> bool:
    """Whether the left operand is contiguous along k, or may be at run time."""
    step = step_of(frame, found.left, found.k)
    return isinstance(step, Dim) or step == found.left.dtype.itemsize
