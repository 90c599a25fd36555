"""The product over a packed right operand: blocks of the result, strips of rows, panels.

For each block of the result the left operand is packed, a stretch of k at a time, into scratch
memory of the thread; the sums stay in scratch memory too, until the last stretch, and go from
there through the kernel's epilogue.

Invariants: the range of a call is tiles of `products.tiles`; a sum's order depends on sizes
only. Nothing is written but through the kernel's own stores.
Not here: packing of the right operand (panels.py).
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.dims import Size, product
from ....compiler.kernel.contraction import PANEL_BYTES, Contraction, panel_columns
from ....compiler.kernel.products import STRIP, tile_counts, tile_panels
from ....compiler.records import dataclass
from ..access import address
from ..control import WORK_BETWEEN_POLLS, poll
from ..frame import Frame, constant
from ..indices import scalar_size
from ..loops import counted
from .code import advance, either, least, number
from .copying import Copying, copy_function
from .finish import Sums, finish
from .geometry import Geometry, geometry_of
from .micro import emit_micro
from .operands import Place, at_outer, place_of
from .tiles import each_stretch


@dataclass(frozen=True, slots=True)
class _Scratch:
    """Memory of the thread: the packed left block, and the block of sums."""

    left: ir.Value
    sums: ir.Value


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the result: rows, columns, and the stretch of k now summed."""

    row: ir.Value
    row_end: ir.Value
    column: ir.Value
    column_end: ir.Value


def emit_packed(frame: Frame, found: Contraction, name: str) -> None:
    """The whole body of the kernel's function."""
    g = geometry_of(frame.machine, found.dtype)
    _Product(frame, found, g, name).emit()


