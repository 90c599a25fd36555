"""Rows of the size program, and symbolic sizes turned into such rows.

Invariants: the same operation on the same slots is one row.
Not here: what sizes mean (`compiler.dims`).
"""

from __future__ import annotations

from collections.abc import Mapping

from ....compiler.dims import Dim
from ....compiler.dims import Size as DimSize
from .encoder import Frame, SizeSpec
from .layout import NONE, Size

_FACTORS = {"//": Size.FLOORDIV, "%": Size.MOD, "max": Size.MAX, "min": Size.MIN}


class SizeTerms:
    """A size program being written."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.rows: list[SizeSpec] = []
        self._made: dict[tuple[Size, int, int], int] = {}
        self._tests: set[SizeSpec] = set()

    def apply(self, op: Size, a: int, b: int = NONE) -> int:
        """The slot of an operation's result."""
        key = (op, a, b)
        if key not in self._made:
            self._made[key] = self.frame.slot()
            self.rows.append(SizeSpec(op, a, b, self._made[key]))
        return self._made[key]

    def test(self, op: Size, a: int, b: int) -> None:
        """A guard; one that is there already, or compares a slot with itself, is left out."""
        if op is Size.EQUAL:
            a, b = min(a, b), max(a, b)
            if a == b:
                return
        row = SizeSpec(op, a, b)
        if row not in self._tests:
            self._tests.add(row)
            self.rows.append(row)

    def of(self, size: DimSize, symbols: Mapping[str, int]) -> int:
        """The slot of a symbolic size, from the slots of its symbols."""
        if not isinstance(size, Dim):
            return self.frame.constant(size)
        total = NONE
        for factors, coefficient in size.terms:
            term = self.frame.constant(coefficient)
            for factor in factors:
                slot = self._factor(factor, symbols)
                term = slot if term == self.frame.constant(1) else self.apply(Size.MUL, term, slot)
            total = term if total == NONE else self.apply(Size.ADD, total, term)
        return total

    def _factor(self, factor: object, symbols: Mapping[str, int]) -> int:
        if isinstance(factor, str):
            return symbols[factor]
        if not isinstance(factor, tuple):
            raise TypeError(f"{factor!r} is not a factor of a size")
        op, left, right = factor
        return self.apply(_FACTORS[op], self.of(left, symbols), self.of(right, symbols))
