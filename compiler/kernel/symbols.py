"""Names in kernels: which symbols are dims, and rewriting of indices and axes.

Invariants: pure functions on kernel data.
Not here: what a rewrite is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..dims import Dim, Size
from ..records import replace
from .kernel import (
    Checked,
    For,
    Index,
    IndexValue,
    Kernel,
    Load,
    Local,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    Store,
    Update,
    body_fields,
    walk,
)

Body = tuple[Statement, ...]


def kernel_dims(kernel: Kernel) -> tuple[str, ...]:
    """Symbols that are no axis, sorted: what a launch passes besides buffers."""
    axes: set[str] = set()
    found: set[str] = set()
    for statement in walk(kernel.body):
        if isinstance(statement, Parallel | For | Loop | Reduce | Scan):
            axes.add(statement.axis)
        for size in sizes_in(statement):
            if isinstance(size, Dim):
                found |= size.symbols()
    for param in kernel.params:
        for size in param.shape:
            if isinstance(size, Dim):
                found |= size.symbols()
    return tuple(sorted(found - axes))


def sizes_in(statement: Statement) -> Iterator[Size]:
    """Every size written in the statement itself (not in its body)."""
    if isinstance(statement, Load | Store | Update):
        for index in statement.index:
            yield index.extent if isinstance(index, Checked) else index
    elif isinstance(statement, IndexValue):
        yield statement.index
    elif isinstance(statement, Parallel | For | Reduce | Scan):
        yield statement.extent
    elif isinstance(statement, Loop):
        if statement.extent is not None:
            yield statement.extent
    elif isinstance(statement, Local):
        yield from statement.shape


def used_buffers(body: Body) -> set[str]:
    """Names of all buffers that are loaded or stored."""
    return {s.buffer for s in walk(body) if isinstance(s, Load | Store | Update)}


def map_body(body: Body, change: Callable[[Statement], Statement | None]) -> Body:
    """Rebuild a body, inner statements first; None drops a statement."""
    out: list[Statement] = []
    for statement in body:
        made = change(_inside(statement, change))
        if made is not None:
            out.append(made)
    return tuple(out)


def _inside(statement: Statement, change: Callable[[Statement], Statement | None]) -> Statement:
    made: dict[str, Any] = {
        name: map_body(getattr(statement, name), change) for name in body_fields(statement)
    }
    return replace(statement, **made) if made else statement


def map_access(
    statement: Statement, access: Callable[[str, tuple[Index, ...]], tuple[Index, ...]]
) -> Statement:
    """The statement with each buffer index replaced by ``access(buffer, index)``."""
    if isinstance(statement, Load | Store | Update):
        return replace(statement, index=access(statement.buffer, statement.index))
    return statement


def substitute_axes(body: Body, env: Mapping[str, Size]) -> Body:
    """The body with axes replaced by sizes in every index (loops of them excluded)."""

    def size(s: Size) -> Size:
        return s.substitute(env) if isinstance(s, Dim) else s

    def change(statement: Statement) -> Statement:
        if isinstance(statement, IndexValue):
            return replace(statement, index=size(statement.index))
        return map_access(
            statement,
            lambda _, index: tuple(i if isinstance(i, Checked) else size(i) for i in index),
        )

    return map_body(body, change)


def substitute_sizes(body: Body, env: dict[str, Size]) -> Body:
    """The body with symbols replaced in every index and extent; loops over them keep the axis."""

    def size(s: Size) -> Size:
        return s.substitute(env) if isinstance(s, Dim) else s

    def change(s: Statement) -> Statement:
        if isinstance(s, IndexValue):
            return replace(s, index=size(s.index))
        if isinstance(s, Parallel | For | Reduce | Scan):
            return replace(s, extent=size(s.extent))
        if isinstance(s, Loop):
            return s if s.extent is None else replace(s, extent=size(s.extent))
        return map_access(
            s, lambda _, index: tuple(i if isinstance(i, Checked) else size(i) for i in index)
        )

    return map_body(body, change)
