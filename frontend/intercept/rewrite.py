"""The user's source with hooks written in: calls, attributes, subscripts, globals, iteration.

``f(x)`` becomes ``callee(f)(x)``, ``obj.a`` becomes ``attribute(obj, "a")``, and so on; the
hooks (hooks.py) behave as plain Python where nothing is traced. File name, lines and columns
stay those of the user's file. Hooks stand in the code as constants, so no name can clash.

Invariants: one rewritten code object for one original, made once.
Not here: what hooks do; statements that become control flow of the graph (``if``, ``while``,
``for`` on traced values are rewritten here when conversion exists).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

HOOKS = (
    "callee", "attribute", "item", "store_item", "augment_item", "store_attribute",
    "augment_attribute", "augment_global", "load", "iterate", "named", "named_all", "slice",
)  # fmt: skip
_MARK = "tracemill hook "
_SKIPPED_CALLS = frozenset(("super", "locals", "globals", "vars", "eval", "exec", "dir"))


def placeholder(name: str) -> str:
    """The constant that stands for a hook until the code object is made."""
    return _MARK + name


def hooks_placed(consts: tuple[Any, ...], hooks: Mapping[str, Any]) -> tuple[Any, ...]:
    """Constants with placeholders replaced by the hooks."""
    return tuple(
        hooks[const.removeprefix(_MARK)]
        if isinstance(const, str) and const.startswith(_MARK)
        else const
        for const in consts
    )


class Rewriter(ast.NodeTransformer):
    """Rewrites one top-level statement."""

    def __init__(self) -> None:
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
        names, shared = _bound_names(node, body)
        self._locals.append(names)
        self._shared.append(shared)
        outside, self._inside_class = self._inside_class, self._inside_class
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = self._body(node.body)
        self._inside_class = outside
        self._locals.pop()
        self._shared.pop()
        return node

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in statements:
            changed = self.visit(statement)
            made.extend(changed if isinstance(changed, list) else [changed])
        return made

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.bases = [self.visit(b) for b in node.bases]
        outside, self._inside_class = self._inside_class, True
        self._locals.append({name.id for name in ast.walk(node) if isinstance(name, ast.Name)})
        self._shared.append(set())
        node.body = self._body(node.body)
        self._locals.pop()
        self._shared.pop()
        self._inside_class = outside
        return node

    # -- expressions

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load) or not self._locals or node.id in self._locals[-1]:
            return node
        return _call("load", [node], node)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id in _SKIPPED_CALLS:
            self._arguments(node)
            return node
        function = node.func
        if not isinstance(function, ast.Name):
            function = self.visit(function)
        self._arguments(node)
        node.func = _call("callee", [function], node.func)
        return node

    def _arguments(self, node: ast.Call) -> None:
        node.args = [self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        node.value = self._base(node.value)
        if not isinstance(node.ctx, ast.Load) or self._is_mangled(node.attr):
            return node
        return _call("attribute", [node.value, ast.Constant(node.attr)], node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node.value = self._base(node.value)
        node.slice = self._key(node.slice)
        if not isinstance(node.ctx, ast.Load):
            return node
        return _call("item", [node.value, node.slice], node)

    def _base(self, node: ast.expr) -> Any:
        return node if isinstance(node, ast.Name) else self.visit(node)

    def _key(self, key: ast.expr) -> Any:
        """A subscript as an expression: slices written as calls."""
        if isinstance(key, ast.Slice):
            parts = [
                ast.copy_location(ast.Constant(None), key) if part is None else self.visit(part)
                for part in (key.lower, key.upper, key.step)
            ]
            return _call("slice", parts, key)
        if isinstance(key, ast.Tuple) and isinstance(key.ctx, ast.Load):
            key.elts = [self._key(part) for part in key.elts]
            return key
        return self.visit(key)

    def visit_ListComp(self, node: Any) -> Any:
        return self._comprehension(node, ["elt"])

    visit_SetComp = visit_GeneratorExp = visit_ListComp

    def visit_DictComp(self, node: Any) -> Any:
        return self._comprehension(node, ["key", "value"])

    def _comprehension(self, node: Any, fields: list[str]) -> Any:
        bound: set[str] = set()
        for part in node.generators:
            part.iter = _call("iterate", [self.visit(part.iter)], part.iter)
            bound |= {n.id for n in ast.walk(part.target) if isinstance(n, ast.Name)}
            self._locals.append((self._locals[-1] if self._locals else set()) | bound)
            part.ifs = [self.visit(test) for test in part.ifs]
            self._locals.pop()
        self._locals.append((self._locals[-1] if self._locals else set()) | bound)
        for field in fields:
            setattr(node, field, self.visit(getattr(node, field)))
        self._locals.pop()
        return node

    def visit_match_case(self, node: ast.match_case) -> Any:
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body = self._body(node.body)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node

    # -- statements

    def visit_For(self, node: ast.For) -> Any:
        node.iter = _call("iterate", [self.visit(node.iter)], node.iter)
        node.target = self.visit(node.target)
        node.body = self._body(node.body)
        node.orelse = self._body(node.orelse)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        target = node.targets[0]
        if len(node.targets) == 1:
            if isinstance(target, ast.Subscript):
                base, key = self._base(target.value), self._key(target.slice)
                return _statement(_call("store_item", [node.value, base, key], node))
            if isinstance(target, ast.Attribute) and not self._is_mangled(target.attr):
                owner = self._base(target.value)
                parts = [node.value, owner, ast.Constant(target.attr)]
                return _statement(_call("store_attribute", parts, node))
            if isinstance(target, ast.Name) and not isinstance(
                node.value, ast.Constant | ast.Lambda
            ):
                parts = [ast.Constant(target.id), node.value]
                node.value = _call("named", parts, node.value)
            elif isinstance(target, ast.Tuple) and all(
                isinstance(t, ast.Name) for t in target.elts
            ):
                ids: Any = tuple(t.id for t in target.elts if isinstance(t, ast.Name))
                names = ast.Constant(ids)
                node.value = _call("named_all", [names, node.value], node.value)
        node.targets = [self.visit(t) for t in node.targets]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        value = self.visit(node.value)
        operator = ast.Constant(type(node.op).__name__)
        target = node.target
        if isinstance(target, ast.Subscript):
            base, key = self._base(target.value), self._key(target.slice)
            return _statement(_call("augment_item", [base, key, operator, value], node))
        if isinstance(target, ast.Attribute) and not self._is_mangled(target.attr):
            parts = [self._base(target.value), ast.Constant(target.attr), operator, value]
            return _statement(_call("augment_attribute", parts, node))
        node.value = value
        if isinstance(target, ast.Name) and self._shared and target.id in self._shared[-1]:
            read = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            made = ast.Assign([target], _call("augment_global", [read, operator, value], node))
            return ast.copy_location(made, node)
        return node

    def _is_mangled(self, name: str) -> bool:
        return self._inside_class and name.startswith("__") and not name.endswith("__")


def _call(hook: str, args: list[Any], place: ast.AST) -> Any:
    function = ast.copy_location(ast.Constant(placeholder(hook)), place)
    for arg in args:
        if not hasattr(arg, "lineno"):
            ast.copy_location(arg, place)
    return ast.copy_location(ast.Call(function, args, []), place)


def _statement(expression: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Expr(expression), expression)


def _bound_names(node: Any, body: list[Any]) -> tuple[set[str], set[str]]:
    """Names local to a function, and names it declares global or nonlocal."""
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    names = {arg.arg for arg in every if arg is not None}
    shared: set[str] = set()
    pending: list[ast.AST] = list(body)
    while pending:
        at = pending.pop()
        if isinstance(at, ast.Global | ast.Nonlocal):
            shared.update(at.names)
        elif isinstance(at, ast.Name) and isinstance(at.ctx, ast.Store | ast.Del):
            names.add(at.id)
        elif isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(at.name)
            continue
        elif isinstance(at, ast.Import | ast.ImportFrom):
            names.update((a.asname or a.name).split(".")[0] for a in at.names)
        elif (
            isinstance(at, ast.ExceptHandler)
            and at.name
            or isinstance(at, ast.MatchAs | ast.MatchStar)
            and at.name
        ):
            names.add(at.name)
        elif isinstance(at, ast.MatchMapping) and at.rest:
            names.add(at.rest)
        elif isinstance(
            at, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        ):
            for part in ast.walk(at):
                if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name):
                    names.add(part.target.id)
            continue
        pending.extend(ast.iter_child_nodes(at))
    return names - shared, shared
