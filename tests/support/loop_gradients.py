"""Random loops over elements, written as Python, of which gradients are taken.

Not here: loops in branches and places (branch_programs.py).
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

HEADS = ["for i in range(len(x)):", "for i in range(1, n):", "for i in range(n):",
         "i = 0\n  while i < n and s < 50:"]  # fmt: skip
LINES = [
    "a[i] = np.sin(a[i - 1]) + x[i] * s", "a[i] += x[i - 1] * 0.3", "s = s * 0.9 + a[i] * 0.1",
    "a[1:] = a[:-1] * 0.5 + x[1:]", "s = s + (a * x).sum() * 0.01", "a = a * 0.9 + x * 0.1",
    "m[i % 3] = m[i % 3] * 0.7 + x[:2] * s", "s = s + m.sum() * 0.05", "x[i] = x[i] * 0.8",
    "b = a[i - 2 : i + 1].sum() if i > 2 else s\ns = s * 0.5 + b * 0.1",
    "if x[i] > 0: a[i] = s * 0.3", "if a[i] > 0.2: s = s * 0.5", "m = m @ w * 0.5",
    "for j in range(i): s = s + a[j] * x[i] * 0.02", "a[i], a[i - 1] = a[i - 1], a[i]",
    "for j in range(len(x)): a[j] = a[j] * 0.9 + s * x[j] * 0.1",
    "t = a[i]\na[i] = 2 * t\ns = s + a[i] * 0.1 - t * 0.05", "s = np.tanh(s) + a.max() * 0.1",
    "a[i] = a[(i * 3) % len(x)] * 0.5 + 0.1", "a[k] = s * 0.2\nk = (k + 1) % len(x)",
]  # fmt: skip
START = """\
def program(x, n):
  x = x * 1.0
  a, s, k = np.zeros(len(x)) + 0.1, x[0] * 0.5, 0
  m, w = np.ones((3, 2)), np.array([[0.3, 0.2], [0.1, 0.4]])
"""


def random_loop(rng: np.random.Generator) -> tuple[Callable[..., Any], str]:
    """A function of an array and a number of trips, and its text."""
    head = str(rng.choice(HEADS))
    chosen = [str(line) for line in rng.choice(LINES, size=rng.integers(1, 5))]
    body = [f"    {part}" for line in chosen for part in line.split("\n")]
    if "while" in head:
        body.append("    i += 1")
    end = "  return (a * a).sum() + s * s + (m ** 2).sum() + x.sum()\n"
    text = "\n".join([f"{START}  {head}", *body, end])
    name = f"random loop {abs(hash(text))}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space["program"], text


def differences(function: Callable[..., Any], x: Any, n: int) -> Any:
    """The gradient by finite differences; None where two steps do not agree."""
    found = []
    for step in np.eye(len(x)):
        near, far = (
            (function(x + h * step, n) - function(x - h * step, n)) / (2 * h) for h in (1e-6, 2e-6)
        )
        if abs(near - far) > 1e-4 * max(1, abs(near)):
            return None
        found.append(near)
    return np.array(found)
