"""The checkout as the tidy rules see it: text files with their lines and syntax trees.

Invariants: only files that belong to the repository are listed, in a fixed order; paths are
relative to its root, with forward slashes.

Not here: what is right or wrong (import_rules.py, text_rules.py).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "frontend": "tracemill",
    "compiler": "tracemill.compiler",
    "runtime": "tracemill.runtime",
    "backends": "tracemill.backends",
}
PYTHON_FOLDERS = (*PACKAGES, "tests", "benchmarks", "examples")
LEFT_OUT = {"__pycache__", "benchmark-results", "build", "demo-output", "dist", "out", "shared"}
TEXT = {".py", ".md", ".toml", ".txt", ".mill", ".in", ".c", ".h", ".html", ".css", ".js", ""}


@dataclass(frozen=True)
class Source:
    """One text file of the repository."""

    path: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def folder(self) -> str:
        """The top-level folder it lies in; empty for files at the root."""
        return self.path.split("/")[0] if "/" in self.path else ""

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    @property
    def in_package(self) -> bool:
        """Whether it is installed."""
        return self.folder in PACKAGES and self.is_python


@dataclass(frozen=True, order=True)
class Violation:
    """A broken rule, at the line where an editor should jump to."""

    path: str
    line: int
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.sentence}"


Rule = Callable[[Source], Iterator[Violation]]


@cache
def sources() -> tuple[Source, ...]:
    """Every text file of the checkout."""
    return tuple(
        Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(files(ROOT))
        if path.suffix in TEXT
    )


def files(folder: Path) -> Iterator[Path]:
    """Every file below a folder, without what tools have made."""
    for path in folder.iterdir():
        if path.is_symlink() or path.name in LEFT_OUT or path.name.endswith(".egg-info"):
            continue
        if path.is_file():
            yield path
        elif not path.name.startswith(".") or path.name == ".ci":
            yield from files(path)
