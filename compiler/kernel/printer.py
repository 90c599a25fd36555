"""The text of a kernel: what people read and golden tests compare.

Invariants: deterministic; one statement a line; a schedule's marks stand in brackets behind the
axis they are on.
Not here: reading it back (kernels are made from graphs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..dims import Dim, Size, dim_text
from ..types import DType
from .kernel import (
    Call,
    Check,
    Checked,
    Constant,
    For,
    If,
    Index,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Parallel,
    Parameter,
    Reduce,
    Scan,
    Search,
    Select,
    Sort,
    Statement,
    Store,
    Update,
    bodies,
)


def kernel_text(kernel: Kernel) -> str:
    """The whole kernel as text."""
    params = ", ".join(_parameter(p) for p in kernel.params)
    dims = f" dims {', '.join(kernel.dims)}" if kernel.dims else ""
    lines = [f"kernel @{kernel.name}({params}){dims} {{"]
    lines += _block(kernel.body, "  ")
    return "\n".join([*lines, "}"]) + "\n"


def _parameter(p: Parameter) -> str:
    mode = "" if p.mode == "in" else f"{p.mode} "
    strided = " strided" if p.strided else ""
    return f"{mode}{p.name}: {p.dtype.name}[{', '.join(map(dim_text, p.shape))}]{strided}"


def _block(body: Sequence[Statement], indent: str) -> Iterator[str]:
    for statement in body:
        if not bodies(statement):
            yield indent + _line(statement)
            continue
        yield f"{indent}{_head(statement)} {{"
        if isinstance(statement, Scan):
            yield from _block(statement.body, indent + "  ")
            yield f"{indent}  yield {', '.join(statement.yields)}"
            yield f"{indent}}} then {{"
            yield from _block(statement.then, indent + "  ")
        elif isinstance(statement, If):
            yield from _block(statement.body, indent + "  ")
            yield from _yields(statement.yields, indent)
            if statement.otherwise or statement.others:
                yield f"{indent}}} else {{"
                yield from _block(statement.otherwise, indent + "  ")
                yield from _yields(statement.others, indent)
        else:
            (inner,) = bodies(statement)
            yield from _block(inner, indent + "  ")
            if isinstance(statement, Reduce | Loop):
                yield f"{indent}  yield {', '.join(statement.yields)}"
        yield f"{indent}}}"


def _yields(names: Sequence[str], indent: str) -> Iterator[str]:
    if names:
        yield f"{indent}  yield {', '.join(names)}"


def _head(s: Statement) -> str:
    match s:
        case Parallel():
            return f"parallel {s.axis} in {_extent(s.extent)}{_marks(s)}"
        case For():
            return f"for {s.axis} in {_extent(s.extent)}{_marks(s)}"
        case If():
            return f"{', '.join(s.names)} = if {s.condition}" if s.names else f"if {s.condition}"
        case Reduce():
            names = ", ".join(s.names)
            return f"{names} = reduce {s.monoid} {s.axis} in {_extent(s.extent)}{_marks(s)}"
        case Scan():
            back = " reverse" if s.reverse else ""
            names = ", ".join(s.names)
            return f"{names} = scan {s.monoid} {s.axis} in {_extent(s.extent)}{back}"
        case Loop():
            init = ", ".join(f"{n} = {i}" for n, i in zip(s.names, s.init))
            until = f" until {s.until}" if s.until else ""
            extent = "" if s.extent is None else f" in {_extent(s.extent)}"
            return f"loop {s.axis}{extent} carry ({init}){_when(s.when)}{until}"
    raise TypeError(f"{type(s).__name__} has no block")


def _marks(s: Parallel | For | Reduce) -> str:
    marks = [
        f"{key} {getattr(s, key)}"
        for key, quiet in (("vector", 0), ("unroll", 1), ("bind", None))
        if getattr(s, key, quiet) != quiet
    ]
    marks += [key for key in ("threads", "loose", "tree") if getattr(s, key, False)]
    return f" [{', '.join(marks)}]" if marks else ""


def _line(s: Statement) -> str:
    match s:
        case Let():
            attrs = "".join(f" {key}={_attr(value)}" for key, value in s.attrs.items())
            which = f".{s.result}" if s.result else ""
            args = f" {', '.join(s.args)}" if s.args else ""
            return f"{s.name} = {s.op}{which}{args}{attrs} : {s.dtype.name}"
        case Constant():
            return f"{s.name} = {s.value!r} : {s.dtype.name}"
        case IndexValue():
            return f"{s.name} = index {dim_text(s.index)}"
        case Load():
            mask = f" when {s.mask} else {s.other}" if s.mask else ""
            return f"{s.name} = load {_access(s.buffer, s.index)}{mask}"
        case Store():
            return f"store {_access(s.buffer, s.index)} = {s.value}{_when(s.mask)}"
        case Check():
            return f"check {s.condition}{_when(s.mask)}"
        case Update():
            return f"update {_access(s.buffer, s.index)} {s.monoid}= {s.value}"
        case Sort():
            between = (s.keys, s.other, s.moved, s.counts, s.ends)
            using = ", ".join(name for name in between if name is not None)
            using = f" using {using}" if using else ""
            return f"sort {s.source} -> {s.gives} {s.result} by {s.stage}{using}"
        case Search():
            return f"search {s.source} for {s.wanted} -> {s.side} of {s.result}"
        case Call():
            return f"call {s.op} of {s.table}({', '.join(s.arguments)})"
        case Select():
            return f"select {s.size} of {s.source} -> {s.result}"
        case Local():
            shape = ", ".join(map(dim_text, s.shape))
            return f"local {s.name}: {s.dtype.name}[{shape}] {s.memory}"
    raise TypeError(f"{type(s).__name__} is not one line")


def _when(mask: str | None) -> str:
    return f" when {mask}" if mask else ""


def _access(buffer: str, index: Sequence[Index]) -> str:
    return f"{buffer}[{', '.join(_index(i) for i in index)}]"


def _index(index: Index) -> str:
    if isinstance(index, Checked):
        return f"check({index.value}, {dim_text(index.extent)})"
    return dim_text(index)


def _extent(size: Size) -> str:
    plain = isinstance(size, int) or size.name is not None
    return dim_text(size) if plain else f"({dim_text(size)})"


def _attr(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, int | Dim):
        return dim_text(value)
    return repr(value)
