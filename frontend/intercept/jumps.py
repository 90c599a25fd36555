"""`return`, `break` and `continue` that leave a block which is moved into a function of its own.

Inside, each becomes the return of an *outcome*, a pair such as ``("return", value)``; None says
that the block ran to its end. Around it stands a dispatch, which does what the outcome says:

    if c: return a          outcome = branch(c, then, ...)
                            if outcome is not None: return outcome[1]

Invariants: a dispatch that is moved itself hands the whole outcome on.
Not here: who runs the blocks (control/branches.py, control/python_loops.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any

OUTCOME = "tracemill outcome"  # names that no program can have
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def leaving(statements: Iterable[ast.AST]) -> frozenset[str]:
    """How statements may leave their block: some of return, break, continue."""
    found: set[str] = set()
    for at in statements:
        if isinstance(at, ast.Return):
            found.add("return")
        elif isinstance(at, ast.Break):
            found.add("break")
        elif isinstance(at, ast.Continue):
            found.add("continue")
        elif isinstance(at, _LOOPS):
            found |= leaving(at.body) & {"return"} | leaving(at.orelse)
        elif not isinstance(at, (ast.expr, *_SCOPES)):  # statements are in statements alone
            found |= leaving(ast.iter_child_nodes(at))
    return frozenset(found)


def dispatch(jumps: frozenset[str], place: ast.AST) -> Any:
    """Do what the outcome of a moved block says."""
    body: list[ast.stmt] = []
    for kind, statement in (("break", ast.Break()), ("continue", ast.Continue())):
        if kind in jumps:
            body.append(ast.If(_is(_part(0), kind), [statement], []))
    if "return" in jumps:
        body.append(ast.Return(_part(1)))
    made: Any = ast.If(_is_some(), body, [])
    made.is_dispatch = True
    return placed(made, place)


def placed(made: Any, place: ast.AST) -> Any:
    """What was made, at a place of the user's program."""
    return ast.fix_missing_locations(ast.copy_location(made, place))


def with_outcomes(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a moved block: jumps out of it return their outcome."""
    return [_Outcomes().visit(statement) for statement in statements]


class _Outcomes(ast.NodeTransformer):
    """Turns jumps into outcomes."""

    def __init__(self) -> None:
        self._loops = 0

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _SCOPES):
            return node
        if getattr(node, "is_dispatch", False) and not self._loops:
            handed: Any = ast.If(_is_some(), [ast.Return(_outcome())], [])
            handed.is_dispatch = True
            return placed(handed, node)
        if isinstance(node, ast.Return):
            pair = ast.Tuple([ast.Constant("return"), node.value or ast.Constant(None)], ast.Load())
            return self._leave(pair, node)
        if isinstance(node, ast.Break | ast.Continue) and not self._loops:
            kind = "break" if isinstance(node, ast.Break) else "continue"
            pair = ast.Tuple([ast.Constant(kind), ast.Constant(None)], ast.Load())
            return self._leave(pair, node)
        if isinstance(node, _LOOPS):
            return self._loop(node)
        return self.generic_visit(node)

    def _loop(self, node: Any) -> Any:
        """A loop that was not moved: its own jumps stay."""
        self._loops += 1
        node.body = [self.visit(statement) for statement in node.body]
        self._loops -= 1
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    @staticmethod
    def _leave(outcome: ast.expr, place: ast.stmt) -> Any:
        return placed(ast.Return(outcome), place)


def _outcome() -> ast.expr:
    return ast.Name(OUTCOME, ast.Load())


def _part(at: int) -> ast.expr:
    return ast.Subscript(_outcome(), ast.Constant(at), ast.Load())


def _is_some() -> ast.expr:
    return ast.Compare(_outcome(), [ast.IsNot()], [ast.Constant(None)])


def _is(item: ast.expr, kind: str) -> ast.expr:
    return ast.Compare(item, [ast.Eq()], [ast.Constant(kind)])
