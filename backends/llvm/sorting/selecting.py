"""The greatest elements of each row, in one pass over it: vectors of keys against a limit.

Invariants: a row is read once, in order; nothing is written but places.
Not here: what is kept, and how it is sorted (held.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ....compiler.kernel.kernel import Select
from ....compiler.kernel.sorting import key_form
from ..control import poll
from ..frame import Frame
from ..gemm.code import (
    advance,
    broadcast,
    either,
    lanes_below,
    least,
    load_lanes,
    loop,
    number,
)  # fmt: skip
from ..indices import scalar_size
from ..native.language.reader import layout_of
from ..native.language.unit import include
from ..types import I8, I64, constant_of
from . import rows
from .encoding import Coding, any_of
from .held import Held, give, hold_nothing, offer


def emit_select(frame: Frame, select: Select) -> None:
    """The body of a kernel that selects."""
    if select.size > 0:
        _Selecting(frame, select).emit()


class _Selecting:
    def __init__(self, frame: Frame, select: Select) -> None:
        self.frame, self.select = frame, select
        self.b = frame.builder
        source = frame.buffers[select.source]
        self.coding = Coding(source.dtype, key_form(source.dtype, "elements"))
        self.count = scalar_size(frame, frame.parameters[select.source].shape[-1])
        self.held = frame.stack_slot(I8, layout_of(Held).size)
        self.tables = frame.stack_slot(I64, rows.TABLE_WORDS)
        self.keys = frame.stack_slot(I64, self.coding.lanes)
        self.offer, self.give, self.begin = include(self.b.module, [offer, give, hold_nothing])

    def emit(self) -> None:
        """All rows of the range."""
        b, size = self.b, number(self.select.size)
        source = self.frame.buffers[self.select.source].pointer
        result = self.frame.buffers[self.select.result].pointer
        stride = b.mul(self.count, number(self.coding.dtype.itemsize))
        most = ir.Constant(I64, (1 << self.coding.key.width) - 1)

        def row(at: ir.Value, _: Sequence[ir.Value]) -> None:
            b.call(self.begin, [self.held, most])
            self.look(advance(b, source, b.mul(at, stride)))
            to = advance(b, result, b.mul(at, number(8 * self.select.size)))
            b.call(self.give, [self.held, to, size, self.tables])

        loop(b, self.frame.begin, self.frame.end, 1, row)

    def look(self, row: ir.Value) -> None:
        """Go through a row."""
        b, coding = self.b, self.coding
        lanes = coding.lanes
        wide = ir.VectorType(I64, lanes)

        def part(at: ir.Value, _: Sequence[ir.Value]) -> None:
            poll(self.frame, number(lanes))
            there = least(b, b.sub(self.count, at), number(lanes))
            mask = lanes_below(b, there, lanes)
            from_ = advance(b, row, b.mul(at, number(coding.dtype.itemsize)))
            bits = load_lanes(b, coding.raw, from_, lanes, mask)
            keys = coding.encode(b, bits, at)[0]
            keys = b.xor(keys, constant_of(keys.type, (1 << coding.key.width) - 1))
            limit = b.load(advance(b, self.held, layout_of(Held).fields["limit"].offset), typ=I64)
            if coding.key.width < 64:
                limit = b.trunc(limit, coding.key)
            near = b.icmp_unsigned("<=", keys, broadcast(b, limit, lanes))
            some = b.icmp_signed("!=", any_of(b, b.and_(near, mask)), number(0))

            def taken() -> None:
                b.store(b.zext(keys, wide) if coding.key.width < 64 else keys, self.keys)
                size = number(self.select.size)
                b.call(self.offer, [self.held, self.keys, there, at, size, self.tables])

            either(b, some, taken)

        loop(b, number(0), self.count, lanes, part)
