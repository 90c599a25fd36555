"""The steps of a sort as kernels: each over a range of rows, or of pieces or buckets of rows.

Invariants: a range [begin, end) is of what `sorting.split_sort` of the compiler launches; what a
step leaves in its buffers is what sort_steps.py says.
Not here: the function around it (../function.py), keys, sorting itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ....compiler.kernel.kernel import Search, Select, Sort
from ....compiler.kernel.sorting import (
    BUCKETS,
    FEW,
    PIECES,
    SAMPLE,
    SHORT,
    key_form,
    row_length,
    sorting_of,
    source_dtype,
)  # fmt: skip
from ..control import poll
from ..frame import Frame
from ..gemm.code import advance, either, least, loop, number, prefetch
from ..indices import scalar_size
from ..native.language import i16, i32, i64, u32, u64
from ..native.language.unit import include
from ..types import I1, I64, POINTER
from . import mending, pieces, rows
from .encoding import INFINITE, PLACE_BITS, VECTOR_BYTES, Coding, emit_decode, emit_encode
from .network import BLOCK, emit_load_group, emit_network, emit_store_group
from .patterns import functions_for
from .searching import emit_search
from .selecting import emit_select

_GROUP = 4  # rows that are several
_WORD = 8
_LINE = 64


def emit_sort(frame: Frame, name: str) -> None:
    """Emit the body of the frame's kernel, which sorts, searches or selects."""
    match sorting_of(frame.kernel):
        case Sort() as sort:
            _Sorting(frame, sort, name).emit()
        case Search() as search:
            emit_search(frame, search)
        case Select() as select:
            emit_select(frame, select)


