"""Small random programs of nested `if` and `for` around writes of three arrays.

`a` and `b` are vectors, `m` is a matrix, `s` a number, `k` an integer; only elements and parts of
the arrays are written, so no two names are ever one array.

Not here: what they are compared with (tests/compiled/test_branches_in_place.py), programs that
jump and assign whole arrays (flow_programs.py).
"""

from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np

_STATEMENTS = (
    "a[{k}] = {f}", "b[{k}] = {f}", "a[{k}] += {f}", "a[{k}], a[{k}] = a[{k}], a[{k}]",
    "a[{k}], b[{k}] = b[{k}], a[{k}]", "s = {f}", "k = (k + {k}) % 5", "b[1:] = a[:-1]",
    "a *= 0.5", "a[:] = b", "a += b[{k}]", "b[:2] = a[{k}]", "m[{k} % 3] = a[:2]",
    "m[{k} % 3, 1] = {f}", "a[{k}] = m[{k} % 3, 0]", "m[0] = m[1] - m[0]",
    "old = a.copy()\na[{k}] = {f}\nb[{k}] = old[{k}]", "u = a + b\nu[{k}] = s\ns = u.sum() * 0.1",
)  # fmt: skip
_NUMBERS = (
    "a[{k}]", "b[{k}] * 0.5", "s", "np.float64(1.5)", "x[{k}] + s * 0.25", "b.sum() * 0.125",
)  # fmt: skip
_PLACES = ("k", "0", "4", "(k + 1) % 5", "k // 2")
_TESTS = ("x[{k}] > 0", "a[{k}] > b[{k}]", "k % 2 == 0", "s < 1", "m[1, 1] > {f}")


def program(seed: int, size: int) -> tuple[Any, str]:
    """A function of one array and its text: branches and loops around writes of three arrays."""
    rng = random.Random(seed)

    def filled(text: str) -> str:
        for hole, choices in (("{f}", _NUMBERS), ("{k}", _PLACES)):
            while hole in text:
                text = text.replace(hole, rng.choice(choices), 1)
        return text

    def block(depth: int, indent: str) -> list[str]:
        lines: list[str] = []
        for _ in range(rng.randint(1, 3) if depth else size):
            kind = rng.random()
            if depth < 3 and kind < 0.45:
                lines += [
                    f"{indent}if {filled(rng.choice(_TESTS))}:",
                    *block(depth + 1, f"{indent}  "),
                ]
                if rng.random() < 0.5:
                    lines += [f"{indent}else:", *block(depth + 1, f"{indent}  ")]
            elif depth < 3 and kind < 0.6:
                lines += [f"{indent}for t in range(n):", f"{indent}  k = (k + t) % 5"]
                lines += block(depth + 1, f"{indent}  ")
            else:
                made = filled(rng.choice(_STATEMENTS)).split("\n")
                lines += [indent + line for line in made]
        return lines

    head = "def program(x, n, k):\n  a, b, m, s = x + 1, x * 2, x[0] * np.ones((3, 2)), x[0]\n"
    text = head + "\n".join(block(0, "  ")) + "\n  return a, b, m, s, k\n"
    name = f"branches in place {seed} {size}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["program"], text
