"""A part of the result that a direct product works on, and where its operands are.

Not here: the loops over it.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ....compiler.dims import product
from ....compiler.kernel.contraction import Contraction
from ....compiler.records import dataclass
from ..frame import Frame
from ..indices import scalar_size
from .code import advance, least, loop, number
from .finish import Sums
from .geometry import Geometry
from .operands import Place

Step = Callable[[ir.Value, ir.Value, list[ir.Value]], list[ir.Value]]


@dataclass(frozen=True, slots=True)
class Area:
    """Rows from `row` on, of columns [column, column_end).

    streams: whether all rows are taken at once, sums `sums.row_stride` apart; otherwise a few
    are, `COLUMN_BYTES` apart.
    """

    frame: Frame
    found: Contraction
    g: Geometry
    left: Place
    right: Place
    row: ir.Value
    row_end: ir.Value
    column: ir.Value
    column_end: ir.Value
    sums: Sums
    streams: ir.Value

    def left_row(self, row: ir.Value) -> ir.Value:
        """The address of a row of the left operand; of the last one beyond it."""
        b = self.frame.builder
        row = least(b, row, b.sub(self.row_end, number(1)))
        return advance(b, self.left.pointer, b.mul(row, self.left.stride(self.frame, self.found.m)))

    def right_column(self, column: ir.Value) -> ir.Value:
        """The address of a column of the right operand; of the last one beyond it."""
        b = self.frame.builder
        column = least(b, column, b.sub(self.column_end, number(1)))
        return advance(
            b, self.right.pointer, b.mul(column, self.right.stride(self.frame, self.found.n))
        )

    def sum_at(self, offset: int, column: ir.Value, part: int = 0) -> ir.Value:
        """Where the sum of a column goes, in the row `offset` bytes into scratch memory."""
        b = self.frame.builder
        inside = b.mul(b.sub(column, self.column), number(self.g.dtype.itemsize))
        place = advance(b, self.sums.pointer, inside)
        return advance(b, place, offset + part * self.sums.plane)

    def through_sums(
        self,
        begin: list[ir.Value],
        step: Callable[[ir.Value, ir.Value, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Carry values through outer summed axes: ``step(left offset, right offset, values)``."""
        frame, found = self.frame, self.found
        b = frame.builder
        if not found.sums:
            return step(number(0), number(0), begin)
        count = scalar_size(frame, product(tuple(a.extent for a in found.sums)))

        def body(s: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
            offsets = [number(0), number(0)]
            for axis in reversed(found.sums):
                extent = scalar_size(frame, axis.extent)
                index, s = b.urem(s, extent), b.udiv(s, extent)
                for side, place in enumerate((self.left, self.right)):
                    moved = b.mul(index, place.stride(frame, axis))
                    offsets[side] = b.add(offsets[side], moved)
            return step(offsets[0], offsets[1], values)

        return loop(b, number(0), count, 1, body, begin)
