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
    advance,
    broadcast,
    lanes_below,
    load_elements,
    loop,
    multiply_add,
    number,
    zero_of,
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

        def stretch(at_left: ir.Value, at_right: ir.Value, none: list[ir.Value]) -> list[ir.Value]:
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
        area, b = self.area, self.b
        frame = area.frame
        down = area.right.stride(frame, area.found.k)
        along = area.left.stride(frame, area.found.k)
        across = area.left.stride(frame, area.found.m)
        places = [advance(b, right, b.mul(b.add(k, number(i)), down)) for i in range(count)]
        lefts = [advance(b, left, b.mul(b.add(k, number(i)), along)) for i in range(count)]

        def single() -> None:
            factors = [self.factors(lefts, part) for part in range(area.g.parts)]

            def columns(column: ir.Value, _: list[ir.Value]) -> None:
                vectors = self.vectors_at(places, column)
                for part, given in enumerate(factors):
                    self.add(given, part, number(0), column, vectors)

            loop(b, area.column, area.column_end, self.step, columns)

        def several() -> None:
            def columns(column: ir.Value, _: list[ir.Value]) -> None:
                vectors = self.vectors_at(places, column)

                def row(r: ir.Value, _: list[ir.Value]) -> None:
                    here = [advance(b, place, b.mul(r, across)) for place in lefts]
                    for part in range(area.g.parts):
                        self.add(self.factors(here, part), part, r, column, vectors)

                loop(b, number(0), self.rows, 1, row)

            loop(b, area.column, area.column_end, self.step, columns)

        if area.found.m is None:
            single()
        else:
            several()

    def factors(self, places: list[ir.Value], part: int) -> list[ir.Value]:
        """One part of left elements, each in all lanes."""
        b, site, source = self.b, self.area.frame.site, self.area.left.dtype
        size = source.itemsize // part_count(source)
        found = []
        for place in places:
            value = b.load(advance(b, place, part * size), typ=memory_element(source), align=1)
            value = convert(site, real_part_of(source), self.area.g.real, value)
            found.append(broadcast(b, value, self.area.g.lanes))
        return found

    def vectors_at(self, places: list[ir.Value], column: ir.Value) -> list[list[ir.Value]]:
        """Registers of rows of the right operand, from a column on."""
        area, g, b = self.area, self.area.g, self.b
        source = area.right.dtype
        real, size = real_part_of(source), source.itemsize // part_count(source)
        offset = b.mul(b.sub(column, area.column), number(source.itemsize))
        reals = b.mul(b.sub(area.column_end, column), number(g.parts))
        vectors = []
        for v in range(self.vectors):
            mask = lanes_below(b, b.sub(reals, number(v * g.lanes)), g.lanes)
            at = [advance(b, advance(b, p, offset), v * g.lanes * size) for p in places]
            vectors.append([
                load_elements(area.frame.site, real, g.real, p, g.lanes, mask) for p in at
            ])  # fmt: skip
        return vectors

    def add(
        self,
        factors: list[ir.Value],
        part: int,
        row: ir.Value,
        column: ir.Value,
        vectors: list[list[ir.Value]],
    ) -> None:
        """One row's left elements times the rows of the right operand."""
        g, b, site = self.area.g, self.b, self.area.frame.site
        for v, given in enumerate(vectors):
            place = self.sum_at(row, column, part, v)
            total = b.load(place, typ=g.vector, align=4)
            for factor, vector in zip(factors, given):
                total = multiply_add(site, g.real, factor, vector, total)
            b.store(total, place, align=4)
