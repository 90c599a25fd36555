"""The product straight from the operands: few rows, or small sizes.

Three forms. Where columns of the right operand are neighbours in memory, lanes are columns: tiles
of a few rows whose sums stay in registers through all of k (along_columns.py); or, for one row
and for a right operand too large for the cache, all rows at once while it streams by, k by k
(streaming.py). Where values of k are neighbours, lanes are parts of a sum (along_sums.py).

Invariants: with lanes along columns each sum is one chain in the order of k, as in the packed
product; along k it is as many chains as a register has lanes, folded as a tree. Strides alone
decide between these.
Not here: the choice between this and packing (compiler/kernel/products.py).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ....compiler.dims import product
from ....compiler.kernel.contraction import Contraction
from ....compiler.kernel.products import COLUMN_BYTES, ROWS, tile_counts
from ..control import WORK_BETWEEN_POLLS, poll
from ..frame import Frame, constant
from ..indices import scalar_size
from ..types import I1
from .along_columns import emit_columns
from .along_sums import emit_dots
from .area import Area
from .code import choose, least, number
from .finish import Sums, finish
from .geometry import Geometry, geometry_of
from .operands import Place, at_outer, place_of
from .tiles import each_stretch, repeat

_PLANE = ROWS * COLUMN_BYTES  # bytes of scratch memory for sums
_CACHED = 2 << 20  # bytes of a right operand that a cache holds while rows pass by

Range = tuple[ir.Value, ir.Value]


def emit_direct(frame: Frame, found: Contraction) -> None:
    """The whole body of the kernel's function."""
    _Product(frame, found, geometry_of(frame.machine, found.dtype)).emit()


class _Product:
    def __init__(self, frame: Frame, found: Contraction, g: Geometry) -> None:
        self.frame, self.found, self.g = frame, found, g
        self.scratch = frame.stack_slot(ir.IntType(8), g.parts * _PLANE)

    def emit(self) -> None:
        """Stretches of tiles side by side."""
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
                left = place_of(frame, (found.m, *found.sums, found.k), found.left)
                right = place_of(frame, (found.n, *found.sums, found.k), found.right)
                self.pieces(left, right, (row, row_end), (column, column_end))

        each_stretch(frame, tiles, strips, stretch)

    def pieces(self, left: Place, right: Place, rows: Range, columns: Range) -> None:
        """Columns as wide as scratch memory holds sums of: a few rows', or all where k streams."""
        frame = self.frame
        b = frame.builder
        single = b.sub(rows[1], rows[0])
        streams = self._streams(right, single)
        tiles = b.udiv(number(ROWS), single)  # as wide as all rows allow
        stride = b.mul(b.select(streams, tiles, number(1)), number(COLUMN_BYTES))
        sums = Sums(self.scratch, stride, _PLANE)
        step = b.udiv(stride, number(self.g.dtype.itemsize))

        def piece(at: ir.Value) -> ir.Value:
            poll(frame, constant(WORK_BETWEEN_POLLS >> 4))
            following = b.add(at, step)
            end = least(b, columns[1], following)
            repeat(frame, rows, lambda row: self.part(
                Area(frame, self.found, self.g, left, right, row, rows[1], at, end, sums, streams)
            ))  # fmt: skip
            return following

        repeat(frame, columns, piece)

    def part(self, area: Area) -> ir.Value:
        """The next rows: sums into scratch memory, and from there to the end; the row after."""
        b = self.frame.builder
        height = self._sum(area)
        shape = (
            least(b, height, b.sub(area.row_end, area.row)),
            b.sub(area.column_end, area.column),
        )
        finish(self.frame, self.found, self.g, area.sums, (area.row, area.column), shape)
        return b.add(area.row, height)

    def _streams(self, right: Place, rows: ir.Value) -> ir.Value:
        """Whether to read each element of the right operand once: no cache holds it, or one row.

        Only for rows of neighbours in memory.
        """
        frame, found = self.frame, self.found
        b = frame.builder
        along = right.runs_along(found.n)
        if along is False:
            return ir.Constant(I1, 0)
        extents = (*(a.extent for a in found.sums), found.k.extent, found.columns)
        large = scalar_size(frame, product(extents) * right.dtype.itemsize)
        streams = b.or_(
            b.icmp_signed("==", rows, number(1)), b.icmp_signed(">", large, number(_CACHED))
        )
        if along is None:
            size = number(right.dtype.itemsize)
            near = b.icmp_signed("==", right.stride(frame, found.n), size)
            streams = b.and_(streams, near)
        return streams

    def _sum(self, area: Area) -> ir.Value:
        """Emit the forms that may fit; the rows that the right one took."""
        b, found = self.frame.builder, self.found
        along = area.right.runs_along(found.n)
        dots = area.right.runs_along(found.k) if self.g.parts == 1 else False
        size = number(area.right.dtype.itemsize)
        ways: list[tuple[ir.Value | None, Callable[[], ir.Value]]] = []
        for runs, axis, emit in (
            (along, found.n, lambda: emit_columns(area, gathered=False)),
            (dots, found.k, lambda: emit_dots(area)),
        ):
            if runs is not False:
                stride = area.right.stride(self.frame, axis)
                near = None if runs else b.icmp_signed("==", stride, size)
                ways.append((near, emit))
            if runs:
                return choose(b, ways)
        ways.append((None, lambda: emit_columns(area, gathered=True)))
        return choose(b, ways)
