"""Looking elements up in a sorted row: a binary search in all lanes at once.

The search takes as many steps for every element, as the length of the row says, so lanes never
part: each step compares with one key and moves half of what is left on, or not.

Invariants: nothing outside the row is read; an empty row has all elements at 0.
Not here: keys (encoding.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ....compiler.kernel.kernel import Search
from ....compiler.kernel.sorting import key_form
from ..control import poll
from ..frame import Frame
from ..gemm.code import (
    advance,
    broadcast,
    either,
    gather_lanes,
    lanes_below,
    load_lanes,
    loop,
    number,
    store_lanes,
)  # fmt: skip
from ..indices import scalar_size
from ..types import I1, I64, constant_of
from .encoding import Coding

_POLLED = 64  # elements between two looks at whether to stop


def emit_search(frame: Frame, search: Search) -> None:
    """The body of a kernel that searches."""
    _Searching(frame, search).emit()


class _Searching:
    def __init__(self, frame: Frame, search: Search) -> None:
        self.frame, self.search = frame, search
        self.b = frame.builder
        row = frame.buffers[search.source]
        self.coding = Coding(row.dtype, key_form(row.dtype, "elements"))
        self.lanes = self.coding.lanes
        self.row = row.pointer
        self.length = scalar_size(frame, frame.parameters[search.source].shape[0])

    def emit(self) -> None:
        """All elements of the range."""
        b = self.b
        some = b.icmp_signed(">", self.length, number(0))
        either(b, some, lambda: self._each(self._found), lambda: self._each(self._nothing))

    def _each(self, found: Callable[[ir.Value], ir.Value]) -> None:
        b, frame = self.b, self.frame
        wanted = frame.buffers[self.search.wanted].pointer
        result = frame.buffers[self.search.result].pointer
        size = self.coding.dtype.itemsize

        def part(at: ir.Value, _: Sequence[ir.Value]) -> None:
            poll(frame, number(_POLLED))
            mask = lanes_below(b, b.sub(frame.end, at), self.lanes)
            from_ = advance(b, wanted, b.mul(at, number(size)))
            bits = load_lanes(b, self.coding.raw, from_, self.lanes, mask)
            places = found(self.coding.encode(b, bits, number(0))[0])
            store_lanes(b, places, advance(b, result, b.mul(at, number(8))), mask)

        loop(b, frame.begin, frame.end, self.lanes, part)

    def _nothing(self, keys: ir.Value) -> ir.Value:
        return constant_of(ir.VectorType(I64, self.lanes), 0)

    def _found(self, keys: ir.Value) -> ir.Value:
        """Where keys go in a row that is not empty."""
        b = self.b
        typ = ir.VectorType(I64, self.lanes)

        def halve(base: ir.Value, left: ir.Value) -> tuple[ir.Value, ir.Value]:
            half = b.lshr(left, number(1))
            step = broadcast(b, half, self.lanes)
            probe = b.sub(b.add(base, step), constant_of(typ, 1))
            base = b.select(self._before(probe, keys), b.add(base, step), base)
            return base, b.sub(left, half)

        base = _while_several(b, constant_of(typ, 0), self.length, halve)
        last = self._before(base, keys)
        return b.add(base, b.zext(last, typ))

    def _before(self, places: ir.Value, keys: ir.Value) -> ir.Value:
        """Whether the elements of the row at these places come before the keys."""
        b = self.b
        offsets = b.mul(places, constant_of(places.type, self.coding.dtype.itemsize))
        every = constant_of(ir.VectorType(I1, self.lanes), 1)
        bits = gather_lanes(b, self.coding.raw, self.row, offsets, every)
        row, _ = self.coding.encode(b, bits, number(0))
        return b.icmp_unsigned("<" if self.search.side == "left" else "<=", row, keys)


def _while_several(
    b: ir.IRBuilder,
    base: ir.Value,
    left: ir.Value,
    step: Callable[[ir.Value, ir.Value], tuple[ir.Value, ir.Value]],
) -> ir.Value:
    """`base` after the steps that leave one element."""
    before = b.block
    top, done = b.append_basic_block("halve"), b.append_basic_block("found")
    b.cbranch(b.icmp_signed(">", left, number(1)), top, done)
    b.position_at_end(top)
    base_phi, left_phi = b.phi(base.type), b.phi(I64)
    made, rest = step(base_phi, left_phi)
    for phi, first, following in ((base_phi, base, made), (left_phi, left, rest)):
        phi.add_incoming(first, before)
        phi.add_incoming(following, b.block)
    latch = b.block
    b.cbranch(b.icmp_signed(">", rest, number(1)), top, done)
    b.position_at_end(done)
    result = b.phi(base.type)
    result.add_incoming(base, before)
    result.add_incoming(made, latch)
    return result
