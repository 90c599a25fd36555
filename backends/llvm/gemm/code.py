"""Plain loops and vectors for functions written by hand, without a kernel's frame.

Invariants: a loop is guarded and tested at its end; values carried around it come back.
Not here: loops of a kernel's statements (../loops.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ....compiler.types import DType
from ..conversions import convert
from ..site import Site
from ..types import (
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    constant_of,
    intrinsic,
    memory_element,
    vector_of,
    width_of,
)  # fmt: skip

Body = Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value] | None]


def number(value: int) -> ir.Constant:
    """An i64."""
    return ir.Constant(I64, value)


def loop(
    builder: ir.IRBuilder,
    begin: ir.Value,
    end: ir.Value,
    step: int,
    body: Body,
    carried: Sequence[ir.Value] = (),
) -> list[ir.Value]:
    """``for i in begin, begin + step, ... < end``; the carried values after the last."""
    function = builder.function
    before = builder.block
    top, done = function.append_basic_block("loop"), function.append_basic_block("done")
    builder.cbranch(builder.icmp_signed("<", begin, end), top, done)
    builder.position_at_end(top)
    index = builder.phi(I64)
    index.add_incoming(begin, before)
    phis = [builder.phi(value.type) for value in carried]
    for phi, value in zip(phis, carried):
        phi.add_incoming(value, before)
    made = list(body(index, list(phis)) or ())
    following = builder.add(index, number(step), flags=["nsw"])
    latch = builder.block
    index.add_incoming(following, latch)
    builder.cbranch(builder.icmp_signed("<", following, end), top, done)
    builder.position_at_end(done)
    results = []
    for phi, value, first in zip(phis, made, carried):
        phi.add_incoming(value, latch)
        result = builder.phi(value.type)
        result.add_incoming(first, before)
        result.add_incoming(value, latch)
        results.append(result)
    return results


def either(
    builder: ir.IRBuilder,
    condition: ir.Value,
    yes: Callable[[], None],
    no: Callable[[], None] | None = None,
) -> None:
    """Two ways that meet again."""
    function = builder.function
    first, join = function.append_basic_block("yes"), function.append_basic_block("join")
    second = join if no is None else function.append_basic_block("no")
    builder.cbranch(condition, first, second)
    for block, emit in ((first, yes), (second, no)):
        if emit is not None:
            builder.position_at_end(block)
            emit()
            builder.branch(join)
    builder.position_at_end(join)


def choose(
    builder: ir.IRBuilder, ways: Sequence[tuple[ir.Value | None, Callable[[], ir.Value]]]
) -> ir.Value:
    """The value of the first way whose condition holds; None is the last resort."""
    function = builder.function
    join = function.append_basic_block("join")
    ends = []
    for condition, emit in ways:
        following = None
        if condition is not None:
            here = function.append_basic_block("way")
            following = function.append_basic_block("otherwise")
            builder.cbranch(condition, here, following)
            builder.position_at_end(here)
        ends.append((emit(), builder.block))
        builder.branch(join)
        if following is None:
            break
        builder.position_at_end(following)
    builder.position_at_end(join)
    value = builder.phi(ends[0][0].type)
    for made, block in ends:
        value.add_incoming(made, block)
    return value


def internal(
    module: ir.Module, name: str, parameters: Sequence[ir.Type]
) -> tuple[ir.Function, ir.IRBuilder]:
    """A function that only this module calls."""
    function = ir.Function(module, ir.FunctionType(VOID, list(parameters)), name)
    function.linkage = "internal"
    function.attributes.add("nounwind")
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def advance(builder: ir.IRBuilder, pointer: ir.Value, offset: ir.Value | int) -> ir.Value:
    """pointer + offset bytes."""
    if isinstance(offset, int):
        if offset == 0:
            return pointer
        offset = number(offset)
    return builder.gep(pointer, [offset], source_etype=I8)


def prefetch(builder: ir.IRBuilder, pointer: ir.Value) -> None:
    """Ask for the cache line at an address, which need not exist."""
    args = [pointer, *(ir.Constant(I32, n) for n in (0, 3, 1))]
    intrinsic(builder, "llvm.prefetch", VOID, args, POINTER)


def least(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The smaller of two i64."""
    return intrinsic(builder, "llvm.smin", I64, [a, b], I64)


def ceiling(builder: ir.IRBuilder, a: ir.Value, b: ir.Value | int) -> ir.Value:
    """a / b rounded up, both positive."""
    divisor = number(b) if isinstance(b, int) else b
    return builder.udiv(builder.add(a, builder.sub(divisor, number(1))), divisor)


