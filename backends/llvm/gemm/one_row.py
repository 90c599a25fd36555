"""One row of the direct product: a vector times a matrix whose rows lie in memory as they are.

Eight rows of the right operand stream by at a time and meet their left elements; the sums go to
and fro between registers and scratch memory, which the first cache holds.

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
    advance, broadcast, lanes_below, load_elements, loop, multiply_add, number, prefetch, zero_of,
)  # fmt: skip

_ROWS = 8


def emit_row(area: Area) -> None:
    """Sums of the area's next row, all columns."""
    frame, g = area.frame, area.g
    b = frame.builder
    depth = scalar_size(frame, area.found.k.extent)
    whole = b.and_(depth, number(-_ROWS))
    left, right = area.left_row(area.row), area.right_column(area.column)

    def clear(column: ir.Value, _: list[ir.Value]) -> None:
        for part in range(g.parts):
            b.store(zero_of(g.vector), area.sum_at(0, column, part), align=4)

    loop(b, area.column, area.column_end, g.lanes // g.parts, clear)

    def stretch(at_left: ir.Value, at_right: ir.Value, none: list[ir.Value]) -> list[ir.Value]:
        x, y = advance(b, left, at_left), advance(b, right, at_right)
        loop(b, number(0), whole, _ROWS, lambda k, _: _rows(area, x, y, k, _ROWS))
        loop(b, whole, depth, 1, lambda k, _: _rows(area, x, y, k, 1))
        return none

    area.through_sums([], stretch)


def _rows(area: Area, left: ir.Value, right: ir.Value, k: ir.Value, count: int) -> None:
    """`count` rows of the right operand from k on."""
    frame, g = area.frame, area.g
    b, site = frame.builder, frame.site
    along = area.left.stride(frame, area.found.k)
    down = area.right.stride(frame, area.found.k)
    places = [advance(b, right, b.mul(b.add(k, number(i)), down)) for i in range(count)]
    ahead = b.mul(down, number(count))
    factors = [
        [_factor(area, advance(b, left, b.mul(b.add(k, number(i)), along)), part)
         for i in range(count)]
        for part in range(g.parts)
    ]  # fmt: skip
    source = area.right.dtype
    real = real_part_of(source)

    def columns(column: ir.Value, _: list[ir.Value]) -> None:
        mask = lanes_below(b, b.mul(b.sub(area.column_end, column), number(g.parts)), g.lanes)
        offset = b.mul(b.sub(column, area.column), number(source.itemsize))
        vectors = []
        for place in places:
            here = advance(b, place, offset)
            prefetch(b, advance(b, here, ahead))
            vectors.append(load_elements(site, real, g.real, here, g.lanes, mask))
        for part in range(g.parts):
            sums = area.sum_at(0, column, part)
            total = b.load(sums, typ=g.vector, align=4)
            for factor, vector in zip(factors[part], vectors):
                total = multiply_add(site, g.real, factor, vector, total)
            b.store(total, sums, align=4)

    loop(b, area.column, area.column_end, g.lanes // g.parts, columns)


def _factor(area: Area, place: ir.Value, part: int) -> ir.Value:
    """One part of a left element, in all lanes."""
    site, source = area.frame.site, area.left.dtype
    place = advance(site.builder, place, part * (source.itemsize // part_count(source)))
    value = site.builder.load(place, typ=memory_element(source), align=1)
    value = convert(site, real_part_of(source), area.g.real, value)
    return broadcast(site.builder, value, area.g.lanes)
