"""The size program of an export, with everything worked out that is known when it is made.

A program for one set of fixed sizes vanishes; of the others, what depends on the sizes of a call
remains.

Invariants: the rows left and the values known compute every slot in `needed` as the whole program
would, and fail where it would.
Not here: where sizes come from (`description`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from ...compiler.records import dataclass
from ..llvm.native.encoder import Frame, SizeSpec
from ..llvm.native.layout import NONE, Size

_VALUES: Mapping[Size, Callable[[int, int], int]] = {
    Size.ADD: lambda a, b: a + b,
    Size.SUB: lambda a, b: a - b,
    Size.MUL: lambda a, b: a * b,
    Size.FLOORDIV: lambda a, b: a // b,
    Size.MOD: lambda a, b: a % b,
    Size.MAX: max,
    Size.MIN: min,
    Size.ALIGN: lambda a, _: (a + 63) // 64 * 64,
}
_TESTS: Mapping[Size, Callable[[int, int], bool]] = {
    Size.EQUAL: lambda a, b: a == b,
    Size.DIFFERENT: lambda a, b: a != b,
    Size.LESS: lambda a, b: a < b,
    Size.LESS_EQUAL: lambda a, b: a <= b,
    Size.DIVISIBLE: lambda a, b: b != 0 and a % b == 0,
}


@dataclass(slots=True)
class Slots:
    """What is known of slots: values, and which hold the same as another."""

    frame: Frame
    values: dict[int, int] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)

    def resolve(self, handle: int) -> int:
        """The slot that stands for this one."""
        while handle in self.same:
            handle = self.same[handle]
        return handle

    def value(self, handle: int) -> int | None:
        """The value of a slot, if it is known."""
        if handle == NONE:
            return 0
        fixed = self.frame.constant_value(handle)
        return self.values.get(handle) if fixed is None else fixed


def folded(rows: Iterable[SizeSpec], slots: Slots) -> list[SizeSpec]:
    """The rows that remain; values worked out are added to `slots`."""
    left: list[SizeSpec] = []
    for row in rows:
        row = row._replace(a=slots.resolve(row.a), b=slots.resolve(row.b))
        a, b = slots.value(row.a), slots.value(row.b)
        if row.op in _TESTS:
            if row.a == row.b and row.op in (Size.EQUAL, Size.LESS_EQUAL):
                continue
            if a is not None and b is not None and _TESTS[row.op](a, b):
                continue
        elif row.op in _VALUES and a is not None and b is not None:
            if b != 0 or row.op not in (Size.FLOORDIV, Size.MOD):
                slots.values[row.target] = _VALUES[row.op](a, b)
                continue
        left.append(row)
    return left


def live(rows: Iterable[SizeSpec], needed: Iterable[int]) -> list[SizeSpec]:
    """The rows whose results are needed, or that test."""
    wanted = set(needed)
    kept: list[SizeSpec] = []
    for row in reversed(list(rows)):
        if row.op in _TESTS or row.target in wanted:
            kept.append(row)
            wanted |= {row.a, row.b}
    return kept[::-1]
