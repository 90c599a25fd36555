"""The size program: sizes as straight-line rows that a call evaluates natively.

Equal sizes share a slot, so the table grows with the number of different shapes, not of nodes.

Invariants: a row uses earlier rows only.
Not here: the polynomials themselves (dims.py), the arena's layout (passes/schedule.py).
"""

from __future__ import annotations

from typing import cast

from .dims import Dim, Size
from .plan import SizeRow

_OPERATIONS = {"//": "floordiv", "%": "mod", "max": "max", "min": "min"}


class SizeProgram:
    """Builds the rows. `symbols` says where each symbol comes from: (argument buffer, axis)."""

    def __init__(self, symbols: dict[str, tuple[int, int]]) -> None:
        self.rows: list[SizeRow] = []
        self.symbols: dict[str, int] = {}
        self._slots: dict[SizeRow, int] = {}
        self._sizes: dict[Size, int] = {}
        for name, (buffer, axis) in symbols.items():
            self.symbols[name] = self.row("extent", buffer, axis)

    def row(self, op: str, a: int, b: int = 0) -> int:
        """The slot of one row."""
        row = SizeRow(op, a, b)
        slot = self._slots.get(row)
        if slot is None:
            slot = self._slots[row] = len(self.rows)
            self.rows.append(row)
        return slot

    def const(self, value: int) -> int:
        """The slot of a number."""
        return self.row("const", value)

    def slot(self, size: Size) -> int:
        """The slot of a size. Raises KeyError for a symbol that no argument has."""
        slot = self._sizes.get(size)
        if slot is None:
            slot = self.const(size) if isinstance(size, int) else self._polynomial(size)
            self._sizes[size] = slot
        return slot

    def slots(self, sizes: tuple[Size, ...]) -> tuple[int, ...]:
        """The slots of a shape."""
        return tuple([self.slot(size) for size in sizes])

    def add(self, a: int, b: int) -> int:
        """The slot of the sum of two slots."""
        left, right = self.rows[a], self.rows[b]
        if left.op == "const" and left.a == 0:
            return b
        if left.op == right.op == "const":
            return self.const(left.a + right.a)
        return self.row("add", a, b)

    def aligned(self, size: int) -> int:
        """The slot of a slot rounded up to a multiple of 64."""
        row = self.rows[size]
        if row.op == "const":
            return self.const(-(-row.a // 64) * 64)
        return self.row("align", size)

    def _polynomial(self, size: Dim) -> int:
        total: int | None = None
        constant = 0
        for factors, coefficient in size.terms:
            if not factors:
                constant = coefficient
                continue
            term = self._factor(factors[0])
            for factor in factors[1:]:
                term = self.row("mul", term, self._factor(factor))
            if total is not None and coefficient < 0:
                if coefficient != -1:
                    term = self.row("mul", term, self.const(-coefficient))
                total = self.row("sub", total, term)
                continue
            if coefficient != 1:
                term = self.row("mul", term, self.const(coefficient))
            total = term if total is None else self.row("add", total, term)
        assert total is not None
        if constant:
            op = "add" if constant > 0 else "sub"
            total = self.row(op, total, self.const(abs(constant)))
        return total

    def _factor(self, factor: object) -> int:
        if isinstance(factor, str):
            return self.symbols[factor]
        operation, a, b = cast("tuple[str, Size, Size]", factor)
        return self.row(_OPERATIONS[operation], self.slot(a), self.slot(b))