class _Sorting:
    def __init__(self, frame: Frame, sort: Sort, name: str) -> None:
        self.frame, self.sort, self.name = frame, sort, name
        self.b = frame.builder
        self.dtype = source_dtype(frame.kernel, sort)
        self.form = key_form(self.dtype, sort.gives)
        self.coding = Coding(self.dtype, self.form)
        self.length = row_length(frame.kernel, sort)
        self.count = scalar_size(frame, self.length)
        self.bytes = self.form.dtype.itemsize
        self.result_bytes = frame.buffers[sort.result].dtype.itemsize
        self.mends = self.dtype.is_float and sort.gives == "elements"

    def emit(self) -> None:
        """The step."""
        if self.sort.stage == "rows":
            self.rows()
            return
        step: Callable[[ir.Value], None] = getattr(self, f"{self.sort.stage}_step")()
        self.units(step)

    # -- short rows

    def rows(self) -> None:
        """Whole rows: many at once where they are short, else one after another."""
        b, frame, length = self.b, self.frame, self.length
        if self.sort.other is None:
            self.in_network()
            return
        if isinstance(length, int) and length > SHORT:
            self.units(self.single_rows())
            return
        single = self.single_rows()
        several = b.icmp_signed(">=", b.sub(frame.end, frame.begin), number(_GROUP))
        short = b.icmp_signed("<=", self.count, number(SHORT))
        tiny = b.icmp_signed("<=", self.count, number(FEW))
        use = b.or_(tiny, b.and_(several, short))
        either(b, use, self.in_network, lambda: self.units(single))

    def in_network(self) -> None:
        """Groups of rows in a network."""
        b, frame, coding, name = self.b, self.frame, self.coding, self.name
        lanes = coding.lanes
        most = self.length if isinstance(self.length, int) else SHORT
        plane = (most + BLOCK - 1) // BLOCK * BLOCK * VECTOR_BYTES
        load = emit_load_group(frame.site, f"{name}_load", coding, plane)
        network = emit_network(frame.site, f"{name}_network", coding, plane)
        store = emit_store_group(frame.site, f"{name}_store", coding, plane)
        mend = self.mending()
        wires = frame.stack_slot(ir.IntType(8), plane * (2 if self.form.carried else 1))

        def group(row: ir.Value, _: Sequence[ir.Value]) -> None:
            poll(frame, b.mul(self.count, number(lanes)))
            there = least(b, number(lanes), b.sub(frame.end, row))
            source, result = self.at(self.sort.source, row), self.at(self.sort.result, row)
            special = b.call(load, [source, wires, there, self.count])
            following = b.mul(number(lanes * self.dtype.itemsize), self.count)
            self.ask_for(advance(b, source, following), following)
            self.ask_for(result, b.mul(number(lanes * self.result_bytes), self.count))
            b.call(network, [wires, self.count])
            b.call(store, [wires, result, there, self.count])
            if mend is not None:
                either(b, b.icmp_signed("!=", special, number(0)), lambda: self.mend_rows(
                    mend, row, b.add(row, there)
                ))  # fmt: skip

        loop(b, frame.begin, frame.end, lanes, group)

    def ask_for(self, start: ir.Value, size: ir.Value) -> None:
        """Have memory in the cache by the time it is used: rows come and go in short stretches,
        which the processor does not foresee."""

        def line(at: ir.Value, _: Sequence[ir.Value]) -> None:
            prefetch(self.b, advance(self.b, start, at))

        loop(self.b, number(0), size, _LINE, line)

    def mend_rows(self, mend: ir.Function, first: ir.Value, end: ir.Value) -> None:
        """Put rows right."""

        def one(row: ir.Value, _: Sequence[ir.Value]) -> None:
            self.b.call(
                mend, [self.at(self.sort.source, row), self.at(self.sort.result, row), self.count]
            )

        loop(self.b, first, end, 1, one)

    # -- rows one by one

    def single_rows(self) -> Callable[[ir.Value], None]:
        """A row, all of it."""
        b = self.b
        encode, decode = self.codecs()
        sort_row, number_places = self.natives((rows, "sort_row"), (pieces, "number_places"))
        mend = self.mending()
        tables = self.tables()

        def one(row: ir.Value) -> None:
            poll(self.frame, b.mul(self.count, number(8)))
            source, result = self.at(self.sort.source, row), self.at(self.sort.result, row)
            keys = self.keys(row)
            special = b.call(encode, [source, keys, self.count, number(0)])
            places, moved = self.carried(row)
            if self.form.carried:
                b.call(number_places, [places, number(0), self.count])
            others = [self.at(self.sort.other, row), places, moved, self.count]
            args = [self.frame.control, keys, *others]
            b.call(sort_row, [*args, ir.Constant(I1, 1), tables])
            if not self.form.carried:
                b.call(decode, [keys, result, self.count])
            if mend is not None:
                either(b, b.icmp_signed("!=", special, number(0)), lambda: b.call(
                    mend, [source, result, self.count]
                ))  # fmt: skip

        return one

    # -- long rows

    def count_step(self) -> Callable[[ir.Value], None]:
        """A piece: keys, and how many have each digit."""
        b = self.b
        encode, _ = self.codecs()
        first, count, number_places = self.natives(
            (pieces, "first_digit"), (pieces, "count_piece"), (pieces, "number_places")
        )
        sample, digit = self.sample()

        def one(unit: ir.Value) -> None:
            row, piece = b.udiv(unit, number(PIECES)), b.urem(unit, number(PIECES))
            source, keys = self.at(self.sort.source, row), self.keys(row)

            def taken(at: ir.Value, _: Sequence[ir.Value]) -> None:
                place = b.udiv(b.mul(at, self.count), number(SAMPLE))
                from_ = advance(b, source, b.mul(place, number(self.dtype.itemsize)))
                to = advance(b, sample, b.mul(at, number(self.bytes)))
                b.call(encode, [from_, to, number(1), place])

            loop(b, number(0), number(SAMPLE), 1, taken)
            b.call(first, [sample, digit])
            begin, end = (
                b.udiv(b.mul(p, self.count), number(PIECES))
                for p in (piece, b.add(piece, number(1)))
            )
            from_ = advance(b, source, b.mul(begin, number(self.dtype.itemsize)))
            to = advance(b, keys, b.mul(begin, number(self.bytes)))
            special = b.call(encode, [from_, to, b.sub(end, begin), begin])
            if self.form.carried:
                b.call(number_places, [self.carried(row)[0], begin, end])
            counts = self.counts(row)
            mine = advance(b, counts, b.mul(piece, number((BUCKETS + 1) * _WORD)))
            b.call(count, [keys, begin, end, digit, mine])
            b.store(special, advance(b, mine, BUCKETS * _WORD))

        return one

    def spread_step(self) -> Callable[[ir.Value], None]:
        """A piece: its keys to their buckets."""
        b = self.b
        take, first, spread = self.natives(
            (pieces, "sample_row"), (pieces, "first_digit"), (pieces, "spread_piece")
        )
        sample, digit = self.sample()
        tables = self.tables()

        def one(unit: ir.Value) -> None:
            row, piece = b.udiv(unit, number(PIECES)), b.urem(unit, number(PIECES))
            keys = self.keys(row)
            b.call(take, [keys, sample, self.count])
            b.call(first, [sample, digit])
            places, moved = self.carried(row)
            b.call(spread, [
                keys, self.at(self.sort.other, row), places, moved, self.count, piece, digit,
                self.counts(row), self.ends(row), tables,
            ])  # fmt: skip

        return one

    def buckets_step(self) -> Callable[[ir.Value], None]:
        """A bucket: sorted, to its place in the result."""
        b = self.b
        _, decode = self.codecs()
        (sort_row,) = self.natives((rows, "sort_row"))
        tables = self.tables()

        def one(unit: ir.Value) -> None:
            row, bucket = b.udiv(unit, number(BUCKETS)), b.urem(unit, number(BUCKETS))
            ends = self.ends(row)
            end = b.load(advance(b, ends, b.mul(bucket, number(_WORD))), typ=I64)
            earlier = b.select(b.icmp_signed(">", bucket, number(0)), number(1), number(0))
            before = b.load(advance(b, ends, b.mul(b.sub(bucket, earlier), number(_WORD))), typ=I64)
            begin = b.mul(before, earlier)
            keys, other, places, moved = (
                advance(b, start, b.mul(begin, number(size)))
                for start, size in zip(
                    (self.keys(row), self.at(self.sort.other, row), *self.carried(row)),
                    (self.bytes, self.bytes, _WORD, _WORD),
                )
            )
            result = self.at(self.sort.result, row)
            result = advance(b, result, b.mul(begin, number(self.result_bytes)))
            count = b.sub(end, begin)

            def sorted_() -> None:
                poll(self.frame, b.mul(count, number(8)))
                args = [self.frame.control, other, keys, moved, places, count]
                b.call(sort_row, [*args, ir.Constant(I1, 0), tables])
                if not self.form.carried:
                    b.call(decode, [keys, result, count])

            either(b, b.icmp_signed(">", count, number(0)), sorted_)

        return one

    def mend_step(self) -> Callable[[ir.Value], None]:
        """A row whose keys do not tell everything."""
        b = self.b
        (special,) = self.natives((pieces, "is_special"))
        mend = self.mending()
        assert mend is not None

        def one(row: ir.Value) -> None:
            found = b.call(special, [self.counts(row)])
            either(b, found, lambda: self.mend_rows(mend, row, b.add(row, number(1))))

        return one

    # -- parts

    def units(self, one: Callable[[ir.Value], None]) -> None:
        """`one` for everything in the range."""

        def body(unit: ir.Value, _: Sequence[ir.Value]) -> None:
            one(unit)

        loop(self.b, self.frame.begin, self.frame.end, 1, body)

    def codecs(self) -> tuple[ir.Function, ir.Function]:
        """The functions that make keys of elements, and elements or places of keys."""
        site = self.frame.site
        encode = emit_encode(site, self.coding, f"{self.name}_encode")
        return encode, emit_decode(site, self.coding, f"{self.name}_decode")

    def natives(self, *wanted: tuple[Any, str]) -> list[ir.Function]:
        """Native functions for these keys."""
        key = u64 if self.bytes == 8 else u32
        free = PLACE_BITS if self.form.packed else 0
        suffix = f"{8 * self.bytes}_{free}_{int(self.form.carried)}"
        settings = {"Key": key, "CARRY": self.form.carried, "FREE": free}
        found = [functions_for(module, suffix, **settings)[name] for module, name in wanted]
        return include(self.b.module, found)

    def mending(self) -> ir.Function | None:
        """The function that puts a row right, where rows may need it."""
        if not self.mends:
            return None
        bits = 8 * self.dtype.itemsize
        made = functions_for(
            mending, self.dtype.name, Element={16: i16, 32: i32, 64: i64}[bits],
            MAGNITUDE=(1 << (bits - 1)) - 1, INFINITE=INFINITE[self.dtype],
        )  # fmt: skip
        return include(self.b.module, [made["mend_row"]])[0]

    def tables(self) -> ir.Value:
        """Memory for counts of digits."""
        return self.frame.stack_slot(I64, rows.TABLE_WORDS)

    def sample(self) -> tuple[ir.Value, ir.Value]:
        """Memory for a sample of keys and for a digit."""
        frame = self.frame
        return frame.stack_slot(I64, SAMPLE), frame.stack_slot(I64, 2)

    def at(self, name: str | None, row: ir.Value) -> ir.Value:
        """Where a row begins in a buffer."""
        assert name is not None
        buffer = self.frame.buffers[name]
        stride = self.b.mul(self.count, number(buffer.dtype.itemsize))
        return advance(self.b, buffer.pointer, self.b.mul(row, stride))

    def keys(self, row: ir.Value) -> ir.Value:
        """Where the keys of a row are."""
        return self.at(self.sort.keys or self.sort.result, row)

    def carried(self, row: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Where the places of a row are, and the memory they are moved through."""
        if not self.form.carried:
            none = ir.Constant(POINTER, None)
            return none, none
        return self.at(self.sort.result, row), self.at(self.sort.moved, row)

    def counts(self, row: ir.Value) -> ir.Value:
        """The counts of all pieces of a row."""
        return self._table(self.sort.counts, row, PIECES * (BUCKETS + 1))

    def ends(self, row: ir.Value) -> ir.Value:
        """The ends of all buckets of a row."""
        return self._table(self.sort.ends, row, BUCKETS)

    def _table(self, name: str | None, row: ir.Value, words: int) -> ir.Value:
        assert name is not None
        start = self.frame.buffers[name].pointer
        return advance(self.b, start, self.b.mul(row, number(words * _WORD)))
