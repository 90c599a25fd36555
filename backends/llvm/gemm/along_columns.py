"""The direct product with lanes along columns: tiles of rows by registers.

Invariants: the operands are read only inside the area: columns under a mask, rows clamped.
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.kernel.products import COLUMN_BYTES
from ....compiler.types import DType, real_part_of
from ..conversions import convert
from ..indices import scalar_size
from ..types import memory_element, part_count
from .area import Area
from .code import (
    advance,
    broadcast,
    choose,
    gather_elements,
    lanes_below,
    load_elements,
    loop,
    multiply_add,
    number,
    shuffle,
    zero_of,
)  # fmt: skip
from .streaming import emit_streaming


def emit_columns(area: Area, gathered: bool) -> ir.Value:
    """Sums of the next rows, all columns of the area; how many rows that is."""
    b = area.frame.builder
    left = b.sub(area.row_end, area.row)
    rows, vectors = area.g.direct

    def tile() -> ir.Value:
        return _Tile(area, rows, vectors, gathered).emit()

    def line() -> ir.Value:
        return _Tile(area, 1, vectors, gathered).emit()

    if area.found.m is None:
        return line() if gathered else emit_streaming(area)
    if gathered:
        return choose(b, [(b.icmp_signed(">", left, number(1)), tile), (None, line)])
    few = b.icmp_signed("<=", left, number(rows // 2))
    return choose(b, [(b.or_(area.streams, few), lambda: emit_streaming(area)), (None, tile)])


class _Tile:
    """Tiles of `rows` by `vectors` registers, side by side over the columns of the area."""

    def __init__(self, area: Area, rows: int, vectors: int, gathered: bool) -> None:
        self.area, self.rows, self.vectors, self.gathered = area, rows, vectors, gathered
        self.lanes = area.g.lanes // area.g.parts  # columns of a register

    def emit(self) -> ir.Value:
        """All columns, a tile at a time; how many rows that is."""
        b, area = self.area.frame.builder, self.area
        starts = [area.left_row(b.add(area.row, number(r))) for r in range(self.rows)]
        loop(
            b, area.column, area.column_end, self.vectors * self.lanes,
            lambda column, _: self.tile(column, starts),
        )  # fmt: skip
        return number(self.rows)

    def tile(self, column: ir.Value, starts: list[ir.Value]) -> None:
        """One tile."""
        frame, area, g = self.area.frame, self.area, self.area.g
        b = frame.builder
        masks, columns = [], []
        for v in range(self.vectors):
            first = b.add(column, number(v * self.lanes))
            left = b.sub(area.column_end, first)
            count = left if self.gathered else b.mul(left, number(g.parts))
            masks.append(lanes_below(b, count, self.lanes if self.gathered else g.lanes))
            columns.append(area.right_column(first))
        depth = scalar_size(frame, area.found.k.extent)
        down = area.right.stride(frame, area.found.k)
        along = area.left.stride(frame, area.found.k)

        def stretch(left: ir.Value, right: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            def step(k: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
                at_right = b.add(right, b.mul(k, down))
                at_left = b.add(left, b.mul(k, along))
                row = [self.right(advance(b, c, at_right), m) for c, m in zip(columns, masks)]
                return self.multiply([advance(b, s, at_left) for s in starts], row, sums)

            return loop(b, number(0), depth, 1, step, sums)

        zeros = [zero_of(g.vector)] * (self.rows * self.vectors * g.parts)
        sums = iter(area.through_sums(list(zeros), stretch))
        for row in range(self.rows):
            for part in range(g.parts):
                for v in range(self.vectors):
                    place = area.sum_at(row * COLUMN_BYTES, column, part)
                    b.store(next(sums), advance(b, place, v * g.register_bytes), align=4)

    def multiply(
        self, starts: list[ir.Value], row: list[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """Every row's left element times the row of the right operand."""
        g, site = self.area.g, self.area.frame.site
        made: list[ir.Value] = []
        for start in starts:
            for part in range(g.parts):
                factor = broadcast(site.builder, self.left(start, part), g.lanes)
                for vector in row:
                    made.append(multiply_add(site, g.real, factor, vector, sums[len(made)]))
        return made

    def left(self, place: ir.Value, part: int) -> ir.Value:
        """One part of a left element."""
        site, source = self.area.frame.site, self.area.left.dtype
        size = source.itemsize // part_count(source)
        place = advance(site.builder, place, part * size)
        value = site.builder.load(place, typ=memory_element(source), align=1)
        return convert(site, real_part_of(source), self.area.g.real, value)

    def right(self, place: ir.Value, mask: ir.Value) -> ir.Value:
        """A register of a row of the right operand."""
        site, g, source = self.area.frame.site, self.area.g, self.area.right.dtype
        real = real_part_of(source)
        if not self.gathered:
            return load_elements(site, real, g.real, place, g.lanes, mask)
        if self.lanes == 1:  # the column is clamped: it may be read
            pair = ir.VectorType(g.element, 2)
            return site.builder.load(place, typ=pair, align=1)
        stride = self.area.right.stride(self.area.frame, self.area.found.n)
        parts = [
            gather_elements(site, real, g.real, advance(site.builder, place, offset), stride,
                            self.lanes, mask)
            for offset in range(0, source.itemsize, _size(source))
        ]  # fmt: skip
        if len(parts) == 1:
            return parts[0]
        order = [lane + part * self.lanes for lane in range(self.lanes) for part in range(2)]
        return shuffle(site.builder, parts[0], parts[1], order)


def _size(dtype: DType) -> int:
    return dtype.itemsize // part_count(dtype)
