"""The statements after a product, run over sums that lie in a block of scratch memory.

Invariants: a tile is finished once, by whole vectors of columns and then the rest: under a mask
where masked memory is cheap, one by one elsewhere.
Not here: what the statements are (../statements.py).
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.kernel.contraction import Contraction
from ....compiler.records import dataclass
from ....compiler.types import DType
from ..conversions import convert
from ..frame import Frame, Lanes
from ..loops import counted
from ..types import Lane, vector_of
from .code import advance, lanes_below, number, shuffle
from .geometry import Geometry


@dataclass(frozen=True, slots=True)
class Sums:
    """A tile of sums: address, bytes between its rows and between its planes."""

    pointer: ir.Value
    row_stride: ir.Value
    plane: int


def finish(
    frame: Frame,
    found: Contraction,
    g: Geometry,
    sums: Sums,
    first: tuple[ir.Value, ir.Value],
    shape: tuple[ir.Value, ir.Value],
) -> None:
    """Emit the rest of the kernel for a tile at `first` (row, column) of `shape`."""
    builder = frame.builder
    (row0, column0), (rows, columns) = first, shape
    lanes = g.lanes // g.parts
    masked = frame.machine.has_masked_memory

    def line(r: ir.Value, _: list[ir.Value]) -> tuple[()]:
        here = advance(builder, sums.pointer, builder.mul(r, sums.row_stride))

        def point(c: ir.Value, width: int, mask: ir.Value | None) -> tuple[()]:
            start = advance(builder, here, builder.mul(c, number(g.dtype.itemsize)))
            total = _load(frame, found.dtype, g, sums.plane, start, width)
            axis = None if found.n is None else found.n.name
            with (
                frame.vectorised(Lanes(axis, width, mask) if width > 1 else Lanes()),
                frame.iteration(axis or "(column)", builder.add(column0, c)),
            ):
                frame.values[found.result] = total
                frame.emit(found.around)
                frame.emit(found.after)
            return ()

        def rest(c: ir.Value, _: list[ir.Value]) -> tuple[()]:
            return point(c, lanes, lanes_below(builder, builder.sub(columns, c), lanes))

        whole = number(0)
        if found.n is not None:
            whole = builder.and_(columns, number(-lanes))
            counted(frame, "(columns)", number(0), whole, lanes, lambda c, _: point(c, lanes, None))
        if found.n is not None and masked:
            counted(frame, "(rest)", whole, columns, lanes, rest)
        else:
            counted(frame, "(rest)", whole, columns, 1, lambda c, _: point(c, 1, None))
        return ()

    def bound(r: ir.Value, _: list[ir.Value]) -> tuple[()]:
        if found.m is None:
            return line(r, _)
        with frame.iteration(found.m.name, builder.add(row0, r)):
            return line(r, _)

    counted(frame, "(rows)", number(0), rows, 1, bound)


def _load(
    frame: Frame, dtype: DType, g: Geometry, plane: int, pointer: ir.Value, width: int
) -> Lane:
    """Sums of `width` columns as a value of the product's dtype."""
    builder = frame.builder
    typ = vector_of(g.element, width * g.parts)
    total = builder.load(pointer, typ=typ, align=g.real.itemsize)
    if g.parts == 1:
        if dtype is not g.dtype:
            total = convert(frame.site, g.dtype, dtype, total)
        return Lane(dtype, (total,), width)
    # a * re(b), a * im(b) side by side; re(a) in the first plane, im(a) in the second.
    other = builder.load(advance(builder, pointer, plane), typ=typ, align=g.real.itemsize)
    re, im = (_every_other(builder, total, i, width) for i in (0, 1))
    cross_re, cross_im = (_every_other(builder, other, i, width) for i in (0, 1))
    parts = builder.fsub(re, cross_im), builder.fadd(im, cross_re)
    return Lane(dtype, parts, width)


def _every_other(builder: ir.IRBuilder, value: ir.Value, start: int, width: int) -> ir.Value:
    if width == 1:
        return builder.extract_element(value, number(start))
    return shuffle(builder, value, value, list(range(start, 2 * width, 2)))
