"""Statements of the native language to LLVM IR: one function body at a time.

Invariants: a local has one type, fixed by its annotation or by its first assignment; every path of
a function with a result ends in `return`.
Not here: expressions (`expressions`) and the module around functions (`unit`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir

from .expressions import Expressions, Unit
from .reader import Source, read_type
from .types import I64, Type, Void
from .values import Value, load_from, store_to, stored_type


class Statements(Expressions):
    """Translates the body of one native function."""

    def __init__(self, unit: Unit, source: Source, target: ir.Function) -> None:
        entry = target.append_basic_block("entry")
        super().__init__(unit, source.place, ir.IRBuilder(entry))
        self.source = source
        self._loops: list[tuple[ir.Block, ir.Block]] = []  # where `continue` and `break` go
        self._forms: dict[type[ast.stmt], Callable[[Any], None]] = {
            ast.Assign: self._assign,
            ast.AnnAssign: self._declare,
            ast.AugAssign: self._augment,
            ast.Expr: self._effect,
            ast.If: self._if,
            ast.While: self._while,
            ast.For: self._for,
            ast.Return: self._return,
            ast.Break: self._break,
            ast.Continue: self._continue,
            ast.Pass: lambda node: None,
        }
        for (name, kind), argument in zip(source.parameters, target.args, strict=True):
            self._new_local(name, kind)
            store_to(self.builder, self.locals[name][1], Value(kind, argument))

    def translate(self) -> None:
        """Translate the whole body."""
        self._block(self.source.tree.body)
        if self.builder.block.is_terminated:
            return
        if not isinstance(self.source.result, Void):
            raise self.error(self.source.tree, f"{self.source.tree.name} can end without `return`")
        self.builder.ret_void()

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                raise self.error(statement, "this statement is never reached")
            form = self._forms.get(type(statement))
            if form is None:
                kind = type(statement).__name__
                raise self.error(statement, f"{kind} is not part of the native language")
            form(statement)

    def _new_local(self, name: str, kind: Type) -> ir.Value:
        with self.builder.goto_entry_block():
            slot = self.builder.alloca(stored_type(kind), name=name)
        self.locals[name] = (kind, slot)
        return slot

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) != 1:
            raise self.error(node, "assign to one place at a time")
        self._put(node.targets[0], node.value, node)

    def _put(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        if not isinstance(target, ast.Name):
            kind, address = self.location(target)
            store_to(self.builder, address, self.value(value, kind))
            return
        if target.id in self.locals:
            kind, slot = self.locals[target.id]
            store_to(self.builder, slot, self.value(value, kind))
            return
        first = self.value(value)
        if isinstance(first.type, Void):
            raise self.error(node, "this call returns nothing to assign")
        store_to(self.builder, self._new_local(target.id, first.type), first)

    def _declare(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name) or node.value is None:
            raise self.error(node, "declare one local with its first value")
        kind = read_type(node.annotation, self.place)
        if node.target.id in self.locals:
            if self.locals[node.target.id][0] != kind:
                raise self.error(node, f"{node.target.id!r} already has another type")
        else:
            self._new_local(node.target.id, kind)
        store_to(self.builder, self.locals[node.target.id][1], self.value(node.value, kind))

    def _augment(self, node: ast.AugAssign) -> None:
        """`place op= value`; naming the place twice is safe because places have no effects."""
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        combined = ast.BinOp(read, node.op, node.value)
        for part in ast.walk(combined):
            ast.copy_location(part, node)
        self._put(node.target, combined, node)

    def _effect(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return
        if not isinstance(node.value, ast.Call):
            raise self.error(node, "an expression alone must be a call")
        self.operand(node.value)

    def _if(self, node: ast.If) -> None:
        build = self.builder
        then, after = build.append_basic_block("then"), build.append_basic_block("after")
        other = build.append_basic_block("else") if node.orelse else after
        build.cbranch(self.condition(node.test), then, other)
        falls = not node.orelse
        arms = [(then, node.body)] + ([(other, node.orelse)] if node.orelse else [])
        for block, body in arms:
            build.position_at_end(block)
            self._block(body)
            if not build.block.is_terminated:
                build.branch(after)
                falls = True
        build.position_at_end(after)
        if not falls:
            build.unreachable()

    def _while(self, node: ast.While) -> None:
        if node.orelse:
            raise self.error(node, "`else` on a loop is not part of the native language")
        build = self.builder
        test, body, after = (build.append_basic_block(name) for name in ("test", "body", "after"))
        build.branch(test)
        build.position_at_end(test)
        forever = isinstance(node.test, ast.Constant) and node.test.value is True
        if forever:
            build.branch(body)
        else:
            build.cbranch(self.condition(node.test), body, after)
        self._loop_body(node.body, body, test, after)
        build.position_at_end(after)
        if forever and not any(isinstance(part, ast.Break) for part in ast.walk(node)):
            build.unreachable()

    def _loop_body(
        self, statements: list[ast.stmt], body: ir.Block, again: ir.Block, after: ir.Block
    ) -> None:
        self.builder.position_at_end(body)
        self._loops.append((again, after))
        self._block(statements)
        self._loops.pop()
        if not self.builder.block.is_terminated:
            self.builder.branch(again)

    def _for(self, node: ast.For) -> None:
        call = node.iter
        if (
            not isinstance(call, ast.Call)
            or ast.unparse(call.func) != "range"
            or not isinstance(node.target, ast.Name)
            or node.orelse
            or len(call.args) not in (1, 2)
            or call.keywords
        ):
            raise self.error(node, "a `for` runs over range(stop) or range(start, stop)")
        bounds = [self.value(argument, I64) for argument in call.args]
        first = bounds[0] if len(bounds) == 2 else Value(I64, ir.Constant(ir.IntType(64), 0))
        slot = self.locals.get(node.target.id, (I64, None))[1]
        if slot is None:
            slot = self._new_local(node.target.id, I64)
        self._count(node, slot, first, bounds[-1])

    def _count(self, node: ast.For, slot: ir.Value, first: Value, stop: Value) -> None:
        build = self.builder
        test, body, step, after = (
            build.append_basic_block(name) for name in ("test", "body", "step", "after")
        )
        with build.goto_entry_block():
            counter = build.alloca(ir.IntType(64))
        build.store(first.code, counter)
        build.branch(test)
        build.position_at_end(test)
        index = load_from(build, counter, I64)
        build.cbranch(build.icmp_signed("<", index.code, stop.code), body, after)
        build.position_at_end(body)
        store_to(build, slot, index)
        self._loop_body(node.body, body, step, after)
        build.position_at_end(step)
        build.store(build.add(index.code, ir.Constant(ir.IntType(64), 1)), counter)
        build.branch(test)
        build.position_at_end(after)

    def _return(self, node: ast.Return) -> None:
        if isinstance(self.source.result, Void):
            if node.value is not None:
                raise self.error(node, f"{self.source.tree.name} returns nothing")
            self.builder.ret_void()
            return
        if node.value is None:
            raise self.error(node, f"{self.source.tree.name} must return {self.source.result}")
        self.builder.ret(self.value(node.value, self.source.result).code)

    def _break(self, node: ast.Break) -> None:
        self.builder.branch(self._loops[-1][1])

    def _continue(self, node: ast.Continue) -> None:
        self.builder.branch(self._loops[-1][0])
