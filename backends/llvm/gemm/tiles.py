"""The range of a product's kernel: numbers of tiles, taken as rectangles of the result.

Tiles are numbered outer point by outer point, column tile by column tile, strip by strip; so a
range is a few stretches of strips.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ..frame import Frame
from ..types import I64
from .code import least

Rectangle = Callable[[ir.Value, ir.Value, ir.Value, ir.Value], None]


def each_rectangle(frame: Frame, strips: ir.Value, tiles: ir.Value, emit: Rectangle) -> None:
    """Call ``emit(outer point, column tile, strip, count of strips)`` over the kernel's range."""
    b = frame.builder
    before, top, done = b.block, frame.block("rectangle"), frame.block("finished")
    b.cbranch(b.icmp_signed("<", frame.begin, frame.end), top, done)
    b.position_at_end(top)
    at = b.phi(I64)
    at.add_incoming(frame.begin, before)
    column, strip = b.udiv(at, strips), b.urem(at, strips)
    count = least(b, b.sub(frame.end, at), b.sub(strips, strip))
    emit(b.udiv(column, tiles), b.urem(column, tiles), strip, count)
    following = b.add(at, count)
    at.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, frame.end), top, done)
    b.position_at_end(done)
