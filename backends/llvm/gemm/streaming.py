"""The direct product with the right operand streaming by: all rows at once, k by k.

Eight rows of the right operand lie in registers, a few columns wide, and meet the eight left
elements of every row; the sums go to and fro between registers and scratch memory. So each
element of the right operand is read once: right for one row, and for a right operand that no
cache holds.

Invariants: each sum is one chain in the order of k.
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.types import real_part_of
from ..conversions import convert
from ..indices import scalar_size
from ..types import memory_element, part_count
from .area import Area
from .code import (
    advance, broadcast, lanes_below, load_elements, loop, multiply_add, number, zero_of,
)  # fmt: skip

_DEPTH = 8


def emit_streaming(area: Area) -> ir.Value:
    """Sums of all rows and columns of the area; how many rows that is."""
    return _Stream(area).emit()


class _Stream:
    def __init__(self, area: Area) -> None:
        self.area = area
        self.b = area.frame.builder
        self.rows = self.b.sub(area.row_end, area.row)
        self.vectors = 2 if area.frame.machine.vector_bits == 512 else 1
        self.step = self.vectors * area.g.lanes // area.g.parts

    def emit(self) -> ir.Value:
        """Zeros, then everything added."""
        area, b = self.area, self.b
        depth = scalar_size(area.frame, area.found.k.extent)
        whole = b.and_(depth, number(-_DEPTH))
        left, right = area.left_row(area.row), area.right_column(area.column)
        loop(b, number(0), self.rows, 1, lambda row, _: self.clear(row))

        def stretch(
            at_left: ir.Value, at_right: ir.Value, none: list[ir.Value]
        ) -> list[ir.Value]:
            x, y = advance(b, left, at_left), advance(b, right, at_right)
            loop(b, number(0), whole, _DEPTH, lambda k, _: self.block(x, y, k, _DEPTH))
            loop(b, whole, depth, 1, lambda k, _: self.block(x, y, k, 1))
            return none

        area.through_sums([], stretch)
        return self.rows

    def sum_at(self, row: ir.Value, column: ir.Value, part: int, v: int) -> ir.Value:
        """Where the sums of a row go."""
        place = self.area.sum_at(0, column, part)
        place = advance(self.b, place, self.b.mul(row, self.area.sums.row_stride))
        return advance(self.b, place, v * self.area.g.register_bytes)

    def clear(self, row: ir.Value) -> None:
        """Zeros in the sums of a row."""
        area, g = self.area, self.area.g

        def columns(column: ir.Value, _: list[ir.Value]) -> None:
            for part in range(g.parts):
                for v in range(self.vectors):
                    place = self.sum_at(row, column, part, v)
                    self.b.store(zero_of(g.vector), place, align=4)

        loop(self.b, area.column, area.column_end, self.step, columns)

    def block(self, left: ir.Value, right: ir.Value, k: ir.Value, count: int) -> None:
        """`count` rows of the right operand from k on."""
        area, g, b = self.area, self.area.g, self.b
        frame, source = area.frame, area.right.dtype
        real = real_part_of(source)
        down = area.right.stride(frame, area.found.k)
        along = area.left.stride(frame, area.found.k)
        across = area.left.stride(frame, area.found.m)
        places = [advance(b, right, b.mul(b.add(k, number(i)), down)) for i in range(count)]
        factors = [advance(b, left, b.mul(b.add(k, number(i)), along)) for i in range(count)]

        def columns(column: ir.Value, _: list[ir.Value]) -> None:
            offset = b.mul(b.sub(column, area.column), number(source.itemsize))
            reals = b.mul(b.sub(area.column_end, column), number(g.parts))
            vectors = []
            for v in range(self.vectors):
                mask = lanes_below(b, b.sub(reals, number(v * g.lanes)), g.lanes)
                byte = v * g.lanes * (source.itemsize // part_count(source))
                vectors.append([
                    load_elements(frame.site, real, g.real, advance(b, advance(b, p, offset), byte),
                                  g.lanes, mask)
                    for p in places
                ])  # fmt: skip

            def row(r: ir.Value, _: list[ir.Value]) -> None:
                moved = b.mul(r, across)
                for part in range(g.parts):
                    self.add([advance(b, f, moved) for f in factors], part, r, column, vectors)

            loop(b, number(0), self.rows, 1, row)

        loop(b, area.column, area.column_end, self.step, columns)

    def add(
        self,
        places: list[ir.Value],
        part: int,
        row: ir.Value,
        column: ir.Value,
        vectors: list[list[ir.Value]],
    ) -> None:
        """One row's left elements times the rows of the right operand."""
        g, b, site = self.area.g, self.b, self.area.frame.site
        targets = [self.sum_at(row, column, part, v) for v in range(self.vectors)]
        totals = [b.load(place, typ=g.vector, align=4) for place in targets]
        source = self.area.left.dtype
        size = source.itemsize // part_count(source)
        for i, place in enumerate(places):
            value = b.load(advance(b, place, part * size), typ=memory_element(source), align=1)
            value = convert(site, real_part_of(source), g.real, value)
            factor = broadcast(b, value, g.lanes)
            totals = [
                multiply_add(site, g.real, factor, vectors[v][i], total)
                for v, total in enumerate(totals)
            ]
        for total, place in zip(totals, targets):
            b.store(total, place, align=4)
