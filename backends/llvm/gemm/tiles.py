"""The range of a product's kernel: numbers of tiles, taken as rectangles of the result.

Tiles are numbered outer point by outer point, and in each line by line, so that a range is a few
stretches of lines. Lines are columns of strips in the packed product, rows of columns in the
direct one.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ....compiler.kernel.products import EIGHTHS
from ..frame import Frame
from ..types import I64
from .code import ceiling, least

Stretch = Callable[[ir.Value, ir.Value, ir.Value, ir.Value], None]


def each_stretch(frame: Frame, length: ir.Value, lines: ir.Value, emit: Stretch) -> None:
    """Call ``emit(outer point, line, first tile in it, count)`` over the kernel's range."""
    b = frame.builder
    before, top, done = b.block, frame.block("stretch"), frame.block("finished")
    begin, end = (ceiling(b, n, EIGHTHS) for n in (frame.begin, frame.end))
    b.cbranch(b.icmp_signed("<", begin, end), top, done)
    b.position_at_end(top)
    at = b.phi(I64)
    at.add_incoming(begin, before)
    line, first = b.udiv(at, length), b.urem(at, length)
    count = least(b, b.sub(end, at), b.sub(length, first))
    emit(b.udiv(line, lines), b.urem(line, lines), first, count)
    following = b.add(at, count)
    at.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, end), top, done)
    b.position_at_end(done)


def repeat(
    frame: Frame, span: tuple[ir.Value, ir.Value], emit: Callable[[ir.Value], ir.Value]
) -> None:
    """Go through a span that is not empty; `emit` says where the next turn begins."""
    b = frame.builder
    before, top, done = b.block, frame.block("turn"), frame.block("turned")
    b.branch(top)
    b.position_at_end(top)
    at = b.phi(I64)
    at.add_incoming(span[0], before)
    following = emit(at)
    at.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, span[1]), top, done)
    b.position_at_end(done)
