"""The history of a function's compilations, for people.

Not here: deciding when to compile.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..compiler.records import dataclass


@dataclass(frozen=True, slots=True)
class Compilation:
    """One compilation. reason: which argument was new, its old and new value."""

    number: int
    signature: str
    reason: str
    seconds: float
    kernels: int
    compiled: int

    def __str__(self) -> str:
        return (
            f"{self.number}. {self.signature}: {self.reason} "
            f"({self.seconds * 1e3:.1f} ms, {self.kernels} kernels, {self.compiled} compiled)"
        )


@dataclass(frozen=True, slots=True)
class Recompiles:
    """All compilations of a function so far; prints as one line each."""

    entries: tuple[Compilation, ...]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Compilation]:
        return iter(self.entries)

    def __getitem__(self, index: int) -> Compilation:
        return self.entries[index]

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries)) or "not compiled yet"

    __repr__ = __str__
