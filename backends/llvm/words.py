"""The words of the scalar language on LLVM values: one table, word -> emitter.

Every emitter takes the machine, the dtype of the operands and operands of equal width, and
gives the result for every input as `compiler/ops/scalar.py` states it: nothing traps, nothing is
undefined. f16 and bf16 arithmetic happens in f32 and rounds back, which is correctly rounded for
one operation.
Not here: conversions (conversions.py), leaves and regions (scalar.py).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ...compiler.types import BF16, BOOL, F16, F32, DType
from .conversions import narrow_to_half, wide_of_half
from .site import Site
from .softfloat import fused_multiply_add, fused_multiply_add_half, scale_in_steps
from .types import (
    DOUBLE,
    FLOAT,
    I1,
    I32,
    I128,
    constant_of,
    element_of,
    intrinsic,
    invert,
    vector_of,
    width_of,
)  # fmt: skip
from .x86 import scale_by_power

Emit = Callable[..., ir.Value]


def _by_kind(floats: str, integers: str) -> Emit:
    def emit(site: Site, dtype: DType, *args: ir.Value) -> ir.Value:
        method = floats if dtype.is_float else integers
        return getattr(site.builder, method)(*args)

    return emit


def _builder(method: str) -> Emit:
    return lambda site, dtype, *args: getattr(site.builder, method)(*args)


def _float_intrinsic(name: str) -> Emit:
    return lambda site, dtype, *args: intrinsic(
        site.builder, name, args[0].type, list(args), args[0].type
    )


def _in_f32(emit: Emit) -> Emit:
    """The same word for f16 and bf16: in f32, rounded back."""

    def wrapped(site: Site, dtype: DType, *args: ir.Value) -> ir.Value:
        if dtype is not F16 and dtype is not BF16:
            return emit(site, dtype, *args)
        wide = [wide_of_half(site, dtype, a) for a in args]
        return narrow_to_half(site, dtype, emit(site, F32, *wide))

    return wrapped


def _sign_bit(value: ir.Value) -> int:
    width: int = element_of(value.type).width
    return 1 << (width - 1)


def _add(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    if dtype is BOOL:
        return site.builder.or_(a, b)
    return site.builder.fadd(a, b) if dtype.is_float else site.builder.add(a, b)


def _mul(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    if dtype is BOOL:
        return site.builder.and_(a, b)
    return site.builder.fmul(a, b) if dtype.is_float else site.builder.mul(a, b)


def _neg(site: Site, dtype: DType, a: ir.Value) -> ir.Value:
    if dtype in (F16, BF16):
        return site.builder.xor(a, constant_of(a.type, _sign_bit(a)))
    return site.builder.fneg(a) if dtype.is_float else site.builder.neg(a)


def _abs(site: Site, dtype: DType, a: ir.Value) -> ir.Value:
    if dtype in (F16, BF16):
        return site.builder.and_(a, constant_of(a.type, _sign_bit(a) - 1))
    if dtype.is_float:
        return intrinsic(site.builder, "llvm.fabs", a.type, [a], a.type)
    if dtype.kind != "i":
        return a
    return intrinsic(site.builder, "llvm.abs", a.type, [a, ir.Constant(I1, 0)], a.type)


def _copysign(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    builder = site.builder
    if element_of(a.type) == DOUBLE:
        return intrinsic(builder, "llvm.copysign", a.type, [a, b], a.type)
    # By bits, f32 too: LLVM's own takes the sign from what `b` was rounded from, an f64 perhaps,
    # and where the result becomes an f16 it calls a library function to round that.
    bits = a.type if dtype in (F16, BF16) else vector_of(I32, width_of(a))
    a, b = (x if dtype in (F16, BF16) else builder.bitcast(x, bits) for x in (a, b))
    sign = constant_of(bits, _sign_bit(a))
    magnitude = builder.and_(a, constant_of(bits, _sign_bit(a) - 1))
    made = builder.or_(magnitude, builder.and_(b, sign))
    return made if dtype in (F16, BF16) else builder.bitcast(made, vector_of(FLOAT, width_of(a)))


def _fma(site: Site, dtype: DType, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    if dtype in (F16, BF16):
        return fused_multiply_add_half(site, dtype, a, b, c)
    if site.machine.has_fma:
        return intrinsic(site.builder, "llvm.fma", a.type, [a, b, c], a.type)
    return fused_multiply_add(site, a, b, c)


def _scale(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    direct = scale_by_power(site, a, b)
    return scale_in_steps(site, a, b) if direct is None else direct


def _compare(symbol: str) -> Emit:
    def emit(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
        if dtype in (F16, BF16):
            a, b = wide_of_half(site, dtype, a), wide_of_half(site, dtype, b)
        if dtype.is_float:
            compare = site.builder.fcmp_unordered if symbol == "!=" else site.builder.fcmp_ordered
            return compare(symbol, a, b)
        if dtype.kind == "i":
            return site.builder.icmp_signed(symbol, a, b)
        return site.builder.icmp_unsigned(symbol, a, b)

    return emit


def _divide(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The quotient, 0 where b is 0, and whether b is 0."""
    builder = site.builder
    zero = constant_of(b.type, 0)
    by_zero = builder.icmp_unsigned("==", b, zero)
    if width_of(a) > 1 and dtype.bits <= 32:
        quotient = _divide_by_floats(site, dtype, a, b)
        return builder.select(by_zero, zero, quotient), by_zero
    if dtype.kind == "u":
        safe = builder.select(by_zero, constant_of(b.type, 1), b)
        return builder.select(by_zero, zero, builder.udiv(a, safe)), by_zero
    # MIN / -1 traps: division by -1 is negation, which wraps as the language says.
    minus_one = builder.icmp_unsigned("==", b, constant_of(b.type, -1))
    safe = builder.select(builder.or_(by_zero, minus_one), constant_of(b.type, 1), b)
    quotient = builder.select(minus_one, builder.neg(a), builder.sdiv(a, safe))
    return builder.select(by_zero, zero, quotient), by_zero


