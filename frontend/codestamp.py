"""The identity of the compiler that is installed: what cached code depends on beside its key.

A kernel's key spells the kernel; the bodies of ops and the code generator behind it are this
package itself. So the stamp covers the name, size and time of every source file
of the compiler and the back ends: an edited or upgraded package never meets its old code.

Not here: the processor and llvmlite (the target's key).
"""

from __future__ import annotations

import functools
import hashlib
import os

from . import backends, compiler


@functools.cache
def code_stamp() -> str:
    """The stamp, taken once."""
    digest = hashlib.sha256()
    for package in (compiler, backends):
        for line in sorted(_sources(package.__path__[0])):
            digest.update(line.encode())
    return digest.hexdigest()


def _sources(root: str) -> list[str]:
    """Name, size and time of every source file below `root`."""
    found = []
    pending = [root]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(".py"):
                    state = entry.stat()
                    place = entry.path[len(root) :]
                    found.append(f"{place}\0{state.st_size}\0{state.st_mtime_ns}\n")
                elif "." not in name and name != "__pycache__" and entry.is_dir():
                    pending.append(entry.path)
    return found
