"""Expressions of the native language to LLVM IR.

`and`, `or` and conditional expressions evaluate only what they must.

Invariants: conditions are `bool`, never a number or a pointer; a pointer is indexed and moved by
elements.
Not here: statements (`statements`) and the emitters of intrinsics (`lowering`).
"""

from __future__ import annotations

import ast
import enum
import inspect
from collections.abc import Callable
from typing import Any, Protocol

import llvmlite.ir as ir

from .operators import arithmetic, comparison, folded
from .reader import LanguageError, Place, layout_of, read_type
from .types import (
    BOOL,
    F64,
    I64,
    Bool,
    Float,
    FunctionPointer,
    InlineArray,
    Int,
    Pointer,
    Reference,
    Type,
    size_of,
)
from .values import (
    BYTE,
    TRUTH,
    WORD,
    Literal,
    Operand,
    Value,
    callee_type,
    common_type,
    constant,
    converted,
    is_pointer,
    load_from,
    number_cast,
)


class Unit(Protocol):
    """What expressions need of the module being built."""

    def declare(self, function: Callable[..., Any]) -> tuple[ir.Function, FunctionPointer]:
        """The LLVM function of a native function, translated sooner or later."""

    def address(self, function: Callable[..., Any]) -> tuple[ir.Function, FunctionPointer]:
        """The same, as a value to keep or pass on."""

    def emitter(self, function: object) -> Emitter | None:
        """The emitter of an intrinsic."""


Emitter = Callable[["Expressions", ast.Call], Value]


