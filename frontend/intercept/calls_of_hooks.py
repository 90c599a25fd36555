"""How calls of hooks, and functions that hooks call, stand in a syntax tree and in code.

Hooks stand in the code as constants, so no name can clash. Functions for moved blocks have a
parameter that no program can have: by it they are known, and get the user's function's name.

Not here: which calls are written (rewrite.py, flow.py).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import CodeType
from typing import Any

_MARK = "tracemill hook "
_MOVED = "tracemill block"


def call(hook: str, args: list[Any], place: ast.AST) -> Any:
    """The call of a hook, at a place of the user's program."""
    function = ast.copy_location(ast.Constant(_MARK + hook), place)
    for arg in args:
        if not hasattr(arg, "lineno"):
            ast.copy_location(arg, place)
            if not isinstance(arg, ast.Constant):
                ast.fix_missing_locations(arg)
    return ast.copy_location(ast.Call(function, args, []), place)


def constant(value: Any) -> ast.Constant:
    """A constant in code, a tuple of constants among them."""
    return ast.Constant(value)


def is_hook(node: ast.expr) -> bool:
    """True for the function of a call that was written here."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(_MARK)
    )


def moved_marker() -> ast.FunctionDef:
    """A function with nothing but the parameter of those for moved blocks."""
    made = ast.parse("def f(item=None): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args.args[0].arg = _MOVED
    for part in ast.walk(made):  # it has no place of its own
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            part.__dict__.pop(name, None)
    return made


def is_moved(code: CodeType | None) -> bool:
    """True for the code of a function for a moved block."""
    return code is not None and code.co_varnames[:1] == (_MOVED,)


def with_hooks(code: CodeType, hooks: Mapping[str, Any]) -> CodeType:
    """The code with hooks in place of the constants that stand for them, and functions of moved
    blocks under the name of the function they are part of."""
    inner: list[Any] = []
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if is_moved(const):
                # functions in the block are known by the name they have without it
                const = _without(const, f"{const.co_qualname}.<locals>.")
                const = const.replace(co_name=code.co_name, co_qualname=code.co_qualname)
            inner.append(with_hooks(const, hooks))
        elif isinstance(const, str) and const.startswith(_MARK):
            inner.append(hooks[const.removeprefix(_MARK)])
        else:
            inner.append(const)
    return code.replace(co_consts=tuple(inner))


def _without(code: CodeType, prefix: str) -> CodeType:
    """The code, functions in it named as if they stood one function further out."""
    around = prefix.removesuffix(".<locals>.").rpartition(".")[0]
    inner = tuple(
        _without(
            const.replace(
                co_qualname=f"{around}.{const.co_qualname.removeprefix(prefix)}"
                if around and const.co_qualname.startswith(prefix)
                else const.co_qualname
            ),
            prefix,
        )
        if isinstance(const, CodeType)
        else const
        for const in code.co_consts
    )
    return code.replace(co_consts=inner)
