"""Packing for a convolution: columns of the image into panels, rows of the weights into blocks.

A panel holds, for each position in the sums, the elements of its columns side by side. Where the
elements lie is a table of byte offsets, one per position, made once for a stretch; each segment
of columns is then copied position by position. Four ways, by how neighbouring columns lie: side by
side; a few elements apart (a stride); side by side along the sums instead (channels last), where
squares are transposed; anything else, gathered.

Invariants: touches no element of the image outside its windows. Columns of a panel that are none
are zero.
Not here: the multiplication (windowed.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from llvmlite import ir

from ....compiler.dims import Size
from ....compiler.kernel.contraction import PANEL_BYTES, panel_columns
from ....compiler.kernel.windows import Windowed, merged
from ....compiler.records import dataclass
from ..conversions import convert
from ..frame import Frame
from ..indices import scalar_size
from ..types import I64
from .code import (
    advance,
    choose,
    either,
    gather_elements,
    lanes_below,
    least,
    load_elements,
    loop,
    number,
    shuffle,
    store_lanes,
    transpose,
    zero_of,
)  # fmt: skip
from .copying import Copying
from .geometry import Geometry
from .operands import Place, is_near, place_of
from .packed import copy_block
from .tiles import repeat
from .window_places import each_segment, offset_of, write_offsets

_STEPS = (2, 3, 4)  # strides between columns that are read as whole vectors
SLACK = 64 * PANEL_BYTES  # what may be written behind the last panel

Runs = list[tuple[Size, Size]]  # axes as (extent, stride in bytes), the last one fastest
Copy = Callable[[ir.Value, ir.Value, ir.Value, ir.Value], None]


@dataclass(frozen=True, slots=True)
class _Panel:
    """A panel to be filled: its columns, the stretch of the sums, and where it lies."""

    column: ir.Value
    end: ir.Value
    start: ir.Value
    depth: ir.Value
    target: ir.Value


class Packer:
    """The packing of one kernel: `begin` at each point of the outer axes, then what is asked."""

    def __init__(self, frame: Frame, roles: Windowed, g: Geometry, name: str) -> None:
        self.frame, self.roles, self.g, self.name = frame, roles, g, name
        self.table = frame.stack_slot(I64, g.depth)
        self.places = frame.stack_slot(I64, panel_columns(g.dtype))
        self.lanes = g.lanes
        self._image: Place
        self._weights: Place

    def begin(self) -> None:
        """Find both operands for the current outer axes."""
        frame, roles = self.frame, self.roles
        self._image = place_of(frame, (*roles.columns, *roles.sums), roles.image)
        self._weights = place_of(frame, (roles.rows, *roles.sums), roles.weights)

    # -- the image

    def image(
        self,
        column: ir.Value,
        column_end: ir.Value,
        start: ir.Value,
        depth: ir.Value,
        target: ir.Value,
    ) -> None:
        """Panels of the columns [column, column_end), the sums from `start` on."""
        frame, roles, place = self.frame, self.roles, self._image
        b = frame.builder
        wide = panel_columns(self.g.dtype)
        sums = merged([(a.extent, place.strides[a.name]) for a in roles.sums])
        columns = merged([(a.extent, place.strides[a.name]) for a in roles.columns])

        write_offsets(frame, sums, start, depth, self.table)

        def panel(at: ir.Value, _: list[ir.Value]) -> None:
            to = b.udiv(b.sub(at, column), number(wide))
            to = advance(b, target, b.mul(to, number(self.g.depth * PANEL_BYTES)))
            end = least(b, column_end, b.add(at, number(wide)))
            self._panel(_Panel(at, end, start, depth, to), columns, sums)

        loop(b, column, column_end, wide, panel)

    def _panel(self, panel: _Panel, columns: Runs, sums: Runs) -> None:
        """One panel, the way that fits its strides; what is not known is compared."""
        frame, place = self.frame, self._image
        b = frame.builder
        stride, down = columns[-1][1], sums[-1][1]
        size = place.dtype.itemsize
        wide = number(panel_columns(self.g.dtype))

        def by_segments(copy: Copy) -> ir.Value:
            none = b.icmp_signed("<", b.sub(panel.end, panel.column), wide)
            either(b, none, lambda: self._clear(panel.target, panel.depth))

            def segment(c: ir.Value, _: ir.Value, length: ir.Value) -> None:
                source = advance(b, place.pointer, offset_of(frame, columns, c))
                inside = b.mul(b.sub(c, panel.column), number(self.g.dtype.itemsize))
                copy(source, panel.depth, length, advance(b, panel.target, inside))

            each_segment(frame, columns[-1][0], panel.column, panel.end, segment)
            return number(0)

        def turned() -> ir.Value:
            self._turned(panel, columns, sums)
            return number(0)

        def lines(step: int) -> Callable[[], ir.Value]:
            return lambda: by_segments(partial(self._lines, step))

        ways: list[tuple[ir.Value | None, Callable[[], ir.Value]]] = []
        if isinstance(stride, int):
            ways = [(None, lines(step)) for step in (1, *_STEPS) if stride == step * size]
        elif down != size:
            ways = [(self._equals(stride, step * size), lines(step)) for step in (1, *_STEPS)]
        if not ways or ways[-1][0] is not None:
            if down == size:
                ways.append((None, turned))
            else:
                if not isinstance(down, int):
                    ways.append((self._equals(down, size), turned))
                ways.append((None, lambda: by_segments(partial(self._gathered, stride))))
        choose(b, ways)

    def _clear(self, panel: ir.Value, depth: ir.Value) -> None:
        b, g = self.frame.builder, self.g

        def line(k: ir.Value, _: list[ir.Value]) -> None:
            to = advance(b, panel, b.mul(k, number(PANEL_BYTES)))
            for at in range(0, PANEL_BYTES, g.register_bytes):
                b.store(zero_of(g.vector), advance(b, to, at), align=16)

        loop(b, number(0), depth, 1, line)

    def _equals(self, stride: Size, wanted: int) -> ir.Value:
        return self.frame.builder.icmp_signed("==", scalar_size(self.frame, stride), number(wanted))

    def _lines(
        self, step: int, source: ir.Value, depth: ir.Value, length: ir.Value, target: ir.Value
    ) -> None:
        """Columns `step` elements apart: vectors, masked where the segment does not fill them."""
        b = self.frame.builder
        wide = panel_columns(self.g.dtype)

        def whole() -> None:
            def line(k: ir.Value, _: list[ir.Value]) -> None:
                at = self._at(source, k)
                to = advance(b, target, b.mul(k, number(PANEL_BYTES)))
                for first in range(0, wide, self.lanes):
                    last = first + self.lanes == wide
                    self._store(self._read(at, first, step, None if not last else "end"), to, first)

            loop(b, number(0), depth, 1, line)

        def parts() -> None:
            for first in range(0, wide, self.lanes):
                left = b.sub(length, number(first))
                some = b.icmp_signed(">", left, number(0))
                either(b, some, partial(self._part, source, depth, left, target, first, step))

        either(b, b.icmp_signed("==", length, number(wide)), whole, parts)

    def _part(
        self,
        source: ir.Value,
        depth: ir.Value,
        left: ir.Value,
        target: ir.Value,
        first: int,
        step: int,
    ) -> None:
        """A vector of columns from column `first` on, `left` of which there are."""
        b = self.frame.builder
        mask = lanes_below(b, left, self.lanes)
        spread = mask
        if step > 1:
            reach = b.sub(b.mul(left, number(step)), number(step - 1))
            spread = lanes_below(b, reach, self.lanes * step)

        def line(k: ir.Value, _: list[ir.Value]) -> None:
            value = self._read(self._at(source, k), first, step, spread)
            to = advance(b, target, b.mul(k, number(PANEL_BYTES)))
            self._store(value, to, first, mask)

        loop(b, number(0), depth, 1, line)

    def _at(self, source: ir.Value, k: ir.Value) -> ir.Value:
        b = self.frame.builder
        return advance(b, source, b.load(b.gep(self.table, [k], source_etype=I64), typ=I64))

    def _read(self, at: ir.Value, first: int, step: int, mask: ir.Value | str | None) -> ir.Value:
        """A register of columns from column `first` on, `step` elements apart.

        mask: of the elements read; ``end``: the last element read is the last one there is.
        """
        site, g, place = self.frame.site, self.g, self._image
        b = site.builder
        at = advance(b, at, first * step * place.dtype.itemsize)
        count = self.lanes * step
        if mask == "end":
            mask = None if step == 1 else lanes_below(b, number(count - step + 1), count)
        assert not isinstance(mask, str)
        value = load_elements(site, place.dtype, place.dtype, at, count, mask)
        if step > 1:
            value = shuffle(b, value, value, list(range(0, count, step)))
        return convert(site, place.dtype, g.dtype, value)

    def _store(
        self, value: ir.Value, line: ir.Value, first: int, mask: ir.Value | None = None
    ) -> None:
        b = self.frame.builder
        store_lanes(b, value, advance(b, line, first * self.g.dtype.itemsize), mask, 4)

    def _gathered(
        self, stride: Size, source: ir.Value, depth: ir.Value, length: ir.Value, target: ir.Value
    ) -> None:
        """Columns any distance apart."""
        b, g, place = self.frame.builder, self.g, self._image
        apart = scalar_size(self.frame, stride)

        def vector(first: ir.Value, _: list[ir.Value]) -> None:
            mask = lanes_below(b, b.sub(length, first), self.lanes)

            def line(k: ir.Value, _: list[ir.Value]) -> None:
                at = advance(b, self._at(source, k), b.mul(first, apart))
                value = gather_elements(
                    self.frame.site, place.dtype, g.dtype, at, apart, self.lanes, mask
                )
                to = advance(b, target, b.mul(k, number(PANEL_BYTES)))
                to = advance(b, to, b.mul(first, number(g.dtype.itemsize)))
                self._store(value, to, 0, mask)

            loop(b, number(0), depth, 1, line)

        loop(b, number(0), length, self.lanes, vector)

    def _turned(self, panel: _Panel, columns: Runs, sums: Runs) -> None:
        """Elements for neighbouring positions are neighbours: squares of them are transposed.

        Each column has its own address, so segments do not matter. What a square holds beyond
        its run lies where the next run, or nothing, is written.
        """
        frame, place, g = self.frame, self._image, self.g
        b = frame.builder
        wide = panel_columns(g.dtype)
        last = b.sub(panel.end, number(1))

        def address(c: ir.Value, _: list[ir.Value]) -> None:
            at = least(b, b.add(panel.column, c), last)
            b.store(offset_of(frame, columns, at), b.gep(self.places, [c], source_etype=I64))

        loop(b, number(0), number(wide), 1, address)

        def square(k: ir.Value, inside: ir.Value, mask: ir.Value | None) -> None:
            source = self._at(place.pointer, k)
            source = advance(b, source, b.mul(inside, number(place.dtype.itemsize)))
            line = b.mul(b.add(k, inside), number(PANEL_BYTES))

            def group(c: ir.Value, _: list[ir.Value]) -> None:
                rows = []
                for i in range(self.lanes):
                    at = b.gep(self.places, [b.add(c, number(i))], source_etype=I64)
                    at = advance(b, source, b.load(at, typ=I64))
                    rows.append(
                        load_elements(frame.site, place.dtype, g.dtype, at, self.lanes, mask)
                    )
                to = advance(b, panel.target, line)
                to = advance(b, to, b.mul(c, number(g.dtype.itemsize)))
                for i, row in enumerate(transpose(b, rows)):
                    b.store(row, advance(b, to, i * PANEL_BYTES), align=4)

            loop(b, number(0), number(wide), self.lanes, group)

        def run(k: ir.Value, count: ir.Value) -> None:
            whole = b.and_(count, number(-self.lanes))
            loop(b, number(0), whole, self.lanes, lambda i, _: square(k, i, None))
            mask = lanes_below(b, b.sub(count, whole), self.lanes)
            some = b.icmp_signed("<", whole, count)
            either(b, some, lambda: square(k, whole, mask))

        self._each_run(panel.start, panel.depth, sums, run)

    def _each_run(
        self,
        start: ir.Value,
        depth: ir.Value,
        sums: Runs,
        emit: Callable[[ir.Value, ir.Value], None],
    ) -> None:
        """Call ``emit(first position in the stretch, count)`` for runs along the last axis."""
        frame = self.frame
        b = frame.builder
        extent = scalar_size(frame, sums[-1][0])

        def run(k: ir.Value) -> ir.Value:
            inside = b.urem(b.add(start, k), extent)
            count = least(b, b.sub(extent, inside), b.sub(depth, k))
            emit(k, count)
            return b.add(k, count)

        some = b.icmp_signed(">", depth, number(0))
        either(b, some, lambda: repeat(frame, (number(0), depth), run))

    # -- the weights

    def weights(
        self,
        row: ir.Value,
        height: ir.Value,
        start: ir.Value,
        depth: ir.Value,
        target: ir.Value,
    ) -> None:
        """Rows from `row` on, the sums from `start` on."""
        frame, roles, place, g = self.frame, self.roles, self._weights, self.g
        b = frame.builder
        sums = merged([(a.extent, place.strides[a.name]) for a in roles.sums])
        down, along = place.stride(frame, roles.rows), scalar_size(frame, sums[-1][1])
        first = advance(b, place.pointer, b.mul(row, down))
        near = is_near(sums[-1][1], place.dtype), place.runs_along(roles.rows)

        def run(k: ir.Value, count: ir.Value) -> None:
            source = advance(b, first, offset_of(frame, sums, b.add(start, k)))
            to = advance(b, target, b.mul(k, number(g.dtype.itemsize)))
            copy_block(
                frame, self.name, Copying(place.dtype, g.dtype, g.left_stride), near,
                [source, down, along, height, count, count, to],
            )  # fmt: skip

        self._each_run(start, depth, sums, run)
