"""Fused multiply-add and scaling where the machine has none, and fused halves.

Invariants: one rounding. f32 and the halves are exact for every input (through f64, rounded to
odd). f64 is exact while the product and its error term are normal numbers, that is for products
between 2**-900 and 2**1020 and factors below 2**990; outside it is a * b + c.
Not here: machines with the instruction (words.py).
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ...compiler.types import DType
from .conversions import narrow_odd, narrow_to_half, wide_of_half
from .site import Site
from .types import DOUBLE, FLOAT, I64, constant_of, element_of, intrinsic, vector_of, width_of


def fused_multiply_add(site: Site, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a * b + c rounded once, for f32 and f64."""
    if element_of(a.type) == FLOAT:
        odd = _multiply_add_odd(site, *(_to_double(site, x) for x in (a, b, c)))
        return site.builder.fptrunc(odd, a.type)
    return _multiply_add_double(site, a, b, c)


def fused_multiply_add_half(
    site: Site, dtype: DType, a: ir.Value, b: ir.Value, c: ir.Value
) -> ir.Value:
    """a * b + c rounded once, for f16 and bf16."""
    wide = (_to_double(site, wide_of_half(site, dtype, x)) for x in (a, b, c))
    odd = _multiply_add_odd(site, *wide)
    return narrow_to_half(site, dtype, narrow_odd(site, odd))


def _to_double(site: Site, a: ir.Value) -> ir.Value:
    return site.builder.fpext(a, vector_of(DOUBLE, width_of(a)))


def _multiply_add_odd(site: Site, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """a * b + c rounded to odd in f64, for factors whose product is exact."""
    product = site.builder.fmul(a, b)
    total, error = _two_sum(site, product, c)
    return _odd(site, total, error)


def _two_sum(site: Site, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    f = site.builder
    total = f.fadd(a, b)
    part = f.fsub(total, a)
    return total, f.fadd(f.fsub(a, f.fsub(total, part)), f.fsub(b, part))


def _odd(site: Site, total: ir.Value, error: ir.Value) -> ir.Value:
    """total + error rounded to odd, `total` being the nearest f64."""
    builder = site.builder
    bits = vector_of(I64, width_of(total))
    word, other = builder.bitcast(total, bits), builder.bitcast(error, bits)
    opposite = builder.icmp_signed("<", builder.xor(word, other), constant_of(bits, 0))
    cut = builder.or_(builder.sub(word, builder.zext(opposite, bits)), constant_of(bits, 1))
    inexact = builder.fcmp_ordered("!=", error, constant_of(error.type, 0.0))
    return builder.bitcast(builder.select(inexact, cut, word), total.type)


def _split(site: Site, a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """High 26 and low 27 digits (Veltkamp)."""
    f = site.builder
    scaled = f.fmul(a, constant_of(a.type, float(2**27 + 1)))
    high = f.fsub(scaled, f.fsub(scaled, a))
    return high, f.fsub(a, high)


def _two_product(site: Site, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    f = site.builder
    product = f.fmul(a, b)
    a1, a0 = _split(site, a)
    b1, b0 = _split(site, b)
    error = f.fsub(f.fmul(a1, b1), product)
    error = f.fadd(f.fadd(error, f.fmul(a1, b0)), f.fmul(a0, b1))
    return product, f.fadd(error, f.fmul(a0, b0))


def _multiply_add_double(site: Site, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Boldo and Melquiond 2008: exact sums, the last but one rounded to odd."""
    f = site.builder
    product, low = _two_product(site, a, b)
    upper, lower = _two_sum(site, c, low)
    total, rest = _two_sum(site, product, upper)
    fused = f.fadd(total, _odd(site, *_two_sum(site, rest, lower)))
    plain = f.fadd(product, c)
    magnitude: Callable[[ir.Value], ir.Value] = lambda x: intrinsic(
        f, "llvm.fabs", x.type, [x], x.type
    )
    below: Callable[[ir.Value, float], ir.Value] = lambda x, limit: f.fcmp_ordered(
        "<", magnitude(x), constant_of(x.type, limit)
    )
    safe = f.and_(below(a, 2.0**990), below(b, 2.0**990))
    safe = f.and_(safe, f.and_(below(product, 2.0**1020), below(c, 2.0**1020)))
    large = f.fcmp_ordered(">", magnitude(product), constant_of(a.type, 2.0**-900))
    return f.select(f.and_(safe, large), fused, plain)


def scale_in_steps(site: Site, a: ir.Value, exponent: ir.Value) -> ir.Value:
    """a * 2**exponent, rounded once: steps that stay normal, then one that rounds."""
    f = site.builder
    width = width_of(a)
    doubles, bits = vector_of(DOUBLE, width), vector_of(I64, width)
    single = element_of(a.type) == FLOAT
    y = f.fpext(a, doubles) if single else a
    wide = f.fpext(exponent, doubles) if single else exponent
    c: Callable[[int], ir.Value] = lambda value: constant_of(bits, value)
    limit = 300 if single else 2200
    n = f.fptosi(_clamp_float(site, wide, float(limit)), bits)
    if not single:
        for _ in range(2):
            large, small = f.icmp_signed(">", n, c(1023)), f.icmp_signed("<", n, c(-1022))
            power = f.select(small, constant_of(doubles, 2.0**-969), constant_of(doubles, 1.0))
            power = f.select(large, constant_of(doubles, 2.0**1023), power)
            step = f.select(large, c(1023), f.select(small, c(-969), c(0)))
            y, n = f.fmul(y, power), f.sub(n, step)
        n = _clamp(site, n, -1022, 1023)
    factor = f.bitcast(f.shl(f.add(n, c(1023)), c(52)), doubles)
    scaled = f.fmul(y, factor)
    return f.fptrunc(scaled, a.type) if single else scaled


def _clamp(site: Site, x: ir.Value, low: int, high: int) -> ir.Value:
    floor = intrinsic(site.builder, "llvm.smax", x.type, [x, constant_of(x.type, low)], x.type)
    high_ = constant_of(x.type, high)
    return intrinsic(site.builder, "llvm.smin", x.type, [floor, high_], x.type)


def _clamp_float(site: Site, x: ir.Value, limit: float) -> ir.Value:
    """x between -limit and limit; 0 for a NaN."""
    f = site.builder
    top, bottom = constant_of(x.type, limit), constant_of(x.type, -limit)
    below = f.select(f.fcmp_ordered("<", x, top), x, top)
    above = f.select(f.fcmp_ordered(">", below, bottom), below, bottom)
    return f.select(f.fcmp_ordered("ord", x, x), above, constant_of(x.type, 0.0))
