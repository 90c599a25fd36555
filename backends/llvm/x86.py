"""Instructions of AVX-512 that say exactly what a word means, where generic code needs several.

Each works on one full register; other widths are cut or padded to it.
Invariants: a function here returns None where the machine or width does not allow it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from .site import Site
from .types import DOUBLE, FLOAT, I32, I64, constant_of, element_of, intrinsic, width_of

_CURRENT_ROUNDING = 4
_REGISTER = 512


def truncating_conversion(site: Site, a: ir.Value, element: ir.IntType) -> ir.Value | None:
    """Float to i32 or i64; what does not fit gives the minimum, as the hardware does."""
    if not site.machine.has_avx512 or not site.machine.is_x86 or width_of(a) == 1:
        return None
    names = {
        (FLOAT, 32): "cvttps2dq", (DOUBLE, 32): "cvttpd2dq",
        (FLOAT, 64): "cvttps2qq", (DOUBLE, 64): "cvttpd2qq",
    }  # fmt: skip
    name = f"llvm.x86.avx512.mask.{names[element_of(a.type), element.width]}.512"
    lanes = _REGISTER // max(32 if element_of(a.type) == FLOAT else 64, element.width)
    result = ir.VectorType(element, lanes)

    def emit(part: ir.Value) -> ir.Value:
        return _masked(site, name, result, [part], lanes)

    return in_registers(site.builder, [a], lanes, emit)


def scale_by_power(site: Site, a: ir.Value, exponent: ir.Value) -> ir.Value | None:
    """a * 2**exponent, rounded once."""
    if not site.machine.has_avx512 or not site.machine.is_x86 or width_of(a) == 1:
        return None
    single = element_of(a.type) == FLOAT
    lanes = 16 if single else 8
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if single else 'pd'}.512"
    result = ir.VectorType(element_of(a.type), lanes)

    def emit(x: ir.Value, y: ir.Value) -> ir.Value:
        return _masked(site, name, result, [x, y], lanes)

    return in_registers(site.builder, [a, exponent], lanes, emit)


def _masked(site: Site, name: str, result: ir.Type, args: list[ir.Value], lanes: int) -> ir.Value:
    zero = 0 if element_of(result) in (I32, I64) else 0.0
    every = ir.Constant(ir.IntType(lanes), (1 << lanes) - 1)
    rounding = ir.Constant(I32, _CURRENT_ROUNDING)
    return intrinsic(
        site.builder, name, result, [*args, constant_of(result, zero), every, rounding]
    )


def in_registers(
    builder: ir.IRBuilder,
    args: Sequence[ir.Value],
    lanes: int,
    emit: Callable[..., ir.Value],
) -> ir.Value:
    """Apply `emit` to vectors of `lanes` lanes cut from, or padded from, wider or narrower ones."""
    width = width_of(args[0])
    if width == lanes:
        return emit(*args)
    if width < lanes:
        padded = [_take(builder, a, 0, lanes, width) for a in args]
        return _take(builder, emit(*padded), 0, width, lanes)
    pieces = [
        emit(*[_take(builder, a, at, lanes, width) for a in args]) for at in range(0, width, lanes)
    ]
    while len(pieces) > 1:
        pieces = [_join(builder, *pieces[i : i + 2]) for i in range(0, len(pieces), 2)]
    return pieces[0]


def _take(builder: ir.IRBuilder, a: ir.Value, start: int, count: int, width: int) -> ir.Value:
    """Lanes start .. start + count; those beyond the vector repeat its last."""
    order = [min(start + i, width - 1) for i in range(count)]
    mask = ir.Constant(ir.VectorType(I32, count), [ir.Constant(I32, i) for i in order])
    return builder.shuffle_vector(a, a, mask)


def _join(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    count = 2 * width_of(a)
    mask = ir.Constant(ir.VectorType(I32, count), [ir.Constant(I32, i) for i in range(count)])
    return builder.shuffle_vector(a, b, mask)
