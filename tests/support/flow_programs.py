"""Small random programs of nested `if`, `while`, `for` and jumps over a few variables.

`i` and `j` are Python integers, `u` and `v` are NumPy's floats, `x` is the caller's array, `y` and
`z` are the function's own, `w` is a view of one of them, `box` a list. So each variable keeps one
type, as loops and branches of the graph ask.

Not here: what they are compared with (tests/compiled/test_python_control_flow_random.py).
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

_FLOATS = ["u", "v", "x[0]", "x[1]", "y[-1]", "x.sum()", "0.5 * u", "u - v", "np.abs(v)",
           "np.float64(i)", "x[i % 3]"]  # fmt: skip
_INTEGERS = ["i", "j", "i + 1", "j - 1", "2", "i * j % 5", "(i + 3 * j) % 7", "len(x)"]
_STATEMENTS = [
    "u = {f}", "v = 0.25 * {f} + 1", "u, v = v, {f}", "i = ({i}) % 6", "j = ({i} + 2) % 5",
    "i += 1", "j = j * 2 % 9", "x[0] = {f}", "x[i % 3] = {f}", "y[1:] += 1", "w[0] = v",
    "u = {f} if {t} else {f}", "y = y * 0.5", "box[0] = u", "box[1] = i", "u = min(u, {f})",
    "x *= 0.5", "t = u + v\nu = t * 0.5", "i = bump(i)", "u = halved(u, i)", "y[0] += 1",
    "z = y", "z[0] = u", "y, z = z + 0.5, y", "box[0] = z[0]", "w = z[1:3]", "z = z[::-1]",
    "z = y if {t} else z", "z = z + w[0]", "u = y[i % 2 : i % 2 + 2].sum()", "v = x[: j % 4].sum()",
    "z[i % 3 :] *= 0.5", "y[j % 2 : j % 2 + 2] += w", "u = x[i % 3 :] @ z[i % 3 :]",
    "y[1:][: i % 3] = v", "z[: -1 - j % 2] -= 1",
]  # fmt: skip
_HEAD = """
def program(x, n, i, j):
    y = x + 1
    z = x * 2
    w = y[:2]
    u = x.sum()
    v = x[1] * 2
    box = [u, i]
    def bump(m):
        if m > 3:
            return m - 3
        return m + 1
"""
_TAIL = "    return x, y, z, w, u, v + box[0], i + box[1], j\n"


def halved(u: Any, i: Any) -> Any:
    """A helper that jumps out of its loop."""
    if u > 1:
        return u * 0.5
    for q in range(3):
        if u + q > i:
            u = u + 1
            break
    return u


class _Writer:
    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.left = size
        self.loops = 0

    def fill(self, text: str) -> str:
        """A statement with its holes filled."""
        for hole, made in (("{f}", self.number), ("{i}", self.integer), ("{t}", self.test)):
            while hole in text:
                text = text.replace(hole, made(), 1)
        return text

    def number(self) -> str:
        return self.random.choice(_FLOATS)

    def integer(self) -> str:
        return self.random.choice(_INTEGERS)

    def test(self, depth: int = 0) -> str:
        """A condition, of numbers or integers, known or traced."""
        kind = self.random.random()
        if depth < 2 and kind < 0.3:
            one, other = self.test(depth + 1), self.test(depth + 1)
            return self.random.choice([f"({one} and {other})", f"({one} or {other})",
                                       f"not ({one})"])  # fmt: skip
        if kind < 0.36:
            return f"{self.number()} < {self.number()} <= {self.number()}"
        if kind < 0.6:
            return f"{self.number()} {self.random.choice(['<', '>', '!='])} {self.number()}"
        if kind < 0.9:
            return (
                f"{self.integer()} % {self.random.choice([2, 3])} == {self.random.choice([0, 1])}"
            )
        return self.random.choice(["True", "x.shape[0] > 2", "False"])

    def block(self, depth: int, loop: bool, indent: str) -> list[str]:
        """Some statements."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            if self.left > 0:
                self.left -= 1
                lines += self.statement(depth, loop, indent)
        return lines or [f"{indent}u = u + 0.125"]

    def statement(self, depth: int, loop: bool, indent: str) -> list[str]:
        kind, inner = self.random.random(), f"{indent}    "
        if depth < 3 and kind < 0.28:
            return self.chosen(depth, loop, indent)
        if depth < 3 and kind < 0.5:
            return self.repeated(depth, loop, indent, kind < 0.38)
        if loop and kind < 0.62:
            jump = self.random.choice(["break", "continue"])
            return [f"{indent}if {self.test()}:", f"{inner}{jump}"]
        if kind < 0.68:
            return [f"{indent}if {self.test()}:", f"{inner}return x, y, z, w, u, v, i, j"]
        made = self.fill(self.random.choice(_STATEMENTS))
        return [indent + line for line in made.split("\n")]

    def chosen(self, depth: int, loop: bool, indent: str) -> list[str]:
        lines = []
        for word in ("if", "elif", "else"):
            if word == "if" or self.random.random() < 0.4:
                test = "" if word == "else" else f" {self.test()}"
                lines += [f"{indent}{word}{test}:", *self.block(depth + 1, loop, indent + "    ")]
        return lines

    def repeated(self, depth: int, loop: bool, indent: str, is_while: bool) -> list[str]:
        self.loops += 1
        inner, count = f"{indent}    ", f"k{self.loops}"
        if is_while:
            limit = self.random.randint(1, 5)
            lines = [f"{indent}{count} = 0", f"{indent}while {count} < {limit} and {self.test(1)}:",
                     f"{inner}{count} += 1"]  # fmt: skip
        else:
            bounds = self.random.choice(["3", "n", "1, 5", "i % 4", "n, 0, -1"])
            lines = [f"{indent}for {count} in range({bounds}):", f"{inner}j = (j + {count}) % 7"]
        lines += self.block(depth + 1, True, inner)
        if self.random.random() < 0.25:
            lines += [f"{indent}else:", *self.block(depth + 1, loop, inner)]
        return lines


def program(seed: int, size: int) -> tuple[Callable[..., Any], str]:
    """A function of an array and three integers, and its text."""
    body = _Writer(seed, size).block(0, False, "    ")
    text = _HEAD + "\n".join(body) + "\n" + _TAIL
    name = f"flow program {seed} {size}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np, "halved": halved}
    exec(compile(text, name, "exec"), space)
    found: Callable[..., Any] = space["program"]
    return found, text
