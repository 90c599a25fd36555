"""Elements to keys and back, in vectors: what sort_steps.py in the compiler defines.

Invariants: a key has the width of its form; NaN of any kind is the largest key of its dtype, both
zeros are one key. `special` lanes are those whose key does not tell what they were.
Not here: order of keys (rows.py, network.py).
"""

from __future__ import annotations

from llvmlite import ir

from ....compiler.kernel.sorting import KeyForm
from ....compiler.records import dataclass
from ....compiler.types import BF16, F16, F32, F64, DType
from ..gemm.code import (
    advance,
    broadcast,
    internal,
    lanes_below,
    load_lanes,
    loop,
    number,
    store_lanes,
)  # fmt: skip
from ..site import Site
from ..types import I1, I64, POINTER, constant_of, vector_of

INFINITE = {F16: 0x7C00, BF16: 0x7F80, F32: 0x7F800000, F64: 0x7FF0000000000000}
VECTOR_BYTES = 64
PLACE_BITS = 32


@dataclass(frozen=True, slots=True)
class Coding:
    """How elements of a dtype are keys of a form, `lanes` at a time."""

    dtype: DType
    form: KeyForm

    @property
    def lanes(self) -> int:
        """Keys of a vector."""
        return VECTOR_BYTES // self.form.dtype.itemsize

    @property
    def raw(self) -> ir.Type:
        """An element's bits."""
        return ir.IntType(8 * self.dtype.itemsize)

    @property
    def key(self) -> ir.Type:
        """A key."""
        return ir.IntType(self.form.dtype.bits)

    def encode(
        self, b: ir.IRBuilder, bits: ir.Value, first: ir.Value
    ) -> tuple[ir.Value, ir.Value | None]:
        """Keys of elements whose places are counted from `first`; the special lanes."""
        typ, special = bits.type, None
        sign = 1 << (8 * self.dtype.itemsize - 1)
        if self.dtype.is_float:
            bits, special = self._encode_float(b, bits, sign)
        elif self.dtype.kind == "i":
            bits = b.xor(bits, constant_of(typ, sign))
        wide = vector_of(self.key, self.lanes)
        if self.form.dtype.itemsize > self.dtype.itemsize:
            bits = b.zext(bits, wide)
        if self.form.packed:
            count = ir.Constant(wide, [ir.Constant(self.key, i) for i in range(self.lanes)])
            places = b.add(broadcast(b, first, self.lanes), count)
            bits = b.or_(b.shl(bits, constant_of(wide, PLACE_BITS)), places)
        return bits, special

    def _encode_float(
        self, b: ir.IRBuilder, bits: ir.Value, sign: int
    ) -> tuple[ir.Value, ir.Value]:
        typ, width = bits.type, 8 * self.dtype.itemsize
        magnitude = b.and_(bits, constant_of(typ, sign - 1))
        is_nan = b.icmp_unsigned(">", magnitude, constant_of(typ, INFINITE[self.dtype]))
        is_zero = b.icmp_unsigned("==", magnitude, constant_of(typ, 0))
        special = b.or_(is_nan, b.icmp_unsigned("==", bits, constant_of(typ, sign)))
        spread = b.or_(b.ashr(bits, constant_of(typ, width - 1)), constant_of(typ, sign))
        keys = b.xor(bits, spread)
        keys = b.select(is_zero, constant_of(typ, sign), keys)
        return b.select(is_nan, constant_of(typ, (1 << width) - 1), keys), special

    def decode(self, b: ir.IRBuilder, keys: ir.Value) -> ir.Value:
        """Bits of elements, or places (i64) of packed keys."""
        if self.form.packed:
            return b.and_(keys, constant_of(keys.type, (1 << PLACE_BITS) - 1))
        typ, width = vector_of(self.raw, self.lanes), 8 * self.dtype.itemsize
        sign = constant_of(typ, 1 << (width - 1))
        if self.form.dtype.itemsize > self.dtype.itemsize:
            keys = b.trunc(keys, typ)
        if self.dtype.is_float:
            spread = b.ashr(b.not_(keys), constant_of(typ, width - 1))
            return b.xor(keys, b.or_(spread, sign))
        return b.xor(keys, sign) if self.dtype.kind == "i" else keys


def any_of(b: ir.IRBuilder, lanes: ir.Value) -> ir.Value:
    """Whether a lane is set, as an i64."""
    bits = ir.IntType(lanes.type.count)
    mask = b.bitcast(lanes, bits)
    return b.zext(b.icmp_unsigned("!=", mask, ir.Constant(bits, 0)), I64)


def telling(module: ir.Module, name: str) -> tuple[ir.Function, ir.IRBuilder]:
    """A function of two addresses and two numbers that says whether a lane was special."""
    typ = ir.FunctionType(I64, [POINTER, POINTER, I64, I64])
    function = ir.Function(module, typ, name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def emit_encode(site: Site, coding: Coding, name: str) -> ir.Function:
    """``i64 name(elements, keys, count, first)``: keys of neighbours, whose places are counted from
    `first`; whether one is special."""
    function, b = telling(site.builder.module, name)
    source, target, count, first = function.args
    size, lanes = coding.dtype.itemsize, coding.lanes

    def part(at: ir.Value, seen: ir.Value, mask: ir.Value | None) -> ir.Value:
        bits = load_lanes(b, coding.raw, advance(b, source, b.mul(at, number(size))), lanes, mask)
        keys, special = coding.encode(b, bits, b.add(first, at))
        to = advance(b, target, b.mul(at, number(coding.form.dtype.itemsize)))
        store_lanes(b, keys, to, mask)
        return seen if special is None else b.or_(seen, special)

    none = constant_of(vector_of(I1, lanes), 0)
    full = b.and_(count, number(-lanes))
    (seen,) = loop(b, number(0), full, lanes, lambda at, s: [part(at, s[0], None)], [none])
    (seen,) = loop(
        b, full, count, lanes,
        lambda at, s: [part(at, s[0], lanes_below(b, b.sub(count, at), lanes))], [seen],
    )  # fmt: skip
    b.ret(any_of(b, seen))
    return function


def emit_decode(site: Site, coding: Coding, name: str) -> ir.Function:
    """``void name(keys, results, count)``: what the keys stand for; both may be one memory."""
    function, b = internal(site.builder.module, name, [POINTER, POINTER, I64])
    source, target, count = function.args
    lanes = coding.lanes
    size = 8 if coding.form.packed else coding.dtype.itemsize

    def part(at: ir.Value, mask: ir.Value | None) -> None:
        at_key = advance(b, source, b.mul(at, number(coding.form.dtype.itemsize)))
        keys = load_lanes(b, coding.key, at_key, lanes, mask)
        to = advance(b, target, b.mul(at, number(size)))
        store_lanes(b, coding.decode(b, keys), to, mask)

    full = b.and_(count, number(-lanes))
    loop(b, number(0), full, lanes, lambda at, _: part(at, None))
    loop(b, full, count, lanes, lambda at, _: part(at, lanes_below(b, b.sub(count, at), lanes)))
    b.ret_void()
    return function
