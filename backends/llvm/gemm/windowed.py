"""A product whose right operand is an image seen through windows: a convolution.

Tile by tile of the result: the tile's columns of the image are packed into panels, a stretch of
the sums at a time, and multiplied by the rows of the weights with the microkernel of all
products; sums stay in scratch memory until the last stretch, and go from there through the
kernel's epilogue. So no element of the image is copied in memory more often than tiles ask for
it, and all axes of the image together are the columns: narrow images fill panels, too.

Invariants: the range of a call is tiles of `windows.tiles`; each sum is one chain in the order of
the summed axes, so tiles, threads and the shape of panels do not show in a result.
Not here: what is packed where (window_packing.py), the tiles (compiler/kernel/windows.py).
"""

from __future__ import annotations

from functools import partial

from llvmlite import ir

from ....compiler.dims import product
from ....compiler.kernel.contraction import PANEL_BYTES, Contraction, panel_columns
from ....compiler.kernel.windows import PANELS, ROWS, Windowed, tile_counts, tile_panels
from ....compiler.records import dataclass, replace
from ..control import WORK_BETWEEN_POLLS, poll
from ..frame import Frame, constant
from ..indices import scalar_size
from .code import advance, ceiling, either, least, loop, number
from .finish import Sums, finish
from .geometry import Geometry, geometry_of
from .micro import emit_micro
from .operands import at_outer
from .tiles import each_stretch
from .window_packing import SLACK, Packer
from .window_places import at_column, each_segment, transposed

_DEPTH_BYTES = 1536  # of a row of packed weights: a stretch of the sums


@dataclass(frozen=True, slots=True)
class _Tile:
    """A tile of the result, and the address of its sums."""

    row: ir.Value
    row_end: ir.Value
    column: ir.Value
    column_end: ir.Value


