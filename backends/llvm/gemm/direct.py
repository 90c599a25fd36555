"""The product straight from the operands: few rows, or small sizes.

Two forms. Along columns: a stretch of a row of the right operand lies in registers, each of a
few rows' left elements multiplies it; the sums of a tile stay in registers through all of k.
Along k, where that is how the right operand lies: eight columns of it meet one row at a time;
lanes are parts of a sum.

Invariants: along columns each sum is one chain in the order of k, as in the packed product;
along k it is as many chains as a register has lanes, folded as a tree. The form depends on
strides only.
Not here: the choice between this and packing (compiler/kernel/products.py).
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.kernel.contraction import Contraction
from ....compiler.kernel.products import COLUMN_BYTES, ROWS, tile_counts
from ..control import WORK_BETWEEN_POLLS, poll
from ..frame import Frame, constant
from ..indices import scalar_size
from ..types import I64
from .along_columns import emit_columns
from .along_sums import COLUMNS, emit_dots
from .area import Area
from .code import either, least, number
from .finish import Sums, finish
from .geometry import Geometry, geometry_of
from .operands import at_outer, place_of
from .tiles import each_stretch


def emit_direct(frame: Frame, found: Contraction) -> None:
    """The whole body of the kernel's function."""
    _Product(frame, found, geometry_of(frame.machine, found.dtype)).emit()


class _Product:
    def __init__(self, frame: Frame, found: Contraction, g: Geometry) -> None:
        self.frame, self.found, self.g = frame, found, g
        self.height = max(g.direct[0][0], COLUMNS)
        plane = self.height * COLUMN_BYTES
        scratch = frame.stack_slot(ir.IntType(8), g.parts * plane)
        self.sums = Sums(scratch, COLUMN_BYTES, plane)

    def emit(self) -> None:
        """Rectangles of tiles."""
        frame, found = self.frame, self.found
        b = frame.builder
        frame.emit(found.shared)
        strips, tiles = (scalar_size(frame, s) for s in tile_counts(found, False))
        rows, columns = (scalar_size(frame, s) for s in (found.rows, found.columns))
        wide = number(COLUMN_BYTES // self.g.dtype.itemsize)

        def stretch(point: ir.Value, strip: ir.Value, tile: ir.Value, count: ir.Value) -> None:
            row, column = b.mul(strip, number(ROWS)), b.mul(tile, wide)
            row_end = least(b, rows, b.add(row, number(ROWS)))
            column_end = least(b, columns, b.add(column, b.mul(count, wide)))
            with at_outer(frame, found.outer, point):
                self.pieces(row, row_end, column, column_end)

        each_stretch(frame, tiles, strips, stretch)

    def pieces(
        self, row: ir.Value, row_end: ir.Value, column: ir.Value, column_end: ir.Value
    ) -> None:
        """Columns as wide as scratch memory holds sums: one row's, or a few rows'."""
        b = self.frame.builder
        wide = COLUMN_BYTES // self.g.dtype.itemsize
        single = b.icmp_signed("==", b.sub(row_end, row), number(1))
        step = b.select(single, number(wide * self.height), number(wide))
        before, top, done = b.block, self.frame.block("piece"), self.frame.block("pieces")
        b.branch(top)
        b.position_at_end(top)
        at = b.phi(I64)
        at.add_incoming(column, before)
        following = b.add(at, step)
        poll(self.frame, constant(WORK_BETWEEN_POLLS >> 4))
        self.area(row, row_end, at, least(b, column_end, following))
        at.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, column_end), top, done)
        b.position_at_end(done)

    def area(
        self, row: ir.Value, row_end: ir.Value, column: ir.Value, column_end: ir.Value
    ) -> None:
        """A few rows at a time: sums into scratch memory, and from there to the end."""
        frame, found = self.frame, self.found
        b = frame.builder
        left = place_of(frame, (found.m, *found.sums, found.k), found.left)
        right = place_of(frame, (found.n, *found.sums, found.k), found.right)
        before, top, done = b.block, frame.block("some_rows"), frame.block("all_rows")
        b.branch(top)
        b.position_at_end(top)
        at = b.phi(I64)
        at.add_incoming(row, before)
        area = Area(frame, found, self.g, left, right, at, row_end, column, column_end, self.sums)
        height = self._sum(area)
        shape = (least(b, height, b.sub(row_end, at)), b.sub(column_end, column))
        finish(frame, found, self.g, self.sums, (at, column), shape)
        following = b.add(at, height)
        at.add_incoming(following, b.block)
        b.cbranch(b.icmp_signed("<", following, row_end), top, done)
        b.position_at_end(done)

    def _sum(self, area: Area) -> ir.Value:
        """Emit the form that fits; the rows it took."""
        along = area.right.runs_along(self.found.n)
        dots = area.right.runs_along(self.found.k) if self.g.parts == 1 else False
        if along:
            return emit_columns(area, gathered=False)
        if along is None or dots is None:
            return self._choose(area, along, dots)
        return emit_dots(area) if dots else emit_columns(area, gathered=True)

    def _choose(self, area: Area, along: bool | None, dots: bool | None) -> ir.Value:
        """Compare strides that only the call knows."""
        b = self.frame.builder
        size = number(area.right.dtype.itemsize)
        heights: list[tuple[ir.Value, ir.Block]] = []

        def keep(height: ir.Value) -> None:
            heights.append((height, b.block))

        def rest() -> None:
            stride = area.right.stride(self.frame, self.found.k)
            join = []
            if dots is False:
                keep(emit_columns(area, gathered=True))
                return
            either(
                b, b.icmp_signed("==", stride, size),
                lambda: join.append((emit_dots(area), b.block)),
                lambda: join.append((emit_columns(area, gathered=True), b.block)),
            )  # fmt: skip
            keep(_phi(b, join))

        if along is False:
            rest()
            return heights[0][0]
        stride = area.right.stride(self.frame, self.found.n)
        either(
            b, b.icmp_signed("==", stride, size),
            lambda: keep(emit_columns(area, gathered=False)), rest,
        )  # fmt: skip
        return _phi(b, heights)


def _phi(b: ir.IRBuilder, ends: list[tuple[ir.Value, ir.Block]]) -> ir.Value:
    phi = b.phi(I64)
    for value, block in ends:
        phi.add_incoming(value, block)
    return phi
