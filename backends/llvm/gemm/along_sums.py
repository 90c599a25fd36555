"""The direct product with lanes along k: inner products, eight columns at a time.

Invariants: real numbers only. The order of a sum depends on the lanes and on k.
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.kernel.products import COLUMN_BYTES
from ..indices import scalar_size
from ..types import width_of
from .area import Area
from .code import (
    advance,
    gather_elements,
    lanes_below,
    least,
    load_elements,
    loop,
    multiply_add,
    number,
    shuffle,
    transpose,
    zero_of,
)  # fmt: skip
from .operands import Place

COLUMNS = 8  # and rows, of one step


def emit_dots(area: Area) -> ir.Value:
    """Sums of the next rows, all columns of the area; how many rows that is."""
    b = area.frame.builder
    rows = least(b, number(COLUMNS), b.sub(area.row_end, area.row))

    def columns(column: ir.Value, _: list[ir.Value]) -> None:
        starts = [area.right_column(b.add(column, number(c))) for c in range(COLUMNS)]
        loop(b, number(0), rows, 1, lambda row, _: _one_row(area, row, column, starts))

    loop(b, area.column, area.column_end, COLUMNS, columns)
    return number(COLUMNS)


def _one_row(area: Area, row: ir.Value, column: ir.Value, starts: list[ir.Value]) -> None:
    frame, g = area.frame, area.g
    b = frame.builder
    start = area.left_row(b.add(area.row, row))
    depth = scalar_size(frame, area.found.k.extent)
    whole = b.and_(depth, number(-g.lanes))

    def stretch(left: ir.Value, right: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        def step(k: ir.Value, sums: list[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
            factor = _along(area, area.left, advance(b, start, left), k, mask)
            made = []
            for at, total in zip(starts, sums):
                value = _along(area, area.right, advance(b, at, right), k, mask)
                made.append(multiply_add(frame.site, g.real, factor, value, total))
            return made

        def rest(k: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return step(k, sums, lanes_below(b, b.sub(depth, k), g.lanes))

        sums = loop(b, number(0), whole, g.lanes, lambda k, sums: step(k, sums, None), sums)
        return loop(b, whole, depth, g.lanes, rest, sums)

    sums = area.through_sums([zero_of(g.vector)] * COLUMNS, stretch)
    place = area.sum_at(0, column)
    place = advance(b, place, b.mul(row, number(COLUMN_BYTES)))
    for vector in _totals(area, sums):
        b.store(vector, place, align=4)
        place = advance(b, place, width_of(vector) * g.real.itemsize)


def _along(
    area: Area, place: Place, start: ir.Value, k: ir.Value, mask: ir.Value | None
) -> ir.Value:
    """A register of elements along k."""
    frame, g, axis = area.frame, area.g, area.found.k
    b = frame.builder
    stride = place.stride(frame, axis)
    if place is area.right or place.runs_along(axis):
        at = advance(b, start, b.mul(k, number(place.dtype.itemsize)))
        return load_elements(frame.site, place.dtype, g.real, at, g.lanes, mask)
    at = advance(b, start, b.mul(k, stride))
    if mask is None:
        mask = lanes_below(b, number(g.lanes), g.lanes)
    return gather_elements(frame.site, place.dtype, g.real, at, stride, g.lanes, mask)


def _totals(area: Area, sums: list[ir.Value]) -> list[ir.Value]:
    """The lanes of each register added as a tree: `COLUMNS` totals, in order."""
    b = area.frame.builder
    add = b.fadd if area.g.real.is_float else b.add
    while width_of(sums[0]) > COLUMNS:
        half = width_of(sums[0]) // 2
        low, high = list(range(half)), list(range(half, 2 * half))
        sums = [add(shuffle(b, s, s, low), shuffle(b, s, s, high)) for s in sums]
    width = width_of(sums[0])
    totals = []
    for at in range(0, COLUMNS, width):
        group = transpose(b, sums[at : at + width])
        while len(group) > 1:
            half = len(group) // 2
            group = [add(x, y) for x, y in zip(group[:half], group[half:])]
        totals += group
    return totals
