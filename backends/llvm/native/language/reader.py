"""Reading native code: the source of a function as a tree, annotations as types, structures as
layouts.

Invariants: every complaint is a `LanguageError` that begins with file:line; nothing is guessed
from values, only from annotations, so the same source gives the same code in every process.
Not here: what statements mean (`statements`, `expressions`). LLVM is not imported: the plan
encoder uses the layouts of structures in warm processes.
"""

from __future__ import annotations

import ast
import enum
import linecache
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

from .types import (
    BOOL,
    F64,
    I8,
    I16,
    I32,
    I64,
    RAW,
    U8,
    U32,
    U64,
    VOID,
    FunctionPointer,
    InlineArray,
    Pointer,
    Ptr,
    Reference,
    Struct,
    Type,
    alignment_of,
    size_of,
)

_NAMED: dict[Any, Type] = {bool: BOOL, None: VOID}
_SCALARS = (I8, U8, I16, I32, U32, I64, U64, F64, RAW)


class LanguageError(Exception):
    """Native source the translator does not accept; the message begins with file:line."""


class Place(NamedTuple):
    """Where a piece of native source stands, for messages and for looking names up."""

    file: str
    names: dict[str, Any]

    def error(self, node: ast.AST, message: str) -> LanguageError:
        """The exception to raise about this node."""
        return LanguageError(f"{self.file}:{getattr(node, 'lineno', 1)}: {message}")

    def constant(self, node: ast.expr) -> Any:
        """What a name, or a chain of attributes of one, is bound to in the module."""
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.names[node.id]
            builtins = vars(sys.modules["builtins"])
            if node.id in builtins:
                return builtins[node.id]
            raise self.error(node, f"the name {node.id!r} is neither a local nor a global")
        if isinstance(node, ast.Attribute):
            owner = self.constant(node.value)
            if hasattr(owner, node.attr):
                return getattr(owner, node.attr)
        raise self.error(node, f"{ast.unparse(node)!r} is not a compile-time constant")


class Source(NamedTuple):
    """One native function, read: its tree and its signature."""

    function: Callable[..., Any]
    tree: ast.FunctionDef
    place: Place
    parameters: tuple[tuple[str, Type], ...]
    result: Type

    @property
    def name(self) -> str:
        """The symbol of the function: module and name, unique in a unit."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"


def read_function(function: Callable[..., Any]) -> Source:
    """Find a native function in its file and resolve its signature."""
    file = function.__code__.co_filename
    place = Place(file, function.__globals__)
    tree = _functions_of(file).get(function.__code__.co_name)
    if tree is None:
        raise LanguageError(f"{file}:1: no function {function.__name__!r} at the top of the file")
    arguments = tree.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        raise place.error(tree, "native functions take plain positional parameters")
    parameters = []
    for argument in arguments.args:
        if argument.annotation is None:
            raise place.error(argument, f"parameter {argument.arg!r} has no type")
        parameters.append((argument.arg, read_type(argument.annotation, place)))
    if tree.returns is None:
        raise place.error(tree, f"{tree.name} has no result type; write `-> None` for nothing")
    return Source(function, tree, place, tuple(parameters), read_type(tree.returns, place))


@cache
def _functions_of(file: str) -> dict[str, ast.FunctionDef]:
    """The functions at the top level of a source file; files are read once."""
    tree = ast.parse("".join(linecache.getlines(file)))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def read_type(node: ast.expr, place: Place) -> Type:
    """The type an annotation names."""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return VOID
        if isinstance(node.value, str):
            return _read_text(node.value, place)
    if isinstance(node, ast.Subscript):
        return _read_generic(node, place)
    found = _named_type(place.constant(node))
    if found is None:
        raise place.error(node, f"{ast.unparse(node)!r} is not a native type")
    return found


def _read_text(text: str, place: Place) -> Type:
    """The type that the text of an annotation names; most are one name, which needs no parser."""
    found = _named_type(place.names.get(text))
    return read_type(ast.parse(text, mode="eval").body, place) if found is None else found


def _named_type(found: Any) -> Type | None:
    """The type that a name is bound to, if it is bound to one."""
    if found in _SCALARS:
        return next(scalar for scalar in _SCALARS if scalar == found)
    if isinstance(found, type) and issubclass(found, Struct):
        return Reference(found)
    if isinstance(found, type) and found in _NAMED:
        return _NAMED[found]
    return None


def _read_generic(node: ast.Subscript, place: Place) -> Type:
    head = place.constant(node.value)
    if head is Ptr:
        return Pointer(read_type(node.slice, place))
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    if head is Callable and len(parts) == 2 and isinstance(parts[0], ast.List):
        parameters = tuple(read_type(part, place) for part in parts[0].elts)
        return FunctionPointer(parameters, read_type(parts[1], place))
    if head is Annotated and len(parts) == 2:
        pointer, count = read_type(parts[0], place), read_integer(parts[1], place)
        if isinstance(pointer, Pointer):
            return InlineArray(pointer.target, count)
    raise place.error(node, f"{ast.unparse(node)!r} is not a native type")


def read_integer(node: ast.expr, place: Place) -> int:
    """A compile-time integer: a literal, or a module's constant or enumeration member."""
    value = node.value if isinstance(node, ast.Constant) else place.constant(node)
    if isinstance(value, enum.IntEnum):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise place.error(node, f"{ast.unparse(node)!r} is not a constant integer")
    return value


class Field(NamedTuple):
    """One field of a structure."""

    name: str
    type: Type
    offset: int


class Layout(NamedTuple):
    """Fields of a structure with their C offsets, and its size."""

    fields: dict[str, Field]
    size: int
    alignment: int


_layouts: dict[type, Layout] = {}


def layout_of(struct: type[Struct]) -> Layout:
    """The C layout of a structure; base structures come first, as in C's idiom for inheritance."""
    if struct not in _layouts:
        _layouts[struct] = _lay_out(struct)
    return _layouts[struct]


def _lay_out(struct: type[Struct]) -> Layout:
    fields: dict[str, Field] = {}
    offset, widest = 0, 1
    for owner in reversed(struct.__mro__):
        module = sys.modules[owner.__module__]
        place = Place(getattr(module, "__file__", None) or "?", vars(module))
        for name, annotation in vars(owner).get("__annotations__", {}).items():
            kind = _read_text(annotation, place)
            width = alignment_of(kind)
            offset = -(-offset // width) * width
            fields[name] = Field(name, kind, offset)
            offset += size_of(kind)
            widest = max(widest, width)
    return Layout(fields, -(-offset // widest) * widest, widest)
