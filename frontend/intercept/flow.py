"""Statements that choose or repeat, written as calls of hooks.

Blocks are moved, not copied, into functions inside the user's, over the same variables:

    if t: A             def then(): nonlocal x; A
    else: B       ->    def other(): nonlocal x; B
                        branch(t, then, other, ("x",), ...)

The hooks run them at once where nothing is traced. Where a block may be left by a jump, what
follows it becomes a function too (the rest), since it runs only where the jump is not taken.

Invariants: names that are bound only in moved blocks stay variables of the user's function; a
block that would mean something else in a function stays where it is, and is said why.
Not here: what hooks do (plain_flow.py, control/), expressions (expressions.py).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .calls_of_hooks import call, constant, moved_marker
from .expressions import ExpressionRewriter
from .jumps import OUTCOME, dispatch, leaving, placed, with_outcomes
from .scopes import (
    asks_for_its_frame,
    bound_names,
    can_be_moved,
    names_of,
    reads,
)

_DEEPEST = 30  # rests inside rests


@dataclass
class Scope:
    """A function of the user's: its variables, and where in it we are.

    moved: names that must be bound at its top, since all that binds them is moved. rests: the
    functions that run after the block we are in, the next one first; or what forbids to name
    them. loop: names that the loop around us binds, None outside of loops.
    """

    names: set[str]
    shared: set[str]
    globals: set[str]
    inner: set[str]
    reads: Counter[str]
    stays: bool
    moved: set[str] = field(default_factory=set)
    rests: tuple[str, ...] | str = ()
    loop: frozenset[str] | None = None
    loops: int = 0


def scope_of(names: set[str], shared: set[str], body: Sequence[ast.AST]) -> Scope:
    """The scope of a function with this body, nothing of it rewritten yet."""
    found = names_of(body)
    stays = asks_for_its_frame(body, found.reads)
    inner = found.nonlocal_ & names
    return Scope(names, shared, found.global_, inner, found.reads, stays)


class FlowRewriter(ExpressionRewriter):
    """Rewrites what chooses and repeats; `scopes` are the functions around, None for a class."""

    def __init__(self) -> None:
        self.scopes: list[Scope | None] = []

    @property
    def around(self) -> Scope | None:
        """The function we are in, None where its blocks stay where they are."""
        found = self.scopes[-1] if self.scopes else None
        return None if found is None or found.stays else found

    # -- blocks

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Rewrite statements that follow each other."""
        made: list[ast.stmt] = []
        for at, statement in enumerate(statements):
            jumps = leaving([statement])
            if jumps and self._moves(statement, statements[at + 1 :]):
                return [*made, *self._leaving_block(statement, statements[at + 1 :], jumps)]
            changed = self.visit(statement)
            made.extend(changed if isinstance(changed, list) else [changed])
        return made

    def _moves(self, statement: ast.stmt, rest: Sequence[ast.stmt] = ()) -> bool:
        """Whether a statement that chooses or repeats is written as a call."""
        scope = self.around
        if scope is None or not isinstance(statement, ast.If | ast.While | ast.For):
            return False
        if isinstance(scope.rests, tuple) and len(scope.rests) > _DEEPEST:
            return False
        parts = [statement, *rest]
        return can_be_moved(parts) and not bound_names(parts)[0] & scope.globals

    def _leaving_block(
        self, statement: Any, rest: Sequence[ast.stmt], jumps: frozenset[str]
    ) -> list[ast.stmt]:
        """A statement that may leave its block, and what follows it there."""
        scope = self.around
        assert scope is not None
        made: list[ast.stmt] = []
        outer = scope.rests
        own = None
        if scope.loop is not None:
            names = set(scope.loop)
        else:
            names = bound_names([statement, *rest])[0] & (scope.shared | scope.inner)
        if rest:
            own = f"tracemill rest {len(outer) if isinstance(outer, tuple) else 0}"
            made.append(self._moved(own, rest, rest[0]))
        around: tuple[str, ...] | str = outer
        if isinstance(outer, tuple) and own is not None:
            around = (own, *outer)
        with self._resting(around):
            found = self._call_of(statement, self._sorted(names), own, outer)
        made.extend(found[:-1])
        target = ast.Name(OUTCOME, ast.Store())
        made.append(ast.copy_location(ast.Assign([target], found[-1]), statement))
        made.append(dispatch(jumps, statement))
        return made

    def _moved(self, name: str, block: Sequence[ast.stmt], place: ast.AST) -> Any:
        """A block as a function inside the user's."""
        bound = bound_names(block)[0]
        return self._function(name, with_outcomes(self.block(block)), bound, place)

    @contextmanager
    def _resting(self, rests: tuple[str, ...] | str) -> Iterator[None]:
        scope = self.around
        if scope is None:
            yield
            return
        outside, scope.rests = scope.rests, rests
        yield
        scope.rests = outside

    def _call_of(
        self, statement: Any, names: Any, rest: str | None, outer: tuple[str, ...] | str
    ) -> list[Any]:
        """The functions of the blocks of a statement, and the call that runs them."""
        if isinstance(statement, ast.If):
            return self._branch(statement, names, rest, outer)
        return self._loop(statement, names, rest, outer)

    def _after(self, rest: str | None, outer: tuple[str, ...] | str, jumps: bool) -> list[Any]:
        """What a hook is told of what follows: the next rest, those behind it, where it ends."""
        scope = self.around
        assert scope is not None
        behind: Any = constant(outer)
        if isinstance(outer, tuple):
            behind = ast.Tuple([ast.Name(name, ast.Load()) for name in outer], ast.Load())
        level = None if not jumps else "function" if scope.loop is None else "loop"
        own = ast.Constant(None) if rest is None else ast.Name(rest, ast.Load())
        return [own, behind, ast.Constant(level)]

    def _live(self, statement: ast.stmt) -> Any:
        """Names that a statement binds and something else may read."""
        scope = self.around
        assert scope is not None
        names = bound_names([statement])[0] | scope.inner | scope.shared
        inside = Counter[str]() if scope.loops else reads([statement])
        kept = scope.shared | scope.inner
        return self._sorted({n for n in names if n in kept or scope.reads[n] > inside[n]})

    @staticmethod
    def _sorted(names: set[str]) -> Any:
        return constant(tuple(sorted(names)))

    def _function(self, name: str, body: list[ast.stmt], bound: set[str], place: ast.AST) -> Any:
        """A function inside the user's for a moved block, which binds names of the user's."""
        scope = self.around
        assert scope is not None
        bound = (bound & (scope.names | scope.shared)) | scope.inner
        scope.moved |= bound & scope.names
        shared: list[ast.stmt] = [ast.Nonlocal(sorted(bound))] if bound else []
        made: Any = moved_marker()
        made.name, made.body = name, [*shared, *body] or [ast.Pass()]
        for part in shared:
            ast.copy_location(part, place)
        return placed(made, place)

    # -- statements

    def visit_If(self, node: ast.If) -> Any:
        if leaving([node]) or not self._moves(node):
            return self._stays(node, "test")
        names = self._live(node)
        made = self._branch(node, names, None, ())
        return [*made[:-1], ast.copy_location(ast.Expr(made[-1]), node)]

    def visit_Assert(self, node: ast.Assert) -> Any:
        raised: Any = ast.Name("AssertionError", ast.Load())
        if node.msg is not None:
            raised = ast.Call(raised, [node.msg], [])
        failed = ast.UnaryOp(ast.Not(), node.test)
        made = placed(ast.If(failed, [ast.Raise(raised, None)], []), node)
        return self.visit(made) if __debug__ and self._moves(made) else self.generic_visit(node)

    def _branch(
        self, node: ast.If, names: Any, rest: str | None, outer: tuple[str, ...] | str
    ) -> list[Any]:
        jumps = bool(leaving([node]))
        functions: list[Any] = []
        arms: list[Any] = []
        test = self.test(node.test)
        for name, block in (("then", node.body), ("other", node.orelse)):
            if block:
                functions.append(self._moved(f"tracemill {name}", block, node))
                arms.append(ast.Name(f"tracemill {name}", ast.Load()))
            else:
                arms.append(ast.Constant(None))
        parts = [test, *arms, names, *self._after(rest, outer, jumps)]
        return [*functions, call("branch", parts, node)]

    def _stays(self, node: Any, *fields: str) -> Any:
        """A statement that is not moved: its blocks are rewritten where they are."""
        for name in fields:
            setattr(node, name, self.visit(getattr(node, name)))
        with self._resting("a block that cannot be moved"):
            node.body = self.block(node.body)
            node.orelse = self.block(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> Any:
        return self._loop_or_stays(node, "test")

    def visit_For(self, node: ast.For) -> Any:
        return self._loop_or_stays(node, "iter", "target")

    def _loop_or_stays(self, node: Any, *fields: str) -> Any:
        if leaving([node]) or not self._moves(node):
            return self._loop_that_stays(node, *fields)
        made = self._loop(node, self._live(node), None, ())
        return [*made[:-1], ast.copy_location(ast.Expr(made[-1]), node)]

    def _loop_that_stays(self, node: Any, *fields: str) -> Any:
        if isinstance(node, ast.For):
            node.iter = call("iterate", [self.visit(node.iter)], node.iter)
            fields = ("target",)
        scope = self.around
        if scope is not None:
            scope.loops += 1
        self._stays(node, *fields)
        if scope is not None:
            scope.loops -= 1
        return node

    def _loop(
        self, node: Any, names: Any, rest: str | None, outer: tuple[str, ...] | str
    ) -> list[Any]:
        scope = self.around
        assert scope is not None
        jumps = bool(leaving([node]))
        after = self._after(rest, outer, jumps)
        live = self._live(node)
        leaves = constant(tuple(sorted(leaving(node.body) & {"break", "return"})))
        source: list[ast.AST] = [node.target] if isinstance(node, ast.For) else [node.test]
        source += node.body
        functions: list[Any] = []
        if isinstance(node, ast.For):
            head, trips = None, self._trips(node.iter)
        else:
            head, trips = node.test, ast.Name("tracemill test", ast.Load())
        outside = scope.loop
        scope.loop = frozenset(bound_names(source)[0]) | (outside or frozenset())
        scope.loops += 1
        bound = bound_names(source)[0]
        with self._resting(()):
            if head is not None:
                asked: list[ast.stmt] = [ast.copy_location(ast.Return(self.test(head)), head)]
                functions.append(self._function("tracemill test", asked, bound, node))
            body = with_outcomes(self.block(node.body))
            if isinstance(node, ast.For):
                body.insert(0, self._taken(node))
        scope.loop, scope.loops = outside, scope.loops - 1
        functions.append(self._function("tracemill body", body, bound, node))
        otherwise: Any = ast.Constant(None)
        if node.orelse:
            functions.append(self._moved("tracemill else", node.orelse, node))
            otherwise = ast.Name("tracemill else", ast.Load())
        hook = "repeat_for" if isinstance(node, ast.For) else "repeat_while"
        parts = [trips, ast.Name("tracemill body", ast.Load()), otherwise, names, live,
                 leaves, *after]  # fmt: skip
        return [*functions, call(hook, parts, node)]

    def _taken(self, node: ast.For) -> Any:
        """What is iterated goes to the target of the loop."""
        item = ast.Name(moved_marker().args.args[0].arg, ast.Load())
        made = ast.Assign([self.visit(node.target)], item)
        return placed(made, node.target)

    def _trips(self, items: ast.expr) -> Any:
        """What a loop runs over; how often may be known at run time only."""
        if not _is_counted(items):
            return call("iterate", [self.visit(items)], items)
        assert isinstance(items, ast.Call)
        parts = [self._trips(arg) if _is_counted(arg) else self.visit(arg) for arg in items.args]
        return call("trips_of", [items.func, *parts], items)

    def visit_With(self, node: Any) -> Any:
        for item in node.items:
            item.context_expr = call("context", [self.visit(item.context_expr)], node)
            if item.optional_vars is not None:
                item.optional_vars = self.visit(item.optional_vars)
        with self._resting("`with`"):
            node.body = self.block(node.body)
        return node

    visit_AsyncWith = visit_With

    def visit_Try(self, node: Any) -> Any:
        with self._resting("`try`"):
            node.body = self.block(node.body)
            for handler in node.handlers:
                if handler.type is not None:
                    handler.type = self.visit(handler.type)
                handler.body = self.block(handler.body)
            node.orelse = self.block(node.orelse)
            node.finalbody = self.block(node.finalbody)
        return node

    visit_TryStar = visit_Try

    def visit_match_case(self, node: ast.match_case) -> Any:
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        with self._resting("`match`"):
            node.body = self.block(node.body)
        return node


def _is_counted(items: ast.expr) -> bool:
    """Whether this may be one of the functions whose items have numbers."""
    return (
        isinstance(items, ast.Call)
        and isinstance(items.func, ast.Name)
        and items.func.id in ("range", "enumerate", "zip", "reversed")
        and not items.keywords
        and not any(isinstance(arg, ast.Starred) for arg in items.args)
    )
