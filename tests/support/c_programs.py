"""C programs over exported libraries: compiled strictly, fed through stdin, read from stdout.

Not here: what the libraries compute (tests/export).
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
_HEAD = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline void get(void *place, size_t size) {
    if (size && fread(place, 1, size, stdin) != size) exit(99);
}
static inline void put(const void *place, size_t size) { fwrite(place, 1, size, stdout); }
static inline int64_t get_size(void) { int64_t size; get(&size, sizeof size); return size; }
static inline void *get_array(int64_t count, size_t size) {
    void *place = malloc(count * size + 1); get(place, count * size); return place;
}
"""


class CProgram:
    """A program over one or more exported libraries.

    body: the statements of `main`. In it, `get` reads bytes of the input, `put` writes some,
    `get_size` reads an int64_t and `get_array` so many elements of a size.
    """

    def __init__(self, folder: Path, exported: list[Any] | Any, body: str) -> None:
        made = exported if isinstance(exported, list) else [exported]
        includes = "".join(f'#include "{item.header}"\n' for item in made)
        source = folder / "program.c"
        source.write_text(f"{includes}{_HEAD}int main(void) {{\n{body}\nreturn 0;\n}}\n")
        self.binary = folder / "program"
        command = ["cc", "-std=c11", *STRICT, "-O1", "-g", "-o", str(self.binary), str(source)]
        command += [str(item.library) for item in made]
        command += [f"-Wl,-rpath,{item.library.parent}" for item in made]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def run(self, *inputs: Any, tool: tuple[str, ...] = ()) -> bytes:
        """What it writes for these inputs: ints are int64_t, arrays their bytes."""
        fed = b"".join(
            np.int64(item).tobytes() if isinstance(item, int) else np.asarray(item).tobytes()
            for item in inputs
        )
        done = subprocess.run([*tool, str(self.binary)], input=fed, capture_output=True)
        assert done.returncode == 0, f"exit {done.returncode}: {done.stderr.decode()}"
        return done.stdout

    def text(self, *inputs: Any) -> str:
        """The same as text."""
        return self.run(*inputs).decode()
