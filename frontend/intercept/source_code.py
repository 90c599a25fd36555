"""From a function to its rewritten code object, by way of its source file.

The top-level statement that holds the function is rewritten and compiled under the user's file
name; the function's code object is found in it again by name, line and column. The file may have
been edited since the function was made, so the statement is compiled as it is, too: only a
function whose code is among that has this source.

Invariants: a code object is looked for once; what cannot be found is None for ever.
Not here: the rewriting, functions without source.
"""

from __future__ import annotations

import ast
import linecache
import sys
import warnings
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any

from tracemill.runtime.forks import held_across_forks

from ..tracing.source import is_library_file
from .bytecode import does_the_same, nested
from .calls_of_hooks import with_hooks
from .rewrite import Rewriter

# Keyed by identity, since code objects of different files may be equal; kept alive by the values.
_FOUND: dict[int, tuple[CodeType, CodeType | None]] = {}
_MADE: dict[int, CodeType] = {}
_MODULES: dict[str, tuple[int, ast.Module | None]] = {}
_STATEMENTS: dict[int, tuple[ast.stmt, CodeType, CodeType]] = {}
_ANNOTATIONS = 0x1000000  # the flag of `from __future__ import annotations`
_LOCK = held_across_forks()


def is_rewritten(code: CodeType) -> bool:
    """True for code that has the hooks in it already."""
    return id(code) in _MADE


def rewritten(function: FunctionType, hooks: Mapping[str, Any]) -> CodeType | None:
    """The function's code with hooks; None where its source cannot be found."""
    code = function.__code__
    found = _FOUND.get(id(code))
    if found is not None:
        return found[1]
    with _LOCK:
        made = _rewrite(code, hooks)
        _FOUND[id(code)] = code, made
        if made is not None:
            _MADE.update((id(inner), inner) for inner in nested(made))
    return made


def _rewrite(code: CodeType, hooks: Mapping[str, Any]) -> CodeType | None:
    module = _parsed(code.co_filename)
    if module is None:
        return None
    candidates = [
        made
        for statement in module.body
        if _first_line(statement) <= code.co_firstlineno <= (statement.end_lineno or 0)
        for made in _matching(code, *_compiled(code, module, statement, hooks))
    ]
    if len(candidates) > 1:
        candidates = [made for made in candidates if _stretch(made) == _stretch(code)]
    return candidates[0] if len(candidates) == 1 else None


def _first_line(statement: ast.stmt) -> int:
    """The line a definition begins on, decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _parsed(filename: str) -> ast.Module | None:
    """The syntax tree of a file, parsed again when its text has changed."""
    if filename.startswith("<frozen "):  # a part of Python whose text is beside it
        module_of = sys.modules.get(filename[len("<frozen ") : -1])
        filename = getattr(module_of, "__file__", None) or filename
    lines = linecache.getlines(filename)
    if not lines:
        return None
    text = "".join(lines)
    known = _MODULES.get(filename)
    if known is not None and known[0] == hash(text):
        return known[1]
    try:
        module: ast.Module | None = ast.parse(text, filename)
    except SyntaxError:
        module = None
    _MODULES[filename] = hash(text), module
    return module


def is_inside_try(filename: str, line: int) -> bool:
    """Whether a line of a file stands in a block that ``try`` watches."""
    module = None if is_library_file(filename) else _parsed(filename)
    return module is not None and any(
        isinstance(part, ast.Try | ast.TryStar)
        and part.body[0].lineno <= line <= (part.body[-1].end_lineno or 0)
        for part in ast.walk(module)
    )


def _compiled(
    code: CodeType, module: ast.Module, statement: ast.stmt, hooks: Mapping[str, Any]
) -> tuple[CodeType, CodeType]:
    """A statement as it is written, and with hooks. What a module imports decides which
    instructions call it, so its imports stand before what is written."""
    found = _STATEMENTS.get(id(statement))
    if found is None:
        imports = [s for s in module.body if isinstance(s, ast.Import | ast.ImportFrom)]
        written = _code_of([*imports, statement], code)
        changed = Rewriter().visit(statement)
        body = changed if isinstance(changed, list) else [changed]
        for part in body:
            ast.fix_missing_locations(part)
        found = statement, written, with_hooks(_code_of(body, code), hooks)
        _STATEMENTS[id(statement)] = found
    return found[1:]


def _code_of(body: list[ast.stmt], like: CodeType) -> CodeType:
    """Statements compiled as those of the file that `like` is from."""
    tree = ast.Module(body, [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        future = like.co_flags & _ANNOTATIONS
        made: CodeType = compile(tree, like.co_filename, "exec", future, dont_inherit=True)
    return made


def _matching(code: CodeType, written: CodeType, whole: CodeType) -> list[CodeType]:
    """The code objects in `whole` that may be `code` rewritten; none if `code` is not written
    there."""
    if not any(does_the_same(code, inner) for inner in nested(written)):
        return []
    return [
        made
        for made in nested(whole)
        if made.co_name == code.co_name
        and made.co_firstlineno == code.co_firstlineno
        and made.co_varnames[: _arguments(made)] == code.co_varnames[: _arguments(code)]
        and made.co_flags & 0x0C == code.co_flags & 0x0C
        and set(made.co_freevars) <= set(code.co_freevars)
    ]


def _arguments(code: CodeType) -> int:
    variadic = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    return code.co_argcount + code.co_kwonlyargcount + variadic


def _stretch(code: CodeType) -> Any:
    """From where to where its instructions stand: tells lambdas on one line apart."""
    places = [place for place in code.co_positions() if None not in place and place[3]]
    begin = min(((line, column) for line, _, column, _ in places), default=None)
    return begin, max(((line, column) for _, line, _, column in places), default=None)