def emit_windowed(frame: Frame, found: Contraction, roles: Windowed, name: str) -> None:
    """The whole body of the kernel's function."""
    g = geometry_of(frame.machine, found.dtype)
    g = replace(g, depth=_DEPTH_BYTES // g.dtype.itemsize, sum_row=PANEL_BYTES)
    _Convolution(frame, found, roles, g, name).emit()


def _heights(rows: int) -> list[int]:
    """Heights of microkernels: whole tiles, and parts of them for the last rows of a block."""
    return [rows, *(part for part in (rows * 2 // 3, rows // 3) if part * 3 % rows == 0)]


class _Convolution:
    def __init__(
        self, frame: Frame, found: Contraction, roles: Windowed, g: Geometry, name: str
    ) -> None:
        self.frame, self.found, self.roles, self.g, self.name = frame, found, roles, g, name
        self.columns = panel_columns(g.dtype)
        self.micro = {
            rows: emit_micro(
                frame.builder.module, frame.machine, replace(g, rows=rows), f"{name}_micro{rows}"
            )
            for rows in _heights(g.rows)
        }
        self.packer = Packer(frame, roles, g, name)
        byte = ir.IntType(8)
        self.panel_bytes = g.depth * PANEL_BYTES
        self.left = frame.stack_slot(byte, g.block_rows * g.left_stride)
        self.right = frame.stack_slot(byte, PANELS * self.panel_bytes + SLACK)
        self.sums = frame.stack_slot(byte, PANELS * ROWS * PANEL_BYTES)
        self.turned = frame.stack_slot(byte, self.columns * g.block_rows * g.dtype.itemsize)

    def emit(self) -> None:
        """Tiles side by side."""
        frame, found, roles = self.frame, self.found, self.roles
        b = frame.builder
        frame.emit(found.shared)
        strips, across = (scalar_size(frame, s) for s in tile_counts(roles, self.columns))
        wide = scalar_size(frame, tile_panels(roles, self.columns) * self.columns)
        rows, columns = (scalar_size(frame, s) for s in (roles.rows.extent, roles.column_count))

        def stretch(point: ir.Value, strip: ir.Value, first: ir.Value, count: ir.Value) -> None:
            row = b.mul(strip, number(ROWS))
            row_end = least(b, rows, b.add(row, number(ROWS)))

            def tile(at: ir.Value, _: list[ir.Value]) -> None:
                column = b.mul(b.add(first, at), wide)
                column_end = least(b, columns, b.add(column, wide))
                self.stretches(_Tile(row, row_end, column, column_end))

            with at_outer(frame, roles.outer, point):
                self.packer.begin()
                loop(b, number(0), count, 1, tile)

        each_stretch(frame, across, strips, stretch)

    def stretches(self, tile: _Tile) -> None:
        """All sums of a tile, stretch by stretch; of equal length but for the last."""
        frame = self.frame
        b = frame.builder
        total = scalar_size(frame, product(tuple(axis.extent for axis in self.roles.sums)))
        count = ceiling(b, total, self.g.depth)
        count = b.select(b.icmp_signed("<", count, number(1)), number(1), count)
        per, last = ceiling(b, total, count), b.sub(count, number(1))

        def stretch(s: ir.Value, _: list[ir.Value]) -> None:
            poll(frame, constant(WORK_BETWEEN_POLLS))
            start = b.mul(s, per)
            depth = least(b, b.sub(total, start), per)
            self.packer.image(tile.column, tile.column_end, start, depth, self.right)
            first, final = (b.icmp_signed("==", s, n) for n in (number(0), last))
            self.blocks(tile, start, depth, first, final)

        loop(b, number(0), count, 1, stretch)

    def blocks(
        self, tile: _Tile, start: ir.Value, depth: ir.Value, first: ir.Value, final: ir.Value
    ) -> None:
        """One stretch of every sum: blocks of rows by panels."""
        b, g = self.frame.builder, self.g

        def block(row: ir.Value, _: list[ir.Value]) -> None:
            height = least(b, b.sub(tile.row_end, row), number(g.block_rows))
            self.packer.weights(row, height, start, depth, self.left)

            def panel(column: ir.Value, _: list[ir.Value]) -> None:
                at = b.udiv(b.sub(column, tile.column), number(self.columns))
                right = advance(b, self.right, b.mul(at, number(self.panel_bytes)))
                sums = advance(b, self.sums, b.mul(at, number(ROWS * PANEL_BYTES)))
                sums = advance(b, sums, b.mul(b.sub(row, tile.row), number(PANEL_BYTES)))
                self.multiply(right, sums, height, depth, first)
                width = least(b, b.sub(tile.column_end, column), number(self.columns))
                either(b, final, lambda: self.finish(sums, (row, height), (column, width)))

            loop(b, tile.column, tile.column_end, self.columns, panel)

        loop(b, tile.row, tile.row_end, g.block_rows, block)

    def multiply(
        self, right: ir.Value, sums: ir.Value, height: ir.Value, depth: ir.Value, first: ir.Value
    ) -> None:
        """The packed rows by one panel."""
        b, g = self.frame.builder, self.g

        def strip(row: ir.Value, rows: int) -> None:
            left = advance(b, self.left, b.mul(row, number(g.left_stride)))
            here = advance(b, sums, b.mul(row, number(PANEL_BYTES)))
            for inside in range(0, PANEL_BYTES, g.vectors * g.register_bytes):
                panel = advance(b, right, inside)
                following = advance(b, panel, self.panel_bytes)
                to = advance(b, here, inside)
                b.call(self.micro[rows], [left, panel, following, to, depth, first])

        whole = b.sub(height, b.urem(height, number(g.rows)))
        loop(b, number(0), whole, g.rows, lambda row, _: strip(row, g.rows))
        rest = b.sub(height, whole)
        above = 0
        for rows in sorted(self.micro):
            fits = b.and_(
                b.icmp_signed(">", rest, number(above)), b.icmp_signed("<=", rest, number(rows))
            )
            either(b, fits, partial(strip, whole, rows))
            above = rows

    def finish(
        self, sums: ir.Value, rows: tuple[ir.Value, ir.Value], columns: tuple[ir.Value, ir.Value]
    ) -> None:
        """Sums through the epilogue, a stretch of neighbouring places at a time."""
        frame, g, roles = self.frame, self.g, self.roles
        b = frame.builder
        (row, height), (column, width) = rows, columns
        along = roles.columns[-1]
        found = replace(self.found, m=roles.rows, n=along)
        if roles.along_rows:
            found = replace(self.found, m=along, n=roles.rows)

        lying = Sums(sums, number(PANEL_BYTES), 0)
        step = g.dtype.itemsize
        if roles.along_rows:
            turned = g.block_rows * step
            transposed(frame, g, self.name, sums, height, self.columns, self.turned)
            lying, step = Sums(self.turned, number(turned), 0), turned

        def segment(at: ir.Value, place: ir.Value, length: ir.Value) -> None:
            here = advance(b, lying.pointer, b.mul(b.sub(at, column), number(step)))
            here = replace(lying, pointer=here)
            with at_column(frame, roles.columns, at):
                if roles.along_rows:
                    finish(frame, found, g, here, (place, row), (length, height))
                else:
                    finish(frame, found, g, here, (row, place), (height, length))

        each_segment(frame, along.extent, column, b.add(column, width), segment)
