"""Many short rows at once: a sorting network whose wires are vectors, one row in each lane.

Blocks of wires are sorted in registers by Batcher's network. Sorted runs are merged in pairs: the
first wire of one with the last of the other, and so on, then wires at half the distance, and half
of that; the last distances are in registers again. All exchanges go the same way, so wires that
are not there are as good as wires with the largest key. Rows are turned round on their way in and
out. Keys that are carried with places are compared with them, so that sorting is stable; of other
keys equal ones are the same.

Invariants: a group is as many rows as a vector has keys; one that is not full sorts its last row
several times.
Not here: keys (encoding.py), which rows are short (kernels.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ..gemm.code import (
    advance,
    broadcast,
    ceiling,
    internal,
    lanes_below,
    least,
    load_lanes,
    loop,
    number,
    store_lanes,
    transpose,
)
from ..site import Site
from ..types import I1, I64, POINTER, constant_of, intrinsic, vector_of
from .encoding import VECTOR_BYTES, Coding, any_of, telling

BLOCK = 16  # vectors that are sorted in registers, with those of places

Wire = tuple[ir.Value, ...]  # a vector of keys, and one of places where they are carried


def emit_network(site: Site, name: str, coding: Coding, plane: int) -> ir.Function:
    """``void name(wires, count)``: sort `count` vectors, and those `plane` bytes on with them if
    places are carried. Wires up to the next multiple of the block belong to it."""
    function, b = internal(site.builder.module, name, [POINTER, I64])
    wires, count = function.args
    network = _Network(b, coding, wires, plane)
    block = network.block
    full = b.and_(b.add(count, number(block - 1)), number(-block))
    network.fill(count, full)
    network.blocks(full, merge_exchange(block))
    finish = [(i, i + d) for d in _halves(block) for i in range(block) if not i & d]
    levels = _bits(b, b.sub(b.udiv(full, number(block)), number(1)))

    def level(at: ir.Value, _: Sequence[ir.Value]) -> None:
        """Pairs of sorted runs of `run` wires become runs: mirrored, then by halves."""
        run = b.shl(number(block), at)
        network.mirrored(full, run)

        def half(j: ir.Value, _: Sequence[ir.Value]) -> None:
            network.apart(full, b.lshr(run, b.add(j, number(1))))

        loop(b, number(0), at, 1, half)
        network.blocks(full, finish)

    loop(b, number(0), levels, 1, level)
    b.ret_void()
    return function


class _Network:
    """Exchanges between wires in memory."""

    def __init__(self, b: ir.IRBuilder, coding: Coding, wires: ir.Value, plane: int) -> None:
        self.b, self.wires, self.plane = b, wires, plane
        self.typ = ir.VectorType(coding.key, coding.lanes)
        self.planes = 2 if coding.form.carried else 1
        self.block = BLOCK // self.planes

    def places(self, at: ir.Value) -> list[ir.Value]:
        """Where a wire lies in each plane."""
        first = advance(self.b, self.wires, self.b.mul(at, number(VECTOR_BYTES)))
        return [advance(self.b, first, n * self.plane) for n in range(self.planes)]

    def load(self, at: ir.Value) -> Wire:
        """A wire."""
        return tuple([self.b.load(x, typ=self.typ) for x in self.places(at)])

    def store(self, at: ir.Value, wire: Wire) -> None:
        """Put a wire back."""
        for place, value in zip(self.places(at), wire):
            self.b.store(value, place)

    def exchange(self, near: ir.Value, far: ir.Value) -> None:
        """The lesser to the one place, the greater to the other."""
        low, high = _ordered(self.b, self.load(near), self.load(far))
        self.store(near, low)
        self.store(far, high)

    def fill(self, begin: ir.Value, end: ir.Value) -> None:
        """Wires that come after all others."""
        last = (constant_of(self.typ, (1 << self.typ.element.width) - 1),) * self.planes

        def one(at: ir.Value, _: Sequence[ir.Value]) -> None:
            self.store(at, last)

        loop(self.b, begin, end, 1, one)

    def blocks(self, full: ir.Value, pairs: Sequence[tuple[int, int]]) -> None:
        """The exchanges `pairs` in each block, in registers."""
        b = self.b

        def one(at: ir.Value, _: Sequence[ir.Value]) -> None:
            held = [self.load(b.add(at, number(n))) for n in range(self.block)]
            for i, j in pairs:
                held[i], held[j] = _ordered(b, held[i], held[j])
            for n, wire in enumerate(held):
                self.store(b.add(at, number(n)), wire)

        loop(b, number(0), full, self.block, one)

    def mirrored(self, full: ir.Value, run: ir.Value) -> None:
        """In each pair of runs: the first wire with the last, and so on to the middle."""
        b = self.b
        twice = b.shl(run, number(1))

        def pair(index: ir.Value, _: Sequence[ir.Value]) -> None:
            base = b.mul(index, twice)
            end = b.add(base, twice)
            missing = b.sub(end, full)
            some = b.icmp_signed(">", missing, number(0))
            start = b.add(base, b.select(some, missing, number(0)))
            last = b.sub(b.add(base, end), number(1))

            def one(i: ir.Value, _: Sequence[ir.Value]) -> None:
                self.exchange(i, b.sub(last, i))

            loop(b, start, b.add(base, run), 1, one)

        loop(b, number(0), ceiling(b, full, twice), 1, pair)

    def apart(self, full: ir.Value, distance: ir.Value) -> None:
        """Wires so far from each other."""
        b = self.b
        twice = b.shl(distance, number(1))

        def pair(index: ir.Value, _: Sequence[ir.Value]) -> None:
            base = b.mul(index, twice)
            end = least(b, b.add(base, distance), b.sub(full, distance))

            def one(i: ir.Value, _: Sequence[ir.Value]) -> None:
                self.exchange(i, b.add(i, distance))

            loop(b, base, end, 1, one)

        loop(b, number(0), ceiling(b, full, twice), 1, pair)


def merge_exchange(count: int) -> list[tuple[int, int]]:
    """Batcher's network for a power of two (Knuth's algorithm M)."""
    pairs = []
    p = count // 2
    while p:
        q, r, d = count // 2, 0, p
        while True:
            pairs += [(i, i + d) for i in range(count - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return pairs


def _halves(count: int) -> list[int]:
    return [count >> n for n in range(1, count.bit_length())]


def _ordered(b: ir.IRBuilder, x: Wire, y: Wire) -> tuple[Wire, Wire]:
    """The lesser and the greater of each lane: by keys, equal ones by places."""
    typ = x[0].type
    if len(x) == 1:
        low = intrinsic(b, "llvm.umin", typ, [x[0], y[0]], typ)
        return (low,), (intrinsic(b, "llvm.umax", typ, [x[0], y[0]], typ),)
    later = b.and_(b.icmp_unsigned("==", x[0], y[0]), b.icmp_unsigned(">", x[1], y[1]))
    swap = b.or_(b.icmp_unsigned(">", x[0], y[0]), later)
    pairs = list(zip(x, y))
    low = tuple([b.select(swap, v, u) for u, v in pairs])
    return low, tuple([b.select(swap, u, v) for u, v in pairs])


def _bits(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """How many bits a number has; none for those that are not positive."""
    some = b.icmp_signed(">", value, number(0))
    value = b.select(some, value, number(0))
    zeros = intrinsic(b, "llvm.ctlz", I64, [value, ir.Constant(I1, 0)], I64)
    return b.sub(number(64), zeros)


def emit_load_group(site: Site, name: str, coding: Coding, plane: int) -> ir.Function:
    """``i64 name(elements, wires, rows, count)``: keys of a group of rows into wires; whether one
    is special."""
    function, b = telling(site.builder.module, name)
    source, wires, rows, count = function.args
    lanes, size = coding.lanes, coding.dtype.itemsize
    starts = _row_starts(b, source, rows, b.mul(count, number(size)), lanes)

    def part(at: ir.Value, carried: Sequence[ir.Value]) -> list[ir.Value]:
        mask = lanes_below(b, b.sub(count, at), lanes)
        seen, keys = carried[0], []
        for start in starts:
            from_ = advance(b, start, b.mul(at, number(size)))
            bits = load_lanes(b, coding.raw, from_, lanes, mask)
            made, special = coding.encode(b, bits, at)
            keys.append(made)
            if special is not None:
                seen = b.or_(seen, b.and_(special, mask))
        for n, wire in enumerate(transpose(b, keys)):
            to = advance(b, wires, b.mul(b.add(at, number(n)), number(VECTOR_BYTES)))
            b.store(wire, to)
            if coding.form.carried:
                place = broadcast(b, b.add(at, number(n)), lanes)
                b.store(place, advance(b, to, plane))
        return [seen]

    none = constant_of(vector_of(I1, lanes), 0)
    (seen,) = loop(b, number(0), count, lanes, part, [none])
    b.ret(any_of(b, seen))
    return function


def emit_store_group(site: Site, name: str, coding: Coding, plane: int) -> ir.Function:
    """``void name(wires, results, rows, count)``: wires back to a group of rows."""
    function, b = internal(site.builder.module, name, [POINTER, POINTER, I64, I64])
    wires, target, rows, count = function.args
    lanes = coding.lanes
    places = coding.form.packed or coding.form.carried
    size = 8 if places else coding.dtype.itemsize
    starts = _row_starts(b, target, rows, b.mul(count, number(size)), lanes)
    typ = ir.VectorType(coding.key, lanes)
    if coding.form.carried:
        wires = advance(b, wires, plane)

    def part(at: ir.Value, _: Sequence[ir.Value]) -> None:
        mask = lanes_below(b, b.sub(count, at), lanes)
        base = advance(b, wires, b.mul(at, number(VECTOR_BYTES)))
        held = [b.load(advance(b, base, n * VECTOR_BYTES), typ=typ) for n in range(lanes)]
        for start, keys in zip(starts, transpose(b, held)):
            made = keys if coding.form.carried else coding.decode(b, keys)
            store_lanes(b, made, advance(b, start, b.mul(at, number(size))), mask)

    loop(b, number(0), count, lanes, part)
    b.ret_void()
    return function


def _row_starts(
    b: ir.IRBuilder, first: ir.Value, rows: ir.Value, stride: ir.Value, lanes: int
) -> list[ir.Value]:
    """Where each row of a group begins; the last row again for rows that are not there."""
    last = b.sub(rows, number(1))
    return [advance(b, first, b.mul(least(b, number(lane), last), stride)) for lane in range(lanes)]