def _divide_by_floats(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """Vectors of up to 32 bits: a float with enough digits gives the exact quotient.

    a / b that is no integer k differs from it by 1 / |b| or more, and k * |b| < 2**(p + 1) for
    p-bit operands, so a significand of more than p + 1 digits never rounds it to k. MIN / -1
    is 2**(p-1), which wraps to MIN through the wider integer.
    """
    builder = site.builder
    width = width_of(a)
    wide_float = vector_of(FLOAT if dtype.bits <= 16 else DOUBLE, width)
    wide_int = vector_of(ir.IntType(32 if dtype.bits <= 16 else 64), width)
    if dtype.kind == "i":
        x, y = builder.sitofp(a, wide_float), builder.sitofp(b, wide_float)
    else:
        x, y = builder.uitofp(a, wide_float), builder.uitofp(b, wide_float)
    zero, one = constant_of(wide_float, 0.0), constant_of(wide_float, 1.0)
    safe = builder.select(builder.fcmp_ordered("==", y, zero), one, y)
    return builder.trunc(builder.fptosi(builder.fdiv(x, safe), wide_int), a.type)


def _quot(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    return _divide(site, dtype, a, b)[0]


def _rem(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    builder = site.builder
    quotient, by_zero = _divide(site, dtype, a, b)
    remainder = builder.sub(a, builder.mul(b, quotient))
    return builder.select(by_zero, constant_of(a.type, 0), remainder)


def _count_fits(site: Site, dtype: DType, count: ir.Value) -> ir.Value:
    return site.builder.icmp_unsigned("<", count, constant_of(count.type, dtype.bits))


def _shl(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    builder = site.builder
    if _is_small_count(b, dtype):
        return builder.shl(a, b)
    fits = _count_fits(site, dtype, b)
    zero = constant_of(a.type, 0)
    return builder.select(fits, builder.shl(a, builder.select(fits, b, zero)), zero)


def _shr(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    builder = site.builder
    shift = builder.ashr if dtype.kind == "i" else builder.lshr
    if _is_small_count(b, dtype):
        return shift(a, b)
    fits = _count_fits(site, dtype, b)
    if dtype.kind == "i":
        return shift(a, builder.select(fits, b, constant_of(b.type, dtype.bits - 1)))
    zero = constant_of(a.type, 0)
    return builder.select(fits, shift(a, builder.select(fits, b, zero)), zero)


def _is_small_count(count: ir.Value, dtype: DType) -> bool:
    constant = count.constant if isinstance(count, ir.Constant) else None
    while isinstance(constant, ir.Constant):
        constant = constant.constant
    return isinstance(constant, int) and 0 <= constant < dtype.bits


def _clz(site: Site, dtype: DType, a: ir.Value) -> ir.Value:
    return intrinsic(site.builder, "llvm.ctlz", a.type, [a, ir.Constant(I1, 0)], a.type)


def _popcount(site: Site, dtype: DType, a: ir.Value) -> ir.Value:
    return intrinsic(site.builder, "llvm.ctpop", a.type, [a], a.type)


def _mulhi(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    builder = site.builder
    if dtype.bits == 64 and width_of(a) > 1:
        return _mulhi_vector(site, dtype, a, b)
    wide = I128 if dtype.bits == 64 else vector_of(ir.IntType(2 * dtype.bits), width_of(a))
    extend = builder.sext if dtype.kind == "i" else builder.zext
    product = builder.mul(extend(a, wide), extend(b, wide))
    return builder.trunc(builder.lshr(product, constant_of(wide, dtype.bits)), a.type)


def _mulhi_vector(site: Site, dtype: DType, a: ir.Value, b: ir.Value) -> ir.Value:
    """64 x 64 -> high 64 by four 32-bit products; signed: correct the unsigned one."""
    builder = site.builder
    low, half = constant_of(a.type, 0xFFFFFFFF), constant_of(a.type, 32)
    a0, a1 = builder.and_(a, low), builder.lshr(a, half)
    b0, b1 = builder.and_(b, low), builder.lshr(b, half)
    first = builder.add(builder.mul(a1, b0), builder.lshr(builder.mul(a0, b0), half))
    second = builder.add(builder.mul(a0, b1), builder.and_(first, low))
    high = builder.add(builder.mul(a1, b1), builder.lshr(first, half))
    high = builder.add(high, builder.lshr(second, half))
    if dtype.kind == "u":
        return high
    top = constant_of(a.type, 63)
    for x, y in ((a, b), (b, a)):
        high = builder.sub(high, builder.and_(builder.ashr(x, top), y))
    return high


WORDS: dict[str, Emit] = {
    "add": _in_f32(_add),
    "sub": _in_f32(_by_kind("fsub", "sub")),
    "mul": _in_f32(_mul),
    "div": _in_f32(_builder("fdiv")),
    "quot": _quot,
    "rem": _rem,
    "neg": _neg,
    "fma": _fma,
    "scale": _in_f32(_scale),
    "sqrt": _in_f32(_float_intrinsic("llvm.sqrt")),
    "abs": _abs,
    "copysign": _copysign,
    "floor": _in_f32(_float_intrinsic("llvm.floor")),
    "ceil": _in_f32(_float_intrinsic("llvm.ceil")),
    "trunc": _in_f32(_float_intrinsic("llvm.trunc")),
    "rint": _in_f32(_float_intrinsic("llvm.rint")),
    "lt": _compare("<"),
    "le": _compare("<="),
    "eq": _compare("=="),
    "ne": _compare("!="),
    "and": _builder("and_"),
    "or": _builder("or_"),
    "xor": _builder("xor"),
    "not": lambda site, dtype, a: invert(site.builder, a),
    "shl": _shl,
    "shr": _shr,
    "clz": _clz,
    "popcount": _popcount,
    "mulhi": _mulhi,
}
