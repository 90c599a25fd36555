"""Operators and expressions that choose, written as calls of hooks.

    a if t else b   ->   choose(t, lambda: a, lambda: b)
    a and b         ->   both(a, lambda: b)
    a + b           ->   Add(a, b)

Invariants: operands are evaluated in Python's order, and as often; an expression that would mean
something else in a lambda stays where it is.
Not here: statements (flow.py), names, calls, attributes and subscripts (rewrite.py).
"""

from __future__ import annotations

import ast
from typing import Any

from .calls_of_hooks import call, constant, moved_marker
from .jumps import placed
from .scopes import is_expression_movable


class ExpressionRewriter(ast.NodeTransformer):
    """Rewrites operators."""

    @property
    def around(self) -> object:
        """The function we are in, None where its blocks stay where they are."""
        raise NotImplementedError

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        moves = self.around is not None and is_expression_movable(node.body, node.orelse)
        node.test = self.test(node.test)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        if not moves:
            return node
        arms = [_later(node.body), _later(node.orelse)]
        return call("choose", [node.test, *arms], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        moves = self.around is not None and is_expression_movable(*node.values[1:])
        self.generic_visit(node)
        return self._joined(node) if moves else node

    def _joined(self, node: ast.BoolOp) -> Any:
        hook = "both" if isinstance(node.op, ast.And) else "either"
        first, *others = node.values
        return call(hook, [first, *[_later(value) for value in others]], node)

    def test(self, node: ast.expr) -> Any:
        """An expression of which the truth alone is asked: so of those that it joins."""
        if isinstance(node, ast.BoolOp) and self.around is not None:
            node.values = [call("asked", [self.test(value)], value) for value in node.values]
            return self._joined(node) if is_expression_movable(*node.values[1:]) else node
        return self.visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.Not):
            self.generic_visit(node)
            return call(_operator(node.op), [node.operand], node)
        node.operand = self.test(node.operand)
        return node if self.around is None else call("negated", [node.operand], node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return call(_operator(node.op), [node.left, node.right], node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        chained = len(node.ops) > 1 and self.around is not None
        moves = chained and is_expression_movable(*node.comparators[1:])
        self.generic_visit(node)
        if len(node.ops) == 1 and not _is_identity(node):
            return call(_operator(node.ops[0]), [node.left, *node.comparators], node)
        if not moves:
            return node
        names = constant(tuple(_operator(op) for op in node.ops))
        first, second, *others = node.left, *node.comparators
        parts = [names, first, second, *[_later(value) for value in others]]
        return call("chained", parts, node)


def _operator(operator: ast.AST) -> str:
    """The name by which hooks know it."""
    return type(operator).__name__


def _is_identity(node: ast.Compare) -> bool:
    """Whether it asks for one object; of a bool, ``is True`` asks for its value."""
    other = node.comparators[0]
    of_bool = isinstance(other, ast.Constant) and type(other.value) is bool
    return isinstance(node.ops[0], ast.Is | ast.IsNot) and not of_bool


def _later(value: ast.expr) -> Any:
    """An expression that a hook evaluates if it is needed."""
    made = ast.Lambda(moved_marker().args, value)
    return placed(made, value)
