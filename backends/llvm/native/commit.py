"""Which rows are a call's commit: those that must be run all or not at all.

Invariants: one stretch of rows; a loop lies inside it or outside, so it is entered and left once.
Not here: what others can see (`from_plan` says), running rows (`walker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .layout import RowKind

JUMPS = (RowKind.JUMP, RowKind.JUMP_IF_ZERO, RowKind.JUMP_UNLESS_ZERO)


class _Step(Protocol):
    """What is asked of a row."""

    @property
    def kind(self) -> RowKind: ...
    @property
    def target(self) -> int: ...
    @property
    def visible(self) -> bool: ...


def commit_of(rows: Sequence[_Step]) -> range:
    """From the first visible row to the last; a loop that holds one of them is inside whole."""
    visible = [at for at, row in enumerate(rows) if row.visible or row.kind == RowKind.SWAP]
    if not visible:
        return range(0)
    first, last = visible[0], visible[-1]
    loops = [
        (row.target, at) for at, row in enumerate(rows) if row.kind in JUMPS and row.target <= at
    ]
    for begin, end in sorted(loops, key=lambda loop: loop[0] - loop[1]):
        if begin <= last and first <= end:
            first, last = min(first, begin), max(last, end)
    return range(first, last + 1)
