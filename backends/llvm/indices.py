"""Index expressions on LLVM values: sizes over axes and dims, at the level where they change.

Invariants: a size is computed in the top of the innermost level whose axis it names. Division
by a size of 0 gives 0 and never traps: hoisted expressions run before the loops that an extent
of 0 would skip.
Not here: addresses of buffers (memory.py).
"""

from __future__ import annotations

from typing import cast

from llvmlite import ir

from ...compiler.dims import Dim, Size
from .frame import Frame, constant
from .types import I64, constant_of, intrinsic, splat, vector_of, width_of

Term = tuple[tuple[object, ...], int]


def level_of(frame: Frame, size: Size) -> int:
    """The innermost level that the value of `size` depends on."""
    if isinstance(size, int):
        return 0
    return max((frame.axes[s].level for s in size.symbols() if s in frame.axes), default=0)


def scalar_size(frame: Frame, size: Size) -> ir.Value:
    """The value (i64) of a size; the vector axis counts as its first lane."""
    if isinstance(size, int):
        return constant(size)
    level = level_of(frame, size)
    memo = frame.levels[level].memo
    found = memo.get(size)
    if found is None:
        with frame.at_level(level):
            found = _sum_of_terms(frame, size, 1)
        memo[size] = found
    return found


def lane_size(frame: Frame, size: Size) -> ir.Value:
    """The value of a size per lane: a vector where it depends on the vector axis."""
    axis = frame.lanes.axis
    if isinstance(size, int) or axis is None or axis not in size.symbols():
        return scalar_size(frame, size)
    return _sum_of_terms(frame, size, frame.lanes.width)


def iota(width: int) -> ir.Constant:
    """0, 1, 2, ... as i64 lanes."""
    if width == 1:
        return constant(0)
    typ = vector_of(I64, width)
    return ir.Constant(typ, [ir.Constant(I64, i) for i in range(width)])


def _sum_of_terms(frame: Frame, size: Dim, width: int) -> ir.Value:
    total: ir.Value | None = None
    rest = 0
    for factors, coefficient in size.terms:
        if not factors:
            rest = coefficient
            continue
        value = _product(frame, factors, coefficient, width)
        total = value if total is None else _both(frame, "add", total, value)
    assert total is not None
    return _both(frame, "add", total, constant(rest)) if rest else total


def _product(frame: Frame, factors: tuple[object, ...], coefficient: int, width: int) -> ir.Value:
    value: ir.Value | None = None
    for factor in factors:
        this = _factor(frame, factor, width)
        value = this if value is None else _both(frame, "mul", value, this)
    assert value is not None
    return value if coefficient == 1 else _both(frame, "mul", value, constant(coefficient))


def _both(frame: Frame, method: str, a: ir.Value, b: ir.Value) -> ir.Value:
    width = max(width_of(a), width_of(b))
    emit = getattr(frame.builder, method)
    return emit(splat(frame.builder, a, width), splat(frame.builder, b, width), flags=["nsw"])


def _factor(frame: Frame, factor: object, width: int) -> ir.Value:
    if isinstance(factor, str):
        return _symbol(frame, factor, width)
    operation, a, b = cast("tuple[str, Size, Size]", factor)
    value = lane_size if width > 1 else scalar_size
    x, y = value(frame, a), value(frame, b)
    lanes = max(width_of(x), width_of(y))
    x, y = splat(frame.builder, x, lanes), splat(frame.builder, y, lanes)
    if operation in ("max", "min"):
        return intrinsic(frame.builder, f"llvm.s{operation}", x.type, [x, y], x.type)
    return _floor(frame, operation, x, y, b)


def _symbol(frame: Frame, name: str, width: int) -> ir.Value:
    found = frame.axes.get(name)
    if found is None:
        return frame.dims[name]
    value = found.base
    if found.offset:
        value = frame.builder.add(value, constant(found.offset))
    if width > 1 and name == frame.lanes.axis:
        return frame.builder.add(splat(frame.builder, value, width), iota(width))
    return value


def _floor(frame: Frame, operation: str, x: ir.Value, y: ir.Value, divisor: Size) -> ir.Value:
    """Floor division or its remainder."""
    builder = frame.builder
    if isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) == 0:
        if operation == "%":
            return builder.and_(x, constant_of(x.type, divisor - 1))
        return builder.ashr(x, constant_of(x.type, divisor.bit_length() - 1))
    zero = constant_of(x.type, 0)
    if not isinstance(divisor, int):
        y = builder.select(builder.icmp_signed("==", y, zero), constant_of(y.type, 1), y)
    quotient = builder.sdiv(x, y)
    remainder = builder.sub(x, builder.mul(quotient, y))
    opposite = builder.icmp_signed("<", builder.xor(remainder, y), zero)
    fix = builder.and_(builder.icmp_signed("!=", remainder, zero), opposite)
    if operation == "%":
        return builder.add(remainder, builder.select(fix, y, zero))
    return builder.sub(quotient, builder.zext(fix, x.type))
