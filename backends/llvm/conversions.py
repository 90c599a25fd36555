"""Numeric conversions between element types, and the two half formats by their bits.

Invariants: float to integer never yields an undefined value: what does not fit gives what
`compiler/ops/scalar.py` states. A conversion to f16 rounds once.
Not here: words on one dtype (words.py).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ...compiler.types import BF16, BOOL, F16, F32, F64, DType
from ...compiler.types import I64 as INDEX
from .site import Site
from .types import (
    DOUBLE,
    FLOAT,
    HALF,
    I16,
    I32,
    I64,
    constant_of,
    intrinsic,
    register_type,
    vector_of,
    width_of,
)  # fmt: skip
from .x86 import truncating_conversion

HALVES = (F16, BF16)


def convert(site: Site, source: DType, target: DType, a: ir.Value) -> ir.Value:
    """`a` of dtype `source` as `target` (not bool: that is a comparison)."""
    if source is target:
        return a
    if source in HALVES:
        return convert(site, F32, target, wide_of_half(site, source, a))
    if target in HALVES:
        return _to_half(site, source, target, a)
    typ = register_type(target, width_of(a))
    if source.is_float and target.is_float:
        narrower = target.bits < source.bits
        return site.builder.fptrunc(a, typ) if narrower else site.builder.fpext(a, typ)
    if source.is_float:
        return _float_to_integer(site, source, target, a)
    if target.is_float:
        signed = source.kind == "i"
        return site.builder.sitofp(a, typ) if signed else site.builder.uitofp(a, typ)
    return _integer_to_integer(site, source, target, a)


def wide_of_half(site: Site, dtype: DType, a: ir.Value) -> ir.Value:
    """f16 or bf16 bits as f32, exactly."""
    builder = site.builder
    width = width_of(a)
    bits, floats = vector_of(I32, width), vector_of(FLOAT, width)
    if dtype is BF16:
        return builder.bitcast(builder.shl(builder.zext(a, bits), constant_of(bits, 16)), floats)
    if site.machine.has_half_conversion:
        return builder.fpext(builder.bitcast(a, vector_of(HALF, width)), floats)
    # The magnitude bits, read as f32, are the value times 2**-112; infinities and NaNs need
    # the exponent filled.
    word = builder.zext(a, bits)
    magnitude = builder.shl(builder.and_(word, constant_of(bits, 0x7FFF)), constant_of(bits, 13))
    scaled = builder.fmul(builder.bitcast(magnitude, floats), constant_of(floats, 2.0**112))
    special = builder.icmp_unsigned(">=", magnitude, constant_of(bits, 0x7C00 << 13))
    filled = builder.or_(magnitude, constant_of(bits, 0x7F800000))
    value = builder.select(special, filled, builder.bitcast(scaled, bits))
    sign = builder.shl(builder.and_(word, constant_of(bits, 0x8000)), constant_of(bits, 16))
    return builder.bitcast(builder.or_(value, sign), floats)


def narrow_to_half(site: Site, dtype: DType, a: ir.Value) -> ir.Value:
    """f32 rounded to nearest even as f16 or bf16 bits."""
    builder = site.builder
    width = width_of(a)
    if dtype is BF16:
        return _narrow_to_bf16(site, a)
    if site.machine.has_half_conversion:
        return builder.bitcast(builder.fptrunc(a, vector_of(HALF, width)), vector_of(I16, width))
    return _narrow_to_f16(site, a)


def narrow_odd(site: Site, a: ir.Value) -> ir.Value:
    """f64 rounded to odd as f32: a later rounding to at most 22 digits is as if from f64."""
    builder = site.builder
    floats, doubles = vector_of(FLOAT, width_of(a)), vector_of(DOUBLE, width_of(a))
    bits = vector_of(I32, width_of(a))
    near = builder.fptrunc(a, floats)
    back = builder.fpext(near, doubles)
    fabs: Callable[[ir.Value], ir.Value] = lambda x: intrinsic(
        builder, "llvm.fabs", doubles, [x], doubles
    )
    beyond = builder.fcmp_ordered(">", fabs(back), fabs(a))
    inexact = builder.fcmp_ordered("!=", back, a)
    word = builder.bitcast(near, bits)
    cut = builder.sub(word, builder.zext(beyond, bits))
    odd = builder.or_(cut, constant_of(bits, 1))
    return builder.bitcast(builder.select(inexact, odd, word), floats)


def _to_half(site: Site, source: DType, target: DType, a: ir.Value) -> ir.Value:
    if source is F64 and target is F16:
        return narrow_to_half(site, target, narrow_odd(site, a))
    return narrow_to_half(site, target, convert(site, source, F32, a))


def _narrow_to_bf16(site: Site, a: ir.Value) -> ir.Value:
    builder = site.builder
    bits = vector_of(I32, width_of(a))
    word = builder.bitcast(a, bits)
    high = builder.lshr(word, constant_of(bits, 16))
    odd = builder.and_(high, constant_of(bits, 1))
    rounded = builder.add(builder.add(word, constant_of(bits, 0x7FFF)), odd)
    quiet = builder.or_(word, constant_of(bits, 0x400000))
    chosen = builder.select(builder.fcmp_unordered("uno", a, a), quiet, rounded)
    return builder.trunc(builder.lshr(chosen, constant_of(bits, 16)), vector_of(I16, width_of(a)))


def _narrow_to_f16(site: Site, a: ir.Value) -> ir.Value:
    builder = site.builder
    width = width_of(a)
    bits, floats = vector_of(I32, width), vector_of(FLOAT, width)
    c: Callable[[int], ir.Value] = lambda value: constant_of(bits, value)
    word = builder.bitcast(a, bits)
    magnitude = builder.and_(word, c(0x7FFFFFFF))
    # Subnormal results: adding 0.5 shifts the digits to their place and rounds them.
    shifted = builder.fadd(builder.bitcast(magnitude, floats), constant_of(floats, 0.5))
    small = builder.sub(builder.bitcast(shifted, bits), c(126 << 23))
    odd = builder.and_(builder.lshr(magnitude, c(13)), c(1))
    rounded = builder.add(builder.add(magnitude, odd), c(0xFFF - (112 << 23)))
    normal = builder.lshr(rounded, c(13))
    finite = builder.select(builder.icmp_unsigned("<", magnitude, c(113 << 23)), small, normal)
    is_nan = builder.icmp_unsigned(">", magnitude, c(0x7F800000))
    special = builder.select(is_nan, c(0x7E00), c(0x7C00))
    large = builder.icmp_unsigned(">=", magnitude, c(143 << 23))
    result = builder.select(large, special, finite)
    sign = builder.and_(builder.lshr(word, c(16)), c(0x8000))
    return builder.trunc(builder.or_(result, sign), vector_of(I16, width))


def _integer_to_integer(site: Site, source: DType, target: DType, a: ir.Value) -> ir.Value:
    typ = register_type(target, width_of(a))
    if target.bits < source.bits:
        return site.builder.trunc(a, typ)
    if target.bits == source.bits:
        return a
    return site.builder.sext(a, typ) if source.kind == "i" else site.builder.zext(a, typ)


def _float_to_integer(site: Site, source: DType, target: DType, a: ir.Value) -> ir.Value:
    builder = site.builder
    if target.bits < 32:
        wide = _float_to_signed(site, a, 32)
        return builder.trunc(wide, register_type(target, width_of(a)))
    if target.kind == "i":
        return _float_to_signed(site, a, target.bits)
    if target.bits < 64:
        wide = _float_to_signed(site, a, 64)
        return builder.trunc(wide, register_type(target, width_of(a)))
    limit = constant_of(a.type, 2.0**63)
    high = builder.fcmp_ordered(">=", a, limit)
    low = _float_to_signed(site, builder.select(high, builder.fsub(a, limit), a), 64)
    flipped = builder.xor(low, constant_of(low.type, 1 << 63))
    return builder.select(high, flipped, low)


def _float_to_signed(site: Site, a: ir.Value, bits: int) -> ir.Value:
    """Truncation to 32 or 64 bits; NaN and what does not fit give the minimum."""
    builder = site.builder
    typ = vector_of(ir.IntType(bits), width_of(a))
    minimum = constant_of(typ, -(1 << (bits - 1)))
    direct = truncating_conversion(site, a, ir.IntType(bits))
    if direct is not None:
        return direct
    # The minimum itself does not pass the test and gets the right value all the same.
    fits = _magnitude_below(site, a, float(1 << (bits - 1)))
    safe = builder.select(fits, a, constant_of(a.type, 0.0))
    return builder.select(fits, builder.fptosi(safe, typ), minimum)


def _magnitude_below(site: Site, a: ir.Value, limit: float) -> ir.Value:
    magnitude = intrinsic(site.builder, "llvm.fabs", a.type, [a], a.type)
    return site.builder.fcmp_ordered("<", magnitude, constant_of(a.type, limit))


def to_index(site: Site, dtype: DType, a: ir.Value) -> ir.Value:
    """An integer of any type as i64, the type of all index arithmetic."""
    if dtype is BOOL:
        return site.builder.zext(a, vector_of(I64, width_of(a)))
    return _integer_to_integer(site, dtype, INDEX, a)
