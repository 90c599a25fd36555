"""Names in a syntax tree: which a block binds, which it reads, whether it can be moved.

A block of statements is moved into a function inside the user's, where control flow of the graph
can run it twice or not at all. Names it binds are declared `nonlocal` there.

Invariants: trees are read, never changed.
Not here: moving (flow.py).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# What these give depends on the function they are called in.
FRAME_CALLS = frozenset(("super", "locals", "globals", "vars", "eval", "exec", "dir"))
_STAYING = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.Global,
            ast.Nonlocal, ast.ClassDef)  # fmt: skip


def bound_names(body: Iterable[ast.AST]) -> tuple[set[str], set[str]]:
    """Names that statements bind, and names they declare global or nonlocal."""
    names: set[str] = set()
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
        elif isinstance(at, (ast.Lambda, *_COMPREHENSIONS)):
            if not isinstance(at, ast.Lambda):
                names.update(_walrus_names(at))
            continue
        pending.extend(ast.iter_child_nodes(at))
    return names - shared, shared


def _walrus_names(at: ast.AST) -> set[str]:
    return {
        part.target.id
        for part in ast.walk(at)
        if isinstance(part, ast.NamedExpr) and isinstance(part.target, ast.Name)
    }


def parameter_names(args: ast.arguments) -> set[str]:
    """Names of a function's parameters."""
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg for arg in every if arg is not None}


@dataclass
class Names:
    """Of a block, functions inside included: how often each is read, and those that are declared
    global and nonlocal."""

    reads: Counter[str] = field(default_factory=Counter)
    global_: set[str] = field(default_factory=set)
    nonlocal_: set[str] = field(default_factory=set)


def names_of(nodes: Iterable[ast.AST]) -> Names:
    """All in one walk."""
    found = Names()
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                if not isinstance(part.ctx, ast.Store):
                    found.reads[part.id] += 1
            elif isinstance(part, ast.AugAssign):
                if isinstance(part.target, ast.Name):
                    found.reads[part.target.id] += 1
            elif isinstance(part, ast.Global):
                found.global_.update(part.names)
            elif isinstance(part, ast.Nonlocal):
                found.nonlocal_.update(part.names)
    return found


def reads(nodes: Iterable[ast.AST]) -> Counter[str]:
    """How often each name is read, functions inside included."""
    return names_of(nodes).reads


def own_parts(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a block but those of functions and classes inside it."""
    pending = list(nodes)
    while pending:
        at = pending.pop()
        yield at
        if not isinstance(at, _SCOPES):
            pending.extend(ast.iter_child_nodes(at))


def can_be_moved(nodes: Sequence[ast.AST]) -> bool:
    """Whether a block means the same in a function inside the user's."""
    for part in own_parts(nodes):
        if isinstance(part, _STAYING):
            return False
        if isinstance(part, ast.comprehension) and part.is_async:
            return False
        if isinstance(part, ast.ImportFrom) and any(a.name == "*" for a in part.names):
            return False
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            if part.func.id in FRAME_CALLS:
                return False
    return True


def is_expression_movable(*nodes: ast.expr) -> bool:
    """Whether expressions mean the same in a lambda in their place."""
    return can_be_moved(nodes) and not any(
        isinstance(part, ast.NamedExpr) for node in nodes for part in ast.walk(node)
    )


def asks_for_its_frame(body: Sequence[ast.AST], read: Mapping[str, int]) -> bool:
    """Whether a function looks at its local variables as a whole. read: names that are read in
    it, functions inside included."""
    names = FRAME_CALLS - {"super", "globals"}
    if names.isdisjoint(read):
        return False
    return any(isinstance(part, ast.Name) and part.id in names for part in own_parts(body))
