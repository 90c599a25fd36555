"""Text cases: reading `.mill` files, seeded inputs for a graph, and comparing what two graphs do.

Not here: what a case must show (the tests).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tracemill.compiler.dims import Dim, symbols_of
from tracemill.compiler.errors import TracemillError
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.graph import Graph
from tracemill.compiler.types import TensorType

Outcome = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """One case: its title, the lines under it, and where it stands."""

    title: str
    body: str
    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.stem}:{self.line}"


def read_cases(path: Path) -> list[Case]:
    """The cases of a file: each begins with a line ``# title``."""
    cases: list[Case] = []
    title, start, lines = "", 0, list[str]()
    for number, line in enumerate([*path.read_text().split("\n"), "# "], 1):
        if line.startswith("# "):
            if title:
                cases.append(Case(title, "\n".join(lines).strip() + "\n", path, start))
            title, start, lines = line[2:], number, []
        else:
            lines.append(line)
    return cases


def inputs_for(graph: Graph, seed: int) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Arguments and a store for `graph`: odd values among them, sizes from 0 to 5."""
    rng = np.random.default_rng(seed)
    shapes = [p.type.shape for p in graph.params if isinstance(p.type, TensorType)]
    names = sorted(symbols_of(tuple(size for shape in shapes for size in shape)))
    env = {name: int(rng.integers(0 if seed % 4 == 0 else 1, 6)) for name in names}
    args = [random_array(rng, p.tensor, env) for p in graph.params]
    store = {v.name: random_array(rng, v.type, env) for v in graph.variables.values()}
    return args, store


def random_array(rng: np.random.Generator, type: TensorType, env: Mapping[str, int]) -> np.ndarray:
    """An array of `type`: small numbers, and for floats NaN, infinities and both zeros."""
    shape = tuple(s.evaluate(env) if isinstance(s, Dim) else s for s in type.shape)
    if type.dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if type.dtype.kind == "u" else -3
    numbers = rng.integers(low, 4, shape).astype(np.float64)
    if type.dtype.kind in "fc":
        numbers += rng.random(shape)
        odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape)
        numbers = np.where(rng.random(shape) < 0.3, odd, numbers)
    with np.errstate(all="ignore"):
        return np.asarray(numbers).astype(type.dtype.numpy)


def outcome(graph: Graph, args: list[np.ndarray], store: Mapping[str, np.ndarray]) -> Outcome:
    """All that a run does: results, stored arrays and shown text; or the code of its error."""
    stored = {name: np.array(array) for name, array in store.items()}
    shown: list[str] = []
    try:
        results = evaluate(graph, args, stored, show=shown.append)
    except TracemillError as problem:
        return ("error", problem.code)
    return (*results, *[stored[name] for name in sorted(stored)], tuple(shown))


def same(left: Outcome, right: Outcome) -> bool:
    """Equal bit for bit, but that any NaN equals any other."""
    return len(left) == len(right) and all(_same_item(a, b) for a, b in zip(left, right))


def _same_item(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return bool(a == b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return _same_item(a.real, b.real) and _same_item(a.imag, b.imag)
    if a.dtype.kind in "biu":
        return bool((a == b).all())
    gone = np.isnan(a)
    return bool((gone == np.isnan(b)).all()) and a[~gone].tobytes() == b[~gone].tobytes()


def notes_of(text: str) -> list[tuple[int, str, str]]:
    """The complaints written in a verifier's case: line, code, fragment."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        for code, fragment in re.findall(r"error\[(V\d+)\]: ([^;]*)", line):
            found.append((number, code, fragment.strip()))
    return found
