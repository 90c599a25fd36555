"""A matrix product of operands as they lie: small ones, and matrix times vector.

A launch runs over tiles of 48 rows by 512 bytes of columns, row tiles fastest. A tile's sums lie
in the frame; microkernels of four rows and of one row fill it, then the epilogue runs over it.

Two ways, chosen while compiling by how the right operand lies: its columns side by side, lanes
are columns; its values of k side by side (a matrix times a vector, a transposed operand), lanes
are values of k and each element is the tree over lanes of their chains.

Invariants: an element's order of additions depends on the kernel and k alone, not on tiles.
Not here: operands in panels (packed_product.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from ...compiler.kernel.contraction import Axis, Contraction
from ...compiler.kernel.products import COLUMN_BYTES, ROWS, computed, tile_counts
from ...compiler.types import DType
from . import memory
from .control import poll
from .folding import Folding, flat, unflat
from .frame import Frame, Lanes, constant
from .indices import scalar_size
from .loops import counted, mask_below
from .product_parts import (
    Tile,
    bound,
    epilogue,
    flat_extent,
    lanes_of,
    multiply_add,
    operand_value,
    smallest,
    step_of,
    unflatten,
    zeros,
)  # fmt: skip
from .types import Lane, part_count

Sums = list[Lane]
_ROWS = 4  # of the microkernel for several rows
_VECTORS = 2  # of columns, for several rows
_ROW_VECTORS = 4  # of columns, for one row


@dataclass(frozen=True, slots=True)
class _Shape:
    found: Contraction
    dtype: DType
    width: int
    tile: Tile


def emit_direct_product(frame: Frame, found: Contraction) -> None:
    """The body of a kernel that is a product of operands as they lie."""
    builder = frame.builder
    frame.emit(found.shared)
    dtype = computed(found.dtype)
    wide = max(1, COLUMN_BYTES // dtype.itemsize)
    shape = _Shape(found, dtype, lanes_of(frame, dtype), Tile(frame, dtype, ROWS, wide))
    row_tiles, column_tiles = (scalar_size(frame, s) for s in tile_counts(found, False))
    rows, columns = scalar_size(frame, found.rows), scalar_size(frame, found.columns)
    depth = scalar_size(frame, flat_extent((*found.sums, found.k)))

    def tile(position: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        row = builder.mul(builder.urem(position, row_tiles), constant(ROWS))
        rest = builder.udiv(position, row_tiles)
        column = builder.mul(builder.urem(rest, column_tiles), constant(wide))
        last_row = smallest(frame, builder.add(row, constant(ROWS)), rows)
        last_column = smallest(frame, builder.add(column, constant(wide)), columns)
        with bound(frame, unflatten(frame, builder.udiv(rest, column_tiles), found.outer)):
            _fill(frame, shape, (row, last_row), (column, last_column))
            epilogue(
                frame, found, shape.tile, shape.tile.memory, (row, last_row), (column, last_column)
            )
            poll(frame, builder.add(depth, builder.mul(depth, constant(32))))
        return ()

    counted(frame, "(tile)", frame.begin, frame.end, 1, tile)


Range = tuple[ir.Value, ir.Value]


def _fill(frame: Frame, shape: _Shape, rows: Range, columns: Range) -> None:
    """All sums of a tile."""
    across = lanes_over_k(frame, shape.found)
    emit = _columns_by_dots if across else _columns_by_lanes
    if shape.found.m is None:
        emit(frame, shape, rows, columns, rows[0], 1)
        return
    name = shape.found.m.name
    builder = frame.builder
    count = builder.sub(rows[1], rows[0])
    middle = builder.add(rows[0], builder.and_(count, constant(-_ROWS)))
    for first, last, size in ((rows[0], middle, _ROWS), (middle, rows[1], 1)):
        counted(
            frame, name, first, last, size,
            lambda index, _, size=size: emit(frame, shape, rows, columns, index, size),  # type: ignore[misc]
        )  # fmt: skip


def lanes_over_k(frame: Frame, found: Contraction) -> bool:
    """Whether the right operand lies along k and not along its columns."""
    if found.n is not None and step_of(frame, found.right, found.n) == found.right.dtype.itemsize:
        return False
    return step_of(frame, found.right, found.k) == found.right.dtype.itemsize


def _sum(frame: Frame, axes: Sequence[Axis], start: Sums, body: Callable[[Sums], Sums]) -> Sums:
    """Carry sums through the loops over `axes`."""
    if not axes:
        return body(start)
    axis, inner = axes[0], axes[1:]
    values = counted(
        frame, axis.name, constant(0), scalar_size(frame, axis.extent), 1,
        lambda _, carried: flat(_sum(frame, inner, unflat(carried, start), body)), flat(start),
    )  # fmt: skip
    return unflat(values, start)


def _columns_by_lanes(
    frame: Frame, shape: _Shape, rows: Range, columns: Range, row: ir.Value, count: int
) -> None:
    """Lanes are columns: several vectors at a time, then one masked vector at a time."""
    found, builder = shape.found, frame.builder
    if found.n is None:
        _vectors(frame, shape, rows, columns, row, count, columns[0], 1, Lanes())
        return
    vectors = _vectors_at_once(frame, shape, count)
    stride = vectors * shape.width
    length = builder.sub(columns[1], columns[0])
    middle = builder.add(columns[0], builder.and_(length, constant(-stride)))
    masked = frame.machine.has_masked_memory
    name = found.n.name

    def whole(column: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        lanes = Lanes(name, shape.width)
        _vectors(frame, shape, rows, columns, row, count, column, vectors, lanes)
        return ()

    def rest(column: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
        lanes = Lanes()
        if masked:
            mask = mask_below(frame, column, columns[1], shape.width)
            lanes = Lanes(name, shape.width, mask)
        _vectors(frame, shape, rows, columns, row, count, column, 1, lanes)
        return ()

    counted(frame, name, columns[0], middle, stride, whole)
    counted(frame, name, middle, columns[1], shape.width if masked else 1, rest)


def _vectors_at_once(frame: Frame, shape: _Shape, rows: int) -> int:
    """As many accumulators as the machine has registers for."""
    wide = frame.machine.has_avx512 or not frame.machine.is_x86
    most = _ROW_VECTORS if rows == 1 else _VECTORS
    return max(1, most // part_count(shape.dtype) // (1 if wide else 2))


def _vectors(
    frame: Frame,
    shape: _Shape,
    rows: Range,
    columns: Range,
    row: ir.Value,
    count: int,
    column: ir.Value,
    vectors: int,
    lanes: Lanes,
) -> None:
    """`count` rows by `vectors` vectors of columns."""
    found = shape.found
    start = [zeros(frame, shape.dtype, lanes.width) for _ in range(count * vectors)]

    def step(totals: Sums) -> Sums:
        right, left = [], []
        for v in range(vectors):
            with _at(frame, found.n, column, v * lanes.width), frame.vectorised(lanes):
                right.append(operand_value(frame, shape.dtype, found.right))
        for r in range(count):
            with _at(frame, found.m, row, r):
                left.append(operand_value(frame, shape.dtype, found.left))
        pairs = ((a, b) for a in left for b in right)
        return [multiply_add(frame, t, a, b) for t, (a, b) in zip(totals, pairs)]

    totals = _sum(frame, (*found.sums, found.k), start, step)
    inside, aside = frame.builder.sub(row, rows[0]), frame.builder.sub(column, columns[0])
    for number, total in enumerate(totals):
        r, v = divmod(number, vectors)
        at_row = frame.builder.add(inside, constant(r))
        at_column = frame.builder.add(aside, constant(v * lanes.width))
        with frame.vectorised(lanes):
            place = shape.tile.at(shape.tile.memory, at_row, at_column, lanes.width)
            memory.store(frame, place, total)


def _at(frame: Frame, axis: Axis | None, base: ir.Value, offset: int):  # type: ignore[no-untyped-def]
    return frame.iteration("(none)" if axis is None else axis.name, base, offset)


def _columns_by_dots(
    frame: Frame, shape: _Shape, rows: Range, columns: Range, row: ir.Value, count: int
) -> None:
    """Lanes are values of k: four columns of one row, or one, at a time."""
    found, builder = shape.found, frame.builder
    together = 4 if count == 1 else 2
    if found.n is None:
        _dots(frame, shape, rows, columns, row, count, columns[0], 1)
        return
    length = builder.sub(columns[1], columns[0])
    middle = builder.add(columns[0], builder.and_(length, constant(-together)))
    for first, last, size in ((columns[0], middle, together), (middle, columns[1], 1)):
        counted(
            frame, found.n.name, first, last, size,
            lambda at, _, size=size: _dots(  # type: ignore[misc]
                frame, shape, rows, columns, row, count, at, size
            ),
        )  # fmt: skip


def _dots(
    frame: Frame,
    shape: _Shape,
    rows: Range,
    columns: Range,
    row: ir.Value,
    count: int,
    column: ir.Value,
    together: int,
) -> None:
    found, builder = shape.found, frame.builder
    width, name = shape.width, found.k.name
    start = [zeros(frame, shape.dtype, width) for _ in range(count * together)]
    end = scalar_size(frame, found.k.extent)
    middle = builder.and_(end, constant(-width))

    def step(totals: Sums, lanes: Lanes) -> Sums:
        right, left = [], []
        for c in range(together):
            with _at(frame, found.n, column, c), frame.vectorised(lanes):
                right.append(operand_value(frame, shape.dtype, found.right))
        for r in range(count):
            with _at(frame, found.m, row, r), frame.vectorised(lanes):
                left.append(operand_value(frame, shape.dtype, found.left))
        pairs = ((a, b) for a in left for b in right)
        return [multiply_add(frame, t, a, b) for t, (a, b) in zip(totals, pairs)]

    def along(totals: Sums) -> Sums:
        whole = counted(
            frame, name, constant(0), middle, width,
            lambda _, carried: flat(step(unflat(carried, start), Lanes(name, width))),
            flat(totals),
        )  # fmt: skip

        def rest(index: ir.Value, carried: list[ir.Value]) -> Sequence[ir.Value]:
            mask = mask_below(frame, index, end, width)
            return flat(step(unflat(carried, start), Lanes(name, width, mask)))

        return unflat(counted(frame, name, middle, end, width, rest, whole), start)

    totals = _sum(frame, found.sums, start, along)
    folding = Folding(frame, "sum", (shape.dtype,), width)
    inside, aside = builder.sub(row, rows[0]), builder.sub(column, columns[0])
    for number, total in enumerate(totals):
        r, c = divmod(number, together)
        at_row, at_column = builder.add(inside, constant(r)), builder.add(aside, constant(c))
        place = shape.tile.at(shape.tile.memory, at_row, at_column, 1)
        memory.store(frame, place, folding.over_lanes([total])[0])
