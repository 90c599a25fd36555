"""One row times a matrix that lies row by row: stream the matrix, keep the sums in the cache.

Neighbouring column tiles of a launch go together, so that eight rows of the matrix at a time are
read from end to end and each is added into the row of sums.

Invariants: each element is one chain of multiply-adds in the order of k, as in the other forms.
Not here: several rows (direct_product.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...compiler.kernel.contraction import Axis, Contraction
from ...compiler.kernel.products import COLUMN_BYTES, computed, tile_counts
from ...compiler.types import DType
from . import memory
from .control import poll
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
    over_tile_groups,
    smallest,
    unflatten,
    zeros,
)  # fmt: skip

_TILES = 48  # that go together at most
_TOGETHER = 8  # rows of the matrix read at a time

Range = tuple[ir.Value, ir.Value]


def emit_row_product(frame: Frame, found: Contraction) -> None:
    """The body of a kernel that multiplies one row by a matrix."""
    builder = frame.builder
    frame.emit(found.shared)
    dtype = computed(found.dtype)
    wide = max(1, COLUMN_BYTES // dtype.itemsize)
    tile = Tile(frame, dtype, 1, wide * _TILES)
    tiles = scalar_size(frame, tile_counts(found, False)[1])
    columns = scalar_size(frame, found.columns)
    depth = scalar_size(frame, flat_extent((*found.sums, found.k)))

    def group(position: ir.Value) -> ir.Value:
        number = builder.urem(position, tiles)
        left = builder.sub(frame.end, position)
        count = smallest(frame, left, builder.sub(tiles, number), constant(_TILES))
        first = builder.mul(number, constant(wide))
        end = builder.mul(builder.add(number, count), constant(wide))
        last = smallest(frame, end, columns)
        outer = unflatten(frame, builder.udiv(position, tiles), found.outer)
        with bound(frame, [*outer, (found.m, constant(0))]):
            _fill(frame, found, tile, (first, last))
            row = (constant(0), constant(1))
            epilogue(frame, found, tile, tile.memory, row, (first, last))
        poll(frame, builder.mul(depth, count))
        return count

    over_tile_groups(frame, group)


def _fill(frame: Frame, found: Contraction, tile: Tile, columns: Range) -> None:
    zero = zeros(frame, tile.dtype, 1)

    def clear(lanes: Lanes, at: ir.Value) -> None:
        memory.store(frame, _place(frame, tile, columns, lanes, at), zero)

    assert found.n is not None
    _along(frame, tile.dtype, found.n, columns, clear)
    _nest(frame, found, found.sums, tile, columns)


def _nest(
    frame: Frame, found: Contraction, axes: Sequence[Axis], tile: Tile, columns: Range
) -> None:
    """Loops over the outer sums, then over k in groups."""
    if axes:
        counted(
            frame, axes[0].name, constant(0), scalar_size(frame, axes[0].extent), 1,
            lambda _, __: _nest(frame, found, axes[1:], tile, columns),
        )  # fmt: skip
        return
    end = scalar_size(frame, found.k.extent)
    middle = frame.builder.and_(end, constant(-_TOGETHER))
    for first, last, size in ((constant(0), middle, _TOGETHER), (middle, end, 1)):
        counted(
            frame, found.k.name, first, last, size,
            lambda k, _, size=size: _add_rows(frame, found, tile, columns, k, size),  # type: ignore[misc]
        )  # fmt: skip


def _add_rows(
    frame: Frame, found: Contraction, tile: Tile, columns: Range, k: ir.Value, count: int
) -> None:
    """sums += left[k] * right[k] for `count` neighbouring k."""
    assert found.n is not None
    left = []
    for step in range(count):
        with frame.iteration(found.k.name, k, step):
            left.append(operand_value(frame, tile.dtype, found.left))

    def vector(lanes: Lanes, at: ir.Value) -> None:
        place = _place(frame, tile, columns, lanes, at)
        total = memory.load(frame, place, None)
        for step in range(count):
            with frame.iteration(found.k.name, k, step):
                right = operand_value(frame, tile.dtype, found.right)
            total = multiply_add(frame, total, left[step], right)
        memory.store(frame, place, total)

    _along(frame, tile.dtype, found.n, columns, vector)


def _place(frame: Frame, tile: Tile, columns: Range, lanes: Lanes, at: ir.Value):  # type: ignore[no-untyped-def]
    return tile.at(tile.memory, constant(0), frame.builder.sub(at, columns[0]), lanes.width)


def _along(frame: Frame, dtype: DType, axis: Axis, columns: Range, body) -> None:  # type: ignore[no-untyped-def]
    """`body` for vectors of columns: masked ones, or whole ones and then single columns."""
    width = lanes_of(frame, dtype)
    builder = frame.builder
    if frame.machine.has_masked_memory:

        def masked(at: ir.Value, _: list[ir.Value]) -> Sequence[ir.Value]:
            lanes = Lanes(axis.name, width, mask_below(frame, at, columns[1], width))
            with frame.vectorised(lanes):
                body(lanes, at)
            return ()

        counted(frame, axis.name, columns[0], columns[1], width, masked)
        return
    length = builder.sub(columns[1], columns[0])
    middle = builder.add(columns[0], builder.and_(length, constant(-width)))
    for first, last, lanes in (
        (columns[0], middle, Lanes(axis.name, width)), (middle, columns[1], Lanes()),
    ):  # fmt: skip

        def plain(at: ir.Value, _: list[ir.Value], lanes: Lanes = lanes) -> Sequence[ir.Value]:
            with frame.vectorised(lanes):
                body(lanes, at)
            return ()

        counted(frame, axis.name, first, last, lanes.width, plain)
