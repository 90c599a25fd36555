"""Linking an object file with the system's C compiler.

Invariants: the library appears at its place whole or not at all; a symbol that neither the C
library nor libm has is an error here, not in the program that loads it.
Not here: making the object file (`tables`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ...compiler.errors import error

_FLAGS = (
    "-shared",
    "-nostartfiles",  # nothing runs when the library is loaded
    "-Wl,-z,defs",
    "-Wl,-z,noexecstack",
    "-Wl,-z,relro",
    "-Wl,--build-id=none",
    "-Wl,--gc-sections",
    "-Wl,--as-needed",
    "-s",
)


def write_library(code: bytes, header: str, library: Path, header_file: Path, cc: str) -> None:
    """Write the shared library of an object file, and its header. Raises ExportError."""
    compiler = shutil.which(cc)
    if compiler is None:
        raise error(
            "TM540",
            f"there is no C compiler called {cc!r} to link the library with",
            hint="install one (Debian, Ubuntu: apt-get install gcc; Fedora: dnf install gcc;"
            " Alpine: apk add gcc musl-dev), or name another, such as cc='clang'",
        )
    try:
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=".export-") as folder:
            place = Path(folder)
            (place / "whole.o").write_bytes(code)
            (place / "whole.h").write_text(header)
            _link(compiler, place, library.name)
            os.replace(place / "whole.h", header_file)
            os.replace(place / "whole.so", library)
    except OSError as problem:
        if isinstance(problem, type(error("TM540"))):
            raise
        raise error(
            "TM540",
            f"{library} could not be written: {problem.strerror or problem}",
            hint="export to a folder that exists and that this user may write in",
        ) from problem


def _link(compiler: str, place: Path, name: str) -> None:
    command = [compiler, *_FLAGS, f"-Wl,-soname,{name}", "-o", "whole.so", "whole.o", "-lm"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise error(
            "TM540",
            f"{compiler} could not link the library",
            detail=done.stderr.strip() or f"it ended with status {done.returncode}",
        )
