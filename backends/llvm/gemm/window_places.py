"""Columns of a convolution as places of its image: segments along the last axis, indices, turns.

Columns are numbered through all axes of the image in the result, the last one fastest. A segment
is a run of columns that differ in the last axis only.

Not here: what is done with a segment (windowed.py, window_packing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from llvmlite import ir

from ....compiler.dims import Size
from ....compiler.kernel.contraction import PANEL_BYTES, Axis
from ..frame import Frame
from ..indices import scalar_size
from ..types import I1, I64
from .code import ceiling, either, least, loop, number
from .copying import Copying, copy_function
from .geometry import Geometry
from .operands import at_outer
from .tiles import repeat

Segment = Callable[[ir.Value, ir.Value, ir.Value], None]


def each_segment(frame: Frame, extent: Size, begin: ir.Value, end: ir.Value, emit: Segment) -> None:
    """Call ``emit(column, place along the last axis, length)`` for columns that are not none."""
    b = frame.builder
    along = scalar_size(frame, extent)

    def segment(at: ir.Value) -> ir.Value:
        place = b.urem(at, along)
        length = least(b, b.sub(along, place), b.sub(end, at))
        emit(at, place, length)
        return b.add(at, length)

    repeat(frame, (begin, end), segment)


def offset_of(frame: Frame, runs: Sequence[tuple[Size, Size]], position: ir.Value) -> ir.Value:
    """Bytes to a position counted through axes of (extent, stride), the last one fastest."""
    b = frame.builder
    total: ir.Value = number(0)
    for at, (extent, stride) in reversed(list(enumerate(runs))):
        index = position
        if at:
            size = scalar_size(frame, extent)
            index, position = b.urem(position, size), b.udiv(position, size)
        total = b.add(total, b.mul(index, scalar_size(frame, stride)))
    return total


def write_offsets(
    frame: Frame,
    runs: Sequence[tuple[Size, Size]],
    start: ir.Value,
    count: ir.Value,
    table: ir.Value,
) -> None:
    """``table[i]``: bytes to position start + i. Counted up digit by digit, not divided."""
    b = frame.builder
    some = b.icmp_signed(">", count, number(0))  # where there are none, an extent may be 0
    either(b, some, lambda: _write_offsets(frame, runs, start, count, table))


def _write_offsets(
    frame: Frame,
    runs: Sequence[tuple[Size, Size]],
    start: ir.Value,
    count: ir.Value,
    table: ir.Value,
) -> None:
    b = frame.builder
    extents = [scalar_size(frame, extent) for extent, _ in runs]
    strides = [scalar_size(frame, stride) for _, stride in runs]
    digits: list[ir.Value] = []
    rest = start
    for extent in reversed(extents[1:]):
        digits.insert(0, b.urem(rest, extent))
        rest = b.udiv(rest, extent)
    first = b.mul(rest, strides[0])
    for digit, stride in zip(digits, strides[1:]):
        first = b.add(first, b.mul(digit, stride))

    def position(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
        offset, *now = carried
        b.store(offset, b.gep(table, [i], source_etype=I64))
        following: list[ir.Value] = []
        over = ir.Constant(I1, 1)  # whether the digit behind this one starts again
        for digit, extent, stride in reversed(list(zip(now, extents[1:], strides[1:]))):
            more = b.add(digit, number(1))
            full = b.and_(over, b.icmp_signed("==", more, extent))
            moved = b.select(full, b.mul(b.sub(number(0), digit), stride), stride)
            offset = b.add(offset, b.select(over, moved, number(0)))
            stays = b.select(over, more, digit)
            following.insert(0, b.select(full, number(0), stays))
            over = full
        offset = b.add(offset, b.select(over, strides[0], number(0)))
        return [offset, *following]

    loop(b, number(0), count, 1, position, [first, *digits])


def at_column(frame: Frame, columns: Sequence[Axis], at: ir.Value) -> AbstractContextManager[None]:
    """Bind all axes of a column but the last."""
    place = frame.builder.udiv(at, scalar_size(frame, columns[-1].extent))
    return at_outer(frame, columns[:-1], place)


def transposed(
    frame: Frame,
    g: Geometry,
    name: str,
    sums: ir.Value,
    height: ir.Value,
    columns: int,
    target: ir.Value,
) -> None:
    """Rows of sums (`PANEL_BYTES` apart) as columns: ``target[column, row]``.

    Rows are rounded up to whole squares: there is room for them.
    """
    b = frame.builder
    what = Copying(g.dtype, g.dtype, g.block_rows * g.dtype.itemsize)
    copy = copy_function(b.module, frame.machine, what, "columns", name)
    size = number(g.dtype.itemsize)
    rows = b.mul(ceiling(b, height, g.lanes), number(g.lanes))
    rows = least(b, rows, number(g.block_rows))
    args = [sums, size, number(PANEL_BYTES), number(columns), rows, rows, target]
    b.call(copy, args)
