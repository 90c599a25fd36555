"""The checkout passes ruff and mypy, so that no check lives outside the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .checkout import PACKAGES, ROOT


def tool(*arguments: str, **environment: str) -> None:
    """Run a checker in the checkout and show what it found."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, "\n" + done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    tool("ruff", "check", "--no-cache", "--output-format", "concise", ".")


def test_the_format_is_ruffs() -> None:
    tool("ruff", "format", "--no-cache", "--check", ".")


@pytest.mark.processes
def test_mypy_strict_finds_nothing_in_the_package(tmp_path: Path) -> None:
    package = tmp_path / "tracemill"
    package.mkdir()
    for path in [*(ROOT / "frontend").iterdir(), *(ROOT / name for name in PACKAGES)]:
        if path.name not in ("frontend", "__pycache__"):
            (package / path.name).symlink_to(path)
    cache = str(ROOT / ".mypy_cache")
    tool("mypy", "--cache-dir", cache, "-p", "tracemill", MYPYPATH=str(tmp_path))