class _Product:
    def __init__(self, frame: Frame, found: Contraction, g: Geometry, name: str) -> None:
        self.frame, self.found, self.g, self.name = frame, found, g, name
        module = frame.builder.module
        self.micro = emit_micro(module, frame.machine, g, f"{name}_micro")
        self.scratch = _Scratch(
            frame.stack_slot(ir.IntType(8), g.block_rows * g.left_stride),
            frame.stack_slot(ir.IntType(8), g.parts * g.plane),
        )

    def emit(self) -> None:
        """Rectangles of tiles, and in them blocks."""
        frame, found = self.frame, self.found
        b = frame.builder
        frame.emit(found.shared)
        strips, tiles = (scalar_size(frame, s) for s in tile_counts(found, True))
        wide = scalar_size(frame, tile_panels(tile_counts(found, True)[0]))
        wide = b.mul(wide, number(panel_columns(self.g.dtype)))
        rows, columns = (scalar_size(frame, s) for s in (found.rows, found.columns))

        def rectangle(point: ir.Value, tile: ir.Value, strip: ir.Value, count: ir.Value) -> None:
            row = b.mul(strip, number(STRIP))
            row_end = least(b, rows, b.add(row, b.mul(count, number(STRIP))))
            column = b.mul(tile, wide)
            column_end = least(b, columns, b.add(column, wide))
            with at_outer(frame, found.outer, point):
                self.blocks(_Block(row, row_end, column, column_end))

        each_stretch(frame, strips, tiles, rectangle)

    def blocks(self, area: _Block) -> None:
        """Blocks of an area: columns outside, so that panels stay near."""
        frame, g, found = self.frame, self.g, self.found
        b = frame.builder
        left = place_of(frame, (found.m, *found.sums, found.k), found.left)
        right = self.panels()

        def across(column: ir.Value, _: list[ir.Value]) -> tuple[()]:
            column_end = least(b, area.column_end, b.add(column, number(g.block_columns)))

            def down(row: ir.Value, _: list[ir.Value]) -> tuple[()]:
                poll(frame, constant(WORK_BETWEEN_POLLS))
                row_end = least(b, area.row_end, b.add(row, number(g.block_rows)))
                self.stretches(_Block(row, row_end, column, column_end), left, right)
                return ()

            counted(frame, "(down)", area.row, area.row_end, g.block_rows, down)
            return ()

        counted(frame, "(across)", area.column, area.column_end, g.block_columns, across)

    def panels(self) -> ir.Value:
        """The first panel for the current outer axes."""
        operand = self.found.right
        buffer = self.frame.buffers[operand.buffer]
        outer = len(operand.index) - 3 - len(self.found.sums)
        offset: Size = 0
        for part, stride in zip(operand.index[:outer], buffer.strides):
            offset = offset + part * stride
        return address(self.frame, buffer, offset)

    def stretches(self, block: _Block, left: Place, right: ir.Value) -> None:
        """All of k, for one block."""
        frame, g, found = self.frame, self.g, self.found
        b = frame.builder
        k = scalar_size(frame, found.k.extent)
        each = (found.k.extent + g.depth - 1) // g.depth
        sums = product(tuple(a.extent for a in found.sums))
        count, per = scalar_size(frame, sums * each), scalar_size(frame, each)
        last = b.sub(count, number(1))

        def stretch(s: ir.Value, _: list[ir.Value]) -> tuple[()]:
            outside, inside = s, s
            if found.sums:
                outside, inside = b.udiv(s, per), b.urem(s, per)
            else:
                outside = number(0)
            start = b.mul(inside, number(g.depth))
            depth = least(b, b.sub(k, start), number(g.depth))
            with at_outer(frame, found.sums, outside):
                self.pack(block, left, start, depth)
                skipped = b.add(b.mul(outside, k), start)
                panel = advance(b, right, b.mul(skipped, number(PANEL_BYTES)))
                first, final = (b.icmp_signed("==", s, n) for n in (number(0), last))
                self.tiles(block, panel, depth, first, final)
            return ()

        counted(frame, "(stretch)", number(0), count, 1, stretch)

    def pack(self, block: _Block, left: Place, start: ir.Value, depth: ir.Value) -> None:
        """The left block into scratch memory."""
        frame, found = self.frame, self.found
        b = frame.builder
        down, along = left.stride(frame, found.m), left.stride(frame, found.k)
        source = advance(b, left.pointer, b.mul(block.row, down))
        source = advance(b, source, b.mul(start, along))
        for axis in found.sums:
            stride = left.stride(frame, axis)
            source = advance(b, source, b.mul(frame.axes[axis.name].base, stride))
        copy_block(
            frame, self.name, Copying(left.dtype, self.g.dtype, self.g.left_stride),
            (left.runs_along(found.k), left.runs_along(found.m)),
            [source, down, along, b.sub(block.row_end, block.row), depth, depth, self.scratch.left],
        )  # fmt: skip

    def tiles(
        self, block: _Block, panel: ir.Value, depth: ir.Value, first: ir.Value, final: ir.Value
    ) -> None:
        """Every tile of a block, one stretch further."""
        frame, g, found = self.frame, self.g, self.found
        b = frame.builder
        columns = panel_columns(g.dtype)
        extent = product(tuple(a.extent for a in (*found.sums, found.k)))
        panel_bytes = scalar_size(frame, extent * PANEL_BYTES)

        def across(column: ir.Value, _: list[ir.Value]) -> tuple[()]:
            right = advance(b, panel, b.mul(b.udiv(column, number(columns)), panel_bytes))
            if g.tile_columns != columns:
                inside = b.urem(column, number(columns))
                right = advance(b, right, b.mul(inside, number(g.dtype.itemsize)))
            following = advance(b, right, panel_bytes)
            to_column = b.mul(b.sub(column, block.column), number(g.block_rows * g.dtype.itemsize))
            top = advance(b, self.scratch.sums, to_column)
            width = least(b, b.sub(block.column_end, column), number(g.tile_columns))

            def down(row: ir.Value, _: list[ir.Value]) -> tuple[()]:
                inside = b.sub(row, block.row)
                left = advance(b, self.scratch.left, b.mul(inside, number(g.left_stride)))
                sums = advance(b, top, b.mul(inside, number(g.sum_stride)))
                b.call(self.micro, [left, right, following, sums, depth, first])
                height = least(b, b.sub(block.row_end, row), number(g.rows))
                tile = Sums(sums, number(g.sum_stride), g.plane)
                either(b, final, lambda: finish(
                    frame, found, g, tile, (row, column), (height, width)
                ))  # fmt: skip
                return ()

            counted(frame, "(row)", block.row, block.row_end, g.rows, down)
            return ()

        counted(frame, "(column)", block.column, block.column_end, g.tile_columns, across)


def copy_block(
    frame: Frame,
    name: str,
    what: Copying,
    near: tuple[bool | None, bool | None],
    args: list[ir.Value],
) -> None:
    """Call the copy that fits: `near` says whether the source runs along columns, along rows.

    Where only the call knows, it compares the strides in `args`.
    """
    b = frame.builder

    def call(way: str) -> None:
        b.call(copy_function(b.module, frame.machine, what, way, name), args)

    size = number(what.source.itemsize)
    along, down = near

    def by_columns() -> None:
        if down is None:
            either(
                b, b.icmp_signed("==", args[1], size), lambda: call("columns"), lambda: call("any")
            )
        else:
            call("columns" if down else "any")

    if along is None:
        either(b, b.icmp_signed("==", args[2], size), lambda: call("rows"), by_columns)
    elif along:
        call("rows")
    else:
        by_columns()