class Expressions:
    """Translates expressions of one function at the builder's position."""

    def __init__(self, unit: Unit, place: Place, builder: ir.IRBuilder) -> None:
        self.unit = unit
        self.place = place
        self.builder = builder
        self.locals: dict[str, tuple[Type, ir.Value]] = {}
        self._rules: dict[type[ast.expr], Callable[[Any], Operand]] = {
            ast.Constant: self._constant,
            ast.Name: self._name,
            ast.Attribute: self._attribute,
            ast.Subscript: self._subscript,
            ast.Call: self._call,
            ast.BinOp: self._binary,
            ast.UnaryOp: self._unary,
            ast.Compare: self._compare,
            ast.BoolOp: self._bool_op,
            ast.IfExp: self._choice,
        }

    def error(self, node: ast.AST, message: str) -> LanguageError:
        """A complaint about this node, with its file and line."""
        return self.place.error(node, message)

    def operand(self, node: ast.expr) -> Operand:
        """Translate an expression; a bare number stays a literal."""
        rule = self._rules.get(type(node))
        if rule is None:
            raise self.error(node, f"{type(node).__name__} is not part of the native language")
        return rule(node)

    def value(self, node: ast.expr, kind: Type | None = None) -> Value:
        """Translate an expression to a value, of this type if one is asked for."""
        operand = self.operand(node)
        if kind is not None:
            return converted(self.builder, operand, kind, node, self.place)
        if isinstance(operand, Literal):
            own = F64 if isinstance(operand.number, float) else I64
            return constant(operand, own, node, self.place)
        return operand

    def condition(self, node: ast.expr) -> ir.Value:
        """Translate a condition."""
        value = self.value(node)
        if not isinstance(value.type, Bool):
            raise self.error(node, f"a condition must be bool, got {value.type}")
        return value.code

    def location(self, node: ast.expr) -> tuple[Type, ir.Value]:
        """Type and address of something that can be assigned: a field or an element."""
        if isinstance(node, ast.Attribute):
            return self._field(node)
        if isinstance(node, ast.Subscript):
            return self._element(node)
        raise self.error(node, f"{ast.unparse(node)!r} has no address")

    def type_argument(self, node: ast.expr) -> Type:
        """The type named by an argument of an intrinsic or a conversion."""
        return read_type(node, self.place)

    def moved(self, address: ir.Value, index: ir.Value, size: int) -> ir.Value:
        """An address so many elements further."""
        step = self.builder.mul(index, ir.Constant(WORD, size)) if size != 1 else index
        return self.builder.gep(address, [step], source_etype=BYTE)

    # -- names and places

    def _constant(self, node: ast.Constant) -> Operand:
        if isinstance(node.value, bool):
            return Value(BOOL, ir.Constant(TRUTH, int(node.value)))
        if isinstance(node.value, int | float):
            return Literal(node.value)
        raise self.error(node, f"{node.value!r} is not a number")

    def _name(self, node: ast.Name) -> Operand:
        if node.id in self.locals:
            kind, slot = self.locals[node.id]
            return load_from(self.builder, slot, kind)
        return self._global(node)

    def _global(self, node: ast.expr) -> Operand:
        found = self.place.constant(node)
        if isinstance(found, bool):
            return Value(BOOL, ir.Constant(TRUTH, int(found)))
        if isinstance(found, enum.IntEnum):
            return Literal(int(found))
        if isinstance(found, int | float):
            return Literal(found)
        raise self.error(node, f"{ast.unparse(node)!r} is not a constant number")

    def _attribute(self, node: ast.Attribute) -> Operand:
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self.locals:
            return self._global(node)
        kind, address = self._field(node)
        if isinstance(kind, InlineArray):
            return Value(Pointer(kind.element), address)
        return load_from(self.builder, address, kind)

    def _field(self, node: ast.Attribute) -> tuple[Type, ir.Value]:
        owner = self.value(node.value)
        if not isinstance(owner.type, Reference):
            raise self.error(node, f"{owner.type} has no fields")
        field = layout_of(owner.type.struct).fields.get(node.attr)
        if field is None:
            raise self.error(node, f"{owner.type} has no field {node.attr!r}")
        if field.offset == 0:
            return field.type, owner.code
        return field.type, self.moved(owner.code, ir.Constant(WORD, field.offset), 1)

    def _subscript(self, node: ast.Subscript) -> Operand:
        kind, address = self._element(node)
        return load_from(self.builder, address, kind)

    def _element(self, node: ast.Subscript) -> tuple[Type, ir.Value]:
        owner = self.value(node.value)
        if not isinstance(owner.type, Pointer):
            raise self.error(node, f"{owner.type} cannot be indexed")
        index = self.value(node.slice, I64)
        return owner.type.target, self.moved(owner.code, index.code, size_of(owner.type.target))

    # -- calls

    def _call(self, node: ast.Call) -> Operand:
        if node.keywords:
            raise self.error(node, "calls take positional arguments")
        called = node.func
        root = called
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self.locals:
            return self._call_global(node, self.place.constant(called))
        target = self.value(called)
        if not isinstance(target.type, FunctionPointer):
            raise self.error(node, f"{target.type} cannot be called")
        arguments = self._arguments(node, target.type)
        code = self.builder.call(_typed(target, target.type), arguments)
        return Value(target.type.result, code)

    def _call_global(self, node: ast.Call, found: Any) -> Operand:
        emitter = self.unit.emitter(found)
        if emitter is not None:
            return emitter(self, node)
        if isinstance(found, Int | Float):
            if len(node.args) != 1:
                raise self.error(node, f"{found} converts one number")
            operand = self.operand(node.args[0])
            if isinstance(operand, Literal):
                number = found(operand.number)  # type: ignore[arg-type]  # a float wraps to int
                return constant(Literal(number), found, node, self.place)
            return number_cast(self.builder, operand, found, node, self.place)
        if inspect.isfunction(found):
            function, kind = self.unit.declare(found)
            return Value(kind.result, self.builder.call(function, self._arguments(node, kind)))
        raise self.error(node, f"{ast.unparse(node.func)!r} cannot be called from native code")

    def _arguments(self, node: ast.Call, kind: FunctionPointer) -> list[ir.Value]:
        if len(node.args) != len(kind.parameters):
            raise self.error(
                node, f"expected {len(kind.parameters)} arguments, got {len(node.args)}"
            )
        return [
            self.value(argument, wanted).code
            for argument, wanted in zip(node.args, kind.parameters, strict=True)
        ]

    # -- operators

    def _binary(self, node: ast.BinOp) -> Operand:
        left, right = self.operand(node.left), self.operand(node.right)
        if isinstance(left, Value) and is_pointer(left.type):
            return self._move(node, left, right)
        if isinstance(left, Literal) and isinstance(right, Literal):
            return Literal(folded(node, left.number, right.number))
        kind, pair = self._pair(node, left, right)
        return Value(kind, arithmetic(self.builder, node, kind, pair, self.place))

    def _move(self, node: ast.BinOp, base: Value, count: Operand) -> Value:
        if not isinstance(base.type, Pointer) or not isinstance(node.op, ast.Add | ast.Sub):
            raise self.error(node, f"{base.type} moves only with `offset` or `at`")
        index = converted(self.builder, count, I64, node, self.place).code
        if isinstance(node.op, ast.Sub):
            index = self.builder.neg(index)
        return Value(base.type, self.moved(base.code, index, size_of(base.type.target)))

    def _meet(self, node: ast.AST, left: Operand, right: Operand) -> Type:
        if isinstance(left, Value) and isinstance(right, Value):
            return common_type(left.type, right.type, node, self.place)
        if isinstance(left, Value):
            return left.type
        return right.type if isinstance(right, Value) else I64

    def _pair(self, node: ast.AST, left: Operand, right: Operand) -> tuple[Type, list[ir.Value]]:
        """Both operands in the type they meet in."""
        kind = self._meet(node, left, right)
        sides = (left, right)
        return kind, [converted(self.builder, x, kind, node, self.place).code for x in sides]

    def _unary(self, node: ast.UnaryOp) -> Operand:
        if isinstance(node.op, ast.Not):
            return Value(BOOL, self.builder.not_(self.condition(node.operand)))
        operand = self.operand(node.operand)
        if isinstance(operand, Literal) and isinstance(node.op, ast.USub):
            return Literal(-operand.number)
        value = self.value(node.operand)
        if isinstance(value.type, Int):
            build = self.builder.neg if isinstance(node.op, ast.USub) else self.builder.not_
            return Value(value.type, build(value.code))
        if isinstance(value.type, Float) and isinstance(node.op, ast.USub):
            return Value(value.type, self.builder.fneg(value.code))
        raise self.error(node, f"{value.type} has no operator {type(node.op).__name__}")

    def _compare(self, node: ast.Compare) -> Value:
        if len(node.ops) != 1:
            raise self.error(node, "write chained comparisons as two, joined with `and`")
        kind, pair = self._pair(node, self.operand(node.left), self.operand(node.comparators[0]))
        return Value(BOOL, comparison(self.builder, node, kind, pair, self.place))

    def _bool_op(self, node: ast.BoolOp) -> Value:
        """Evaluate left to right and stop as soon as the answer is known."""
        stop = 1 if isinstance(node.op, ast.Or) else 0
        done = self.builder.append_basic_block("known")
        arrivals: list[tuple[ir.Value, ir.Block]] = []
        for term in node.values[:-1]:
            code = self.condition(term)
            arrivals.append((ir.Constant(TRUTH, stop), self.builder.block))
            further = self.builder.append_basic_block("further")
            self.builder.cbranch(code, *((done, further) if stop else (further, done)))
            self.builder.position_at_end(further)
        last = self.condition(node.values[-1])
        arrivals.append((last, self.builder.block))
        self.builder.branch(done)
        self.builder.position_at_end(done)
        phi = self.builder.phi(TRUTH)
        for code, block in arrivals:
            phi.add_incoming(code, block)
        return Value(BOOL, phi)

    def _choice(self, node: ast.IfExp) -> Value:
        """Evaluate one side only."""
        build = self.builder
        blocks = [build.append_basic_block(name) for name in ("chosen", "other", "joined")]
        build.cbranch(self.condition(node.test), blocks[0], blocks[1])
        sides: list[tuple[Operand, ir.Block]] = []
        for block, side in zip(blocks, (node.body, node.orelse), strict=False):
            build.position_at_end(block)
            operand = self.operand(side)
            sides.append((operand, build.block))
        kind = self._meet(node, sides[0][0], sides[1][0])
        arrivals = []
        for operand, block in sides:
            build.position_at_end(block)
            arrivals.append((converted(build, operand, kind, node, self.place).code, block))
            build.branch(blocks[2])
        build.position_at_end(blocks[2])
        phi = build.phi(arrivals[0][0].type)
        for code, block in arrivals:
            phi.add_incoming(code, block)
        return Value(kind, phi)


def _typed(target: Value, kind: FunctionPointer) -> ir.Value:
    """An opaque pointer as something llvmlite's builder can call."""
    return _Callee(target.code, callee_type(kind))


class _Callee:
    """A callee whose function type llvmlite cannot see in an opaque pointer."""

    def __init__(self, code: ir.Value, function_type: ir.FunctionType) -> None:
        self.code = code
        self.function_type = function_type
        self.type = code.type
        self.attributes = ir.values.FunctionAttributes()

    def get_reference(self) -> str:
        """The operand as it stands in the text of a call."""
        reference: str = self.code.get_reference()
        return reference
