"""The user's source with hooks written in: calls, attributes, subscripts, globals, iteration.

``f(x)`` becomes ``callee(f)(x)``, ``obj.a`` becomes ``attribute(obj, "a")``, and so on; the
hooks (hooks.py) behave as plain Python where nothing is traced. File name, lines and columns
stay those of the user's file. Hooks stand in the code as constants, so no name can clash.

Invariants: one rewritten code object for one original, made once.
Not here: what hooks do; statements and expressions that choose or repeat (flow.py).
"""

from __future__ import annotations

import ast
from typing import Any

from .calls_of_hooks import call, is_hook
from .flow import FlowRewriter, scope_of
from .scopes import FRAME_CALLS, bound_names, parameter_names


class Rewriter(FlowRewriter):
    """Rewrites one top-level statement."""

    def __init__(self) -> None:
        super().__init__()
        self._locals: list[set[str]] = []
        self._shared: list[set[str]] = []
        self._inside_class = False

    # -- scopes

    def visit_FunctionDef(self, node: Any) -> Any:
        return self._scope(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self._scope(node, [node.body])

    def _scope(self, node: Any, body: list[Any]) -> Any:
        if not isinstance(node, ast.Lambda):
            node.decorator_list = [self.visit(d) for d in node.decorator_list]
        args = node.args
        args.defaults = [self.visit(d) for d in args.defaults]
        args.kw_defaults = [d if d is None else self.visit(d) for d in args.kw_defaults]
        names, shared = bound_names(body)
        names |= parameter_names(args) - shared
        scope = scope_of(names, shared, body)
        self.scopes.append(scope)
        self._locals.append(names)
        self._shared.append(shared)
        outside, self._inside_class = self._inside_class, self._inside_class
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = _with_bindings(self.block(node.body), scope.moved, node)
        self._inside_class = outside
        self.scopes.pop()
        self._locals.pop()
        self._shared.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.bases = [self.visit(b) for b in node.bases]
        outside, self._inside_class = self._inside_class, True
        self._locals.append({name.id for name in ast.walk(node) if isinstance(name, ast.Name)})
        self._shared.append(set())
        self.scopes.append(None)
        node.body = self.block(node.body)
        self.scopes.pop()
        self._locals.pop()
        self._shared.pop()
        self._inside_class = outside
        return node

    # -- expressions

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load) or not self._locals or node.id in self._locals[-1]:
            return node
        return call("load", [node], node)

    def visit_Call(self, node: ast.Call) -> Any:
        if is_hook(node.func):  # of something that is rewritten
            return node
        if isinstance(node.func, ast.Name) and node.func.id in FRAME_CALLS:
            self._arguments(node)
            return node
        function = node.func
        if not isinstance(function, ast.Name):
            function = self.visit(function)
        self._arguments(node)
        node.func = call("callee", [function], node.func)
        return node

    def _arguments(self, node: ast.Call) -> None:
        node.args = [self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        return self._attribute(node, "attribute")

    def _attribute(self, node: ast.Attribute, hook: str) -> Any:
        node.value = self._base(node.value)
        if not isinstance(node.ctx, ast.Load) or self._is_mangled(node.attr):
            return node
        return call(hook, [node.value, ast.Constant(node.attr)], node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self._subscript(node, "item")

    def _subscript(self, node: ast.Subscript, hook: str) -> Any:
        node.value = self._base(node.value)
        node.slice = self._key(node.slice)
        if not isinstance(node.ctx, ast.Load):
            return node
        return call(hook, [node.value, node.slice], node)

    def _base(self, node: ast.expr) -> Any:
        """What an attribute or item is taken of: where it is a container, that reads no more of
        it than the attribute or item."""
        if isinstance(node, ast.Attribute):
            return self._attribute(node, "attribute_base")
        if isinstance(node, ast.Subscript):
            return self._subscript(node, "item_base")
        return node if isinstance(node, ast.Name) else self.visit(node)

    def _key(self, key: ast.expr) -> Any:
        """A subscript as an expression: slices written as calls."""
        if isinstance(key, ast.Slice):
            parts = [
                ast.copy_location(ast.Constant(None), key) if part is None else self.visit(part)
                for part in (key.lower, key.upper, key.step)
            ]
            return call("slice", parts, key)
        if isinstance(key, ast.Tuple) and isinstance(key.ctx, ast.Load):
            key.elts = [self._key(part) for part in key.elts]
            return key
        return self.visit(key)

    def visit_Starred(self, node: ast.Starred) -> Any:
        node.value = self.visit(node.value)
        if isinstance(node.ctx, ast.Load):
            node.value = call("iterated", [node.value], node)
        return node

    def visit_ListComp(self, node: Any) -> Any:
        return self._comprehension(node, ["elt"])

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node: Any) -> Any:
        return self._comprehension(node, ["key", "value"])

    def _comprehension(self, node: Any, fields: list[str]) -> Any:
        bound: set[str] = set()
        for part in node.generators:
            part.iter = call("iterate", [self.visit(part.iter)], part.iter)
            bound |= {n.id for n in ast.walk(part.target) if isinstance(n, ast.Name)}
            self._locals.append((self._locals[-1] if self._locals else set()) | bound)
            part.ifs = [self.visit(test) for test in part.ifs]
            self._locals.pop()
        self._locals.append((self._locals[-1] if self._locals else set()) | bound)
        for field in fields:
            setattr(node, field, self.visit(getattr(node, field)))
        self._locals.pop()
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node

    # -- statements

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        target = node.targets[0]
        if len(node.targets) == 1:
            if isinstance(target, ast.Subscript):
                base, key = self._base(target.value), self._key(target.slice)
                return _statement(call("store_item", [node.value, base, key], node))
            if isinstance(target, ast.Attribute) and not self._is_mangled(target.attr):
                owner = self._base(target.value)
                parts = [node.value, owner, ast.Constant(target.attr)]
                return _statement(call("store_attribute", parts, node))
            if isinstance(target, ast.Name) and not isinstance(
                node.value, ast.Constant | ast.Lambda
            ):
                parts = [ast.Constant(target.id), node.value]
                node.value = call("named", parts, node.value)
            elif isinstance(target, ast.Tuple) and all(
                isinstance(t, ast.Name) for t in target.elts
            ):
                ids: Any = tuple(t.id for t in target.elts if isinstance(t, ast.Name))
                names = ast.Constant(ids)
                node.value = call("named_all", [names, node.value], node.value)
        node.targets = [self.visit(t) for t in node.targets]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
        elif self.around is not None:  # Python does not evaluate it; a moved one may not stand
            plain = ast.Assign([node.target], node.value) if node.value else ast.Pass()
            return ast.copy_location(plain, node)
        return node

    def visit_Delete(self, node: ast.Delete) -> Any:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                parts = [self._base(target.value), self._key(target.slice)]
                made.append(_statement(call("delete_item", parts, node)))
            else:
                made.append(ast.copy_location(ast.Delete([self.visit(target)]), node))
        return made

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        value = self.visit(node.value)
        operator = ast.Constant(type(node.op).__name__)
        target = node.target
        if isinstance(target, ast.Subscript):
            base, key = self._base(target.value), self._key(target.slice)
            return _updated(call("augment_item", [base, key, operator], node), value)
        if isinstance(target, ast.Attribute) and not self._is_mangled(target.attr):
            parts = [self._base(target.value), ast.Constant(target.attr), operator]
            return _updated(call("augment_attribute", parts, node), value)
        node.value = value
        if not isinstance(target, ast.Name):
            return node
        read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        is_shared = bool(self._shared) and target.id in self._shared[-1]
        hook = "augment_global" if is_shared else "augmented"
        made = ast.Assign([target], call(hook, [read, operator, value], node))
        return ast.copy_location(made, node)

    def _is_mangled(self, name: str) -> bool:
        return self._inside_class and name.startswith("__") and not name.endswith("__")


def _statement(expression: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Expr(expression), expression)


def _updated(update: ast.expr, value: ast.expr) -> ast.stmt:
    """What `update` yields, called with a value that is computed after it."""
    return _statement(ast.copy_location(ast.Call(update, [value], []), update))


def _with_bindings(body: list[ast.stmt], names: set[str], function: Any) -> list[ast.stmt]:
    """The body of a function, whose names that are bound in moved blocks stay its variables:
    code that never runs binds them."""
    if not names:
        return body
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in sorted(names)]
    never = ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], [])
    has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    at = 1 if has_docstring else 0
    ast.fix_missing_locations(ast.copy_location(never, function))
    return [*body[:at], never, *body[at:]]