def broadcast(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A scalar in all lanes."""
    typ = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(typ, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, lanes), None))


def lanes_below(builder: ir.IRBuilder, count: ir.Value, lanes: int) -> ir.Value:
    """A mask of the first `count` lanes (all, where there are fewer)."""
    count = builder.trunc(least(builder, count, number(lanes)), I32)
    iota = ir.Constant(ir.VectorType(I32, lanes), [ir.Constant(I32, i) for i in range(lanes)])
    return builder.icmp_signed("<", iota, broadcast(builder, count, lanes))


def multiply_add(site: Site, real: DType, a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
    """total + a * b, fused where the machine can."""
    builder = site.builder
    if not real.is_float:
        return builder.add(total, builder.mul(a, b))
    if site.machine.has_fma:
        return intrinsic(builder, "llvm.fma", a.type, [a, b, total], a.type)
    return builder.fadd(total, builder.fmul(a, b))


def zero_of(typ: ir.Type) -> ir.Constant:
    """Zero in all lanes."""
    element = typ.element if isinstance(typ, ir.VectorType) else typ
    return constant_of(typ, 0 if isinstance(element, ir.IntType) else 0.0)


def load_lanes(
    builder: ir.IRBuilder, element: ir.Type, pointer: ir.Value, lanes: int, mask: ir.Value | None
) -> ir.Value:
    """Neighbours in memory; zero where the mask is off."""
    typ = vector_of(element, lanes)
    if mask is None:
        return builder.load(pointer, typ=typ, align=1)
    args = [pointer, ir.Constant(I32, 1), mask, zero_of(typ)]
    return intrinsic(builder, "llvm.masked.load", typ, args, typ, POINTER)


def store_lanes(
    builder: ir.IRBuilder,
    value: ir.Value,
    pointer: ir.Value,
    mask: ir.Value | None,
    align: int = 1,
) -> None:
    """Neighbours in memory, where the mask is on."""
    if mask is None:
        builder.store(value, pointer, align=align)
        return
    args = [value, pointer, ir.Constant(I32, align), mask]
    intrinsic(builder, "llvm.masked.store", VOID, args, value.type, POINTER)


def gather_lanes(
    builder: ir.IRBuilder, element: ir.Type, pointer: ir.Value, offsets: ir.Value, mask: ir.Value
) -> ir.Value:
    """What lies so many bytes from a place, for each lane; zero where the mask is off."""
    lanes = width_of(offsets)
    typ = vector_of(element, lanes)
    where = builder.gep(pointer, [offsets], source_etype=I8)
    where.type = ir.VectorType(POINTER, lanes)
    args = [where, ir.Constant(I32, 1), mask, zero_of(typ)]
    return intrinsic(builder, "llvm.masked.gather", typ, args, typ, where.type)


def load_elements(
    site: Site, source: DType, target: DType, pointer: ir.Value, lanes: int, mask: ir.Value | None
) -> ir.Value:
    """Neighbouring elements of a real dtype, converted; zero where the mask is off."""
    raw = load_lanes(site.builder, memory_element(source), pointer, lanes, mask)
    return convert(site, source, target, raw)


def gather_elements(
    site: Site,
    source: DType,
    target: DType,
    pointer: ir.Value,
    stride: ir.Value,
    lanes: int,
    mask: ir.Value,
) -> ir.Value:
    """Elements `stride` bytes apart, converted; zero where the mask is off."""
    builder = site.builder
    iota = ir.Constant(ir.VectorType(I64, lanes), [number(i) for i in range(lanes)])
    offsets = builder.mul(iota, broadcast(builder, stride, lanes))
    raw = gather_lanes(builder, memory_element(source), pointer, offsets, mask)
    return convert(site, source, target, raw)


def shuffle(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, order: Sequence[int]) -> ir.Value:
    """Lanes of a and b, counted through both."""
    mask = ir.Constant(ir.VectorType(I32, len(order)), [ir.Constant(I32, i) for i in order])
    return builder.shuffle_vector(a, b, mask)


def transpose(builder: ir.IRBuilder, rows: list[ir.Value]) -> list[ir.Value]:
    """A square of vectors with rows and lanes exchanged."""
    count = width_of(rows[0])
    half = count // 2
    while half:
        made = list(rows)
        low = [i if not i & half else i - half + count for i in range(count)]
        high = [i + half if not i & half else i + count for i in range(count)]
        for i in range(count):
            if not i & half:
                made[i] = shuffle(builder, rows[i], rows[i + half], low)
                made[i + half] = shuffle(builder, rows[i], rows[i + half], high)
        rows = made
        half //= 2
    return rows
