"""What a loop's body computes that is the same in every iteration: it moves before the loop.

Invariants: only values move, never an effect or a loop; a load moves only if nothing in the body
writes its buffer. The loop is known to run at least once where they are emitted.
Not here: index expressions, which move by themselves (indices.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from ...compiler.dims import Dim, Size
from ...compiler.kernel.kernel import (
    Checked,
    Constant,
    IndexValue,
    Let,
    Load,
    Statement,
    Store,
    Update,
    walk,
)  # fmt: skip

Block = tuple[Statement, ...]


def split_invariant(body: Block, axis: str, carried: tuple[str, ...] = ()) -> tuple[Block, Block]:
    """The statements that do not change with `axis`, and the others."""
    written = {s.buffer for s in walk(body) if isinstance(s, Store | Update)}
    changing = {axis, *carried}
    moved: list[Statement] = []
    kept: list[Statement] = []
    for s in body:
        if _is_value(s, written) and not changing.intersection(_names(s)):
            moved.append(s)
        else:
            kept.append(s)
            changing.update(_defined(s))
    return tuple(moved), tuple(kept)


def _is_value(s: Statement, written: set[str]) -> bool:
    if isinstance(s, Load):
        return s.buffer not in written and not any(isinstance(i, Checked) for i in s.index)
    return isinstance(s, Let | Constant | IndexValue)


def _defined(s: Statement) -> tuple[str, ...]:
    names = getattr(s, "names", None)
    if names is not None:
        return tuple(names)
    name = getattr(s, "name", None)
    return () if name is None else (name,)


def _names(s: Statement) -> Iterator[str]:
    """Values, axes and buffers that a value statement reads."""
    if isinstance(s, Let):
        yield from s.args
    elif isinstance(s, IndexValue):
        yield from _symbols(s.index)
    elif isinstance(s, Load):
        yield s.buffer
        for part in s.index:
            if not isinstance(part, Checked):
                yield from _symbols(part)
        yield from (name for name in (s.mask, s.other) if name is not None)


def _symbols(size: Size) -> frozenset[str]:
    return size.symbols() if isinstance(size, Dim) else frozenset()
