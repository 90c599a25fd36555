"""Typed LLVM values and the conversions the language makes without being asked.

Invariants: an implicit conversion never loses a bit (widening, any pointer to `Raw`, a literal
that fits).
Not here: which values an expression makes (`expressions`).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

import llvmlite.ir as ir

from .reader import Place
from .types import (
    POINTERS,
    RAW,
    Bool,
    Float,
    FunctionPointer,
    InlineArray,
    Int,
    RawPointer,
    Reference,
    Type,
    Void,
)

POINTER = ir.PointerType()
BYTE = ir.IntType(8)
WORD = ir.IntType(64)
TRUTH = ir.IntType(1)


@dataclass(frozen=True)
class Value:
    """An LLVM value with its type in the language."""

    type: Type
    code: ir.Value


@dataclass(frozen=True)
class Literal:
    """A number known when translating, whose type the place it is used in decides."""

    number: int | float


Operand = Value | Literal


def llvm_type(kind: Type) -> ir.Type:
    """The LLVM type of values in registers."""
    if isinstance(kind, Int):
        return ir.IntType(kind.bits)
    if isinstance(kind, Float):
        return ir.DoubleType()
    if isinstance(kind, Bool):
        return TRUTH
    if isinstance(kind, Void):
        return ir.VoidType()
    return POINTER


def signature(parameters: tuple[Type, ...], result: Type) -> ir.FunctionType:
    """The LLVM type of a function."""
    return ir.FunctionType(llvm_type(result), [llvm_type(kind) for kind in parameters])


def converted(
    builder: ir.IRBuilder, operand: Operand, kind: Type, node: ast.AST, place: Place
) -> Value:
    """The operand as this type, if that loses nothing; else an error that says what to write."""
    if isinstance(operand, Literal):
        return constant(operand, kind, node, place)
    if operand.type == kind:
        return operand
    if isinstance(operand.type, Int) and isinstance(kind, Int) and _holds(kind, operand.type):
        widen = builder.sext if operand.type.signed else builder.zext
        return Value(kind, widen(operand.code, llvm_type(kind)))
    if isinstance(kind, RawPointer) and isinstance(operand.type, POINTERS):
        return Value(RAW, operand.code)
    if isinstance(kind, Reference) and isinstance(operand.type, Reference):
        if issubclass(operand.type.struct, kind.struct):
            return Value(kind, operand.code)
    raise place.error(node, f"expected {kind}, got {operand.type}; convert it explicitly")


def constant(literal: Literal, kind: Type, node: ast.AST, place: Place) -> Value:
    """A literal as a value of this type."""
    number = literal.number
    if isinstance(kind, Float):
        return Value(kind, ir.Constant(llvm_type(kind), float(number)))
    if isinstance(kind, Int) and isinstance(number, int):
        if kind(number) != number:
            raise place.error(node, f"{number} does not fit {kind}")
        return Value(kind, ir.Constant(llvm_type(kind), number))
    raise place.error(node, f"expected {kind}, got the number {number}")


def common_type(left: Type, right: Type, node: ast.AST, place: Place) -> Type:
    """The type two operands meet in."""
    if left == right:
        return left
    if isinstance(left, Int) and isinstance(right, Int):
        if _holds(left, right):
            return left
        if _holds(right, left):
            return right
    raise place.error(node, f"{left} and {right} do not mix; convert one explicitly")


def number_cast(
    builder: ir.IRBuilder, value: Value, kind: Type, node: ast.AST, place: Place
) -> Value:
    """An explicit conversion between numbers: `u8(x)`, `f64(n)`, `i64(flag)`."""
    have, want = value.type, kind
    target = llvm_type(want)
    if isinstance(have, Bool) and isinstance(want, Int):
        return Value(want, builder.zext(value.code, target))
    if isinstance(have, Int) and isinstance(want, Int):
        if want.bits > have.bits:
            widen = builder.sext if have.signed else builder.zext
            return Value(want, widen(value.code, target))
        code = builder.trunc(value.code, target) if want.bits < have.bits else value.code
        return Value(want, code)
    if isinstance(have, Int) and isinstance(want, Float):
        convert = builder.sitofp if have.signed else builder.uitofp
        return Value(want, convert(value.code, target))
    if isinstance(have, Float) and isinstance(want, Int):
        convert = builder.fptosi if want.signed else builder.fptoui
        return Value(want, convert(value.code, target))
    if have == want:
        return value
    raise place.error(node, f"{have} does not convert to {want}")


def stored_type(kind: Type) -> ir.Type:
    """The LLVM type of values in memory: truth takes a byte, as in C."""
    return BYTE if isinstance(kind, Bool) else llvm_type(kind)


def load_from(builder: ir.IRBuilder, address: ir.Value, kind: Type) -> Value:
    """Read a value of this type from memory."""
    if isinstance(kind, InlineArray):
        raise AssertionError("an inline array is read through its address")
    code = builder.load(address, typ=stored_type(kind))
    if isinstance(kind, Bool):
        code = builder.trunc(code, TRUTH)
    return Value(kind, code)


def store_to(builder: ir.IRBuilder, address: ir.Value, value: Value) -> None:
    """Write a value to memory."""
    code = value.code
    if isinstance(value.type, Bool):
        code = builder.zext(code, BYTE)
    builder.store(code, address)


def is_pointer(kind: Type) -> bool:
    """Whether values of this type are addresses."""
    return isinstance(kind, POINTERS)


def callee_type(kind: FunctionPointer) -> ir.FunctionType:
    """The LLVM function type behind a function pointer."""
    return signature(kind.parameters, kind.result)


def _holds(wide: Int, narrow: Int) -> bool:
    """Whether every value of the narrow type is one of the wide type."""
    if wide.signed == narrow.signed:
        return wide.bits >= narrow.bits
    return wide.signed and wide.bits > narrow.bits
