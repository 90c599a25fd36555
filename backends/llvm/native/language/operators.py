"""Arithmetic and comparisons of the native language, on operands already of one type.

Invariants: integers wrap at their width; `//` and `%` round toward minus infinity as Python's do.
Not here: which type two operands meet in (`values`).
"""

from __future__ import annotations

import ast

import llvmlite.ir as ir

from .reader import Place
from .types import Float, Int, Type

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "==",
    ast.IsNot: "!=",
}
_FLOATS: dict[type[ast.operator], str] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
}
_INTEGERS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.LShift: "shl",
}


def arithmetic(
    build: ir.IRBuilder, node: ast.BinOp, kind: Type, pair: list[ir.Value], place: Place
) -> ir.Value:
    """`left op right`."""
    if isinstance(kind, Float) and type(node.op) in _FLOATS:
        return getattr(build, _FLOATS[type(node.op)])(*pair)
    if isinstance(kind, Int):
        if type(node.op) in _INTEGERS:
            return getattr(build, _INTEGERS[type(node.op)])(*pair)
        if isinstance(node.op, ast.RShift):
            return (build.ashr if kind.signed else build.lshr)(*pair)
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            return _divide(build, isinstance(node.op, ast.FloorDiv), kind, *pair)
    raise place.error(node, f"{kind} has no operator {type(node.op).__name__}")


def _divide(
    build: ir.IRBuilder, quotient: bool, kind: Int, left: ir.Value, right: ir.Value
) -> ir.Value:
    """Quotient or rest. The machine rounds toward zero: correct it where signs differ."""
    if not kind.signed:
        return build.udiv(left, right) if quotient else build.urem(left, right)
    rest = build.srem(left, right)
    zero = ir.Constant(rest.type, 0)
    differs = build.icmp_signed("<", build.xor(rest, right), zero)
    off = build.and_(build.icmp_signed("!=", rest, zero), differs)
    if quotient:
        return build.sub(build.sdiv(left, right), build.zext(off, rest.type))
    return build.add(rest, build.select(off, right, zero))


def comparison(
    build: ir.IRBuilder, node: ast.Compare, kind: Type, pair: list[ir.Value], place: Place
) -> ir.Value:
    """`left op right`, a truth value; pointers compare as addresses."""
    symbol = _COMPARISONS.get(type(node.ops[0]))
    if symbol is None:
        raise place.error(node, f"no comparison {type(node.ops[0]).__name__}")
    if isinstance(kind, Float):
        if symbol == "!=":
            return build.fcmp_unordered(symbol, *pair)
        return build.fcmp_ordered(symbol, *pair)
    signed = isinstance(kind, Int) and kind.signed
    return (build.icmp_signed if signed else build.icmp_unsigned)(symbol, *pair)


def folded(node: ast.BinOp, left: int | float, right: int | float) -> int | float:
    """Arithmetic on literals, done by Python itself."""
    tree = ast.Expression(ast.BinOp(ast.Constant(left), node.op, ast.Constant(right)))
    value: int | float = eval(compile(ast.fix_missing_locations(tree), "<literal>", "eval"))
    return value
