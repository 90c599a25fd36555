"""Blocks under construction: where a statement of a kernel goes while it is being lowered.

Every loop axis opens one block. A statement goes to the outermost block in which all it uses is
defined, so loop-invariant code is never inside a loop and a value needed twice is made once.

Invariants: blocks on one path have rising depths; a name's home is the block that defines it.
Not here: which statements are needed (lowering_values.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..dims import Dim, Size, symbols_of
from ..types import DType
from .kernel import Constant, IndexValue, Let, Statement


class Block:
    """One block: the statements of a loop over `axis`, or of the kernel where `axis` is ''."""

    __slots__ = ("axis", "depth", "extent", "out", "parent")

    def __init__(self, axis: str, extent: Size, parent: Block | None) -> None:
        self.axis = axis
        self.extent = extent
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.out: list[Statement] = []

    def axes(self) -> list[str]:
        """Axes of this block and those around it, the outermost first."""
        found: list[str] = []
        block: Block | None = self
        while block is not None and block.axis:
            found.append(block.axis)
            block = block.parent
        return found[::-1]


class Writer:
    """Hands out names and puts statements where they belong."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.root = Block("", 1, None)
        self.home: dict[str, Block] = {}
        self._taken = set(taken)
        self._blocks: dict[str, Block] = {}
        self._constants: dict[Any, str] = {}
        self._indices: dict[Size, str] = {}
        self._lets: dict[Any, str] = {}
        self._next: dict[str, int] = {}

    def name(self, hint: str) -> str:
        """A name that is not taken: `hint`, or with a number behind it."""
        if hint not in self._taken:
            self._taken.add(hint)
            return hint
        number = self._next.get(hint, 0)
        stem = f"{hint}_" if hint[-1].isdigit() else hint
        while f"{stem}{number}" in self._taken:
            number += 1
        self._next[hint] = number + 1
        self._taken.add(f"{stem}{number}")
        return f"{stem}{number}"

    def open(self, hint: str, extent: Size, parent: Block) -> Block:
        """A block for a new axis."""
        block = Block(self.name(hint), extent, parent)
        self._blocks[block.axis] = block
        return block

    def block_of(self, indices: Iterable[Size], names: Iterable[str] = ()) -> Block:
        """The outermost block where these indices and values are known."""
        found = self.root
        for index in indices:
            if isinstance(index, Dim):
                for symbol in symbols_of((index,)):
                    block = self._blocks.get(symbol)
                    if block is not None and block.depth > found.depth:
                        found = block
        for name in names:
            block = self.home[name]
            if block.depth > found.depth:
                found = block
        return found

    def put(self, block: Block, statement: Any) -> str:
        """Append a statement that defines `statement.name`."""
        block.out.append(statement)
        name: str = statement.name
        self.home[name] = block
        return name

    def extent_of(self, axis: str) -> Size:
        """The extent of an axis."""
        return self._blocks[axis].extent

    def constant(self, value: Any, dtype: DType, hint: str = "c") -> str:
        """A literal, made once."""
        key = (dtype, repr(value))
        found = self._constants.get(key)
        if found is None:
            found = self.put(self.root, Constant(self.name(hint), value, dtype))
            self._constants[key] = found
        return found

    def index_value(self, index: Size, hint: str = "at") -> str:
        """The value of an index, made once."""
        found = self._indices.get(index)
        if found is None:
            statement = IndexValue(self.name(hint), index)
            found = self.put(self.block_of((index,)), statement)
            self._indices[index] = found
        return found

    def let(self, hint: str, word: str, args: Sequence[str], dtype: DType) -> str:
        """A word of the scalar language applied to values, made once."""
        key = (word, *args, dtype)
        found = self._lets.get(key)
        if found is None:
            statement = Let(self.name(hint), word, tuple(args), dtype)
            found = self.put(self.block_of((), args), statement)
            self._lets[key] = found
        return found
