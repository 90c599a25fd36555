"""Whether a compiled program gave what NumPy gives.

NumPy runs the program once, and a few times more with every rounded result moved by two to twelve
ulp and the terms of every sum too, each time one way and then exactly the other way. Where these
runs agree bit for bit, so must the compiled program; where they spread, it may be as far off as a
few times the spread. So no bound is guessed, and what is chaotic is left out by itself.

Not here: making programs (programs.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from lanes import same_bits
from numpy_lines import kind_of

from .programs import WRITTEN, Program, Step, copied, is_complex_arithmetic, run_step

PAIRS = 4
SLACK = 8.0
ULPS = 4  # allowed anywhere in a value that was rounded: two moves may cancel out


class Noise:
    """Moves floats by two to twelve ulp; with `flip` -1 just the other way."""

    def __init__(self, seed: int, flip: float) -> None:
        self.rng = np.random.default_rng(seed)
        self.flip = flip

    def __call__(self, value: Any) -> Any:
        """The value moved; zeros and what is not finite stay."""
        array = np.asarray(value)
        if kind_of(array) not in "fc" or not array.size:
            return value
        if array.dtype.kind == "c":
            size = np.abs(array)
            moved = np.empty(array.shape, array.dtype)
            moved.real = array.real + self._step(size, array.real.dtype)
            moved.imag = array.imag + self._step(size, array.real.dtype)
            moved = np.where(np.isfinite(array), moved, array)
        else:
            wide = array.astype(np.float64)
            moved = (wide + self._step(np.abs(wide), array.dtype)).astype(array.dtype)
            moved = np.where(np.isfinite(wide) & (wide != 0), moved, array)
        return moved if isinstance(value, np.ndarray) else moved.astype(array.dtype)[()]

    def _step(self, size: Any, dtype: np.dtype[Any]) -> Any:
        info = ml_dtypes.finfo(dtype)
        ulp = np.maximum(size.astype(np.float64) * float(info.eps), float(info.smallest_subnormal))
        signs = self.rng.choice([-1.0, 1.0], size.shape)
        return self.flip * ulp * self.rng.uniform(2, 12, size.shape) * signs


def _noise_of(step: Step, operands: Sequence[Any]) -> str:
    inexact = step.noise == "exact" and is_complex_arithmetic(step, operands)
    return "rounded" if inexact else step.noise


def run_numpy(program: Program, args: Sequence[Any], move: Noise | None = None) -> list[Any]:
    """All values of the program, moved or as they are."""
    values: list[Any] = list(args)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for step in program.steps:
            operands = [values[i] for i in step.operands]
            noise = _noise_of(step, operands)
            if noise == "sum" and move is not None:
                operands = [move(o) for o in operands]
            made = run_step(step, operands)
            if noise in ("rounded", "sum") and move is not None:
                made = move(made)
            values.append(WRITTEN if step.writes else made)
    return values


@dataclass
class Expected:
    """What NumPy gave: the values, the arguments afterwards, and how far each may be off."""

    values: list[Any]
    args: list[Any]
    samples: list[list[Any]] = field(default_factory=list)


def expected(program: Program, args: Sequence[Any], rng: np.random.Generator) -> Expected:
    """Run NumPy, plain and moved."""
    own = copied(args)
    values = run_numpy(program, own)
    made = Expected([np.copy(v) if isinstance(v, np.ndarray) else v for v in values], own)
    noises = (_noise_of(s, [values[o] for o in s.operands]) for s in program.steps)
    if any(noise in ("rounded", "sum") for noise in noises):
        for seed in rng.integers(1 << 32, size=PAIRS):
            for flip in (1.0, -1.0):
                try:
                    moved = run_numpy(program, copied(args), Noise(int(seed), flip))
                except (ArithmeticError, IndexError, ValueError):
                    continue
                made.samples.append([np.copy(v) if isinstance(v, np.ndarray) else v for v in moved])
    return made


def difference(got: Any, want: Any, samples: Sequence[Any]) -> str | None:
    """What is wrong with `got`; None if nothing."""
    if type(got) is not type(want):
        return f"type {type(got).__name__} instead of {type(want).__name__}"
    mine, theirs = np.asarray(got), np.asarray(want)
    if mine.dtype != theirs.dtype:
        return f"dtype {mine.dtype} instead of {theirs.dtype}"
    if mine.shape != theirs.shape:
        return f"shape {mine.shape} instead of {theirs.shape}"
    wrong = ~np.atleast_1d(_acceptable(mine, theirs, [np.asarray(s) for s in samples]))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    mine, theirs = np.atleast_1d(mine), np.atleast_1d(theirs)
    return f"{mine[at]!r} instead of {theirs[at]!r} at {list(at)}, {int(wrong.sum())} in all"


def _acceptable(got: Any, want: Any, samples: Sequence[Any]) -> Any:
    exact = same_bits(got, want)
    if not samples:
        return exact
    with np.errstate(all="ignore"):
        if kind_of(want) not in "fc":
            return exact | np.logical_or.reduce([s != want for s in samples])
        if want.dtype.kind == "c":
            return exact | _within(got, want, samples)
        return exact | _within(got, want, samples)


def _within(got: Any, want: Any, samples: Sequence[Any]) -> Any:
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    eps = float(ml_dtypes.finfo(want.real.dtype).eps)
    want, got = want.astype(wide), got.astype(wide)
    spread = np.zeros(want.shape)
    unstable = np.zeros(want.shape, bool)
    for sample in samples:
        sample = sample.astype(wide)
        unstable |= np.isfinite(sample) != np.isfinite(want)
        unstable |= ~np.isfinite(want) & ~((sample == want) | (sample != sample) & (want != want))
        spread = np.fmax(spread, np.abs(sample - want))
    if want.dtype.kind == "c":  # where an infinity meets a NaN, C leaves both parts open
        unstable |= ~np.isfinite(want) & ~np.isfinite(got) & (spread == spread)
    allowed = SLACK * spread + (ULPS * eps * np.abs(want) if spread.any() else 0.0)
    return unstable | (np.abs(got - want) <= allowed) & np.isfinite(want)


def check(
    program: Program, call: Callable[..., Any], args: Sequence[Any], wanted: Expected
) -> list[str]:
    """Call the compiled program; everything that is wrong."""
    own = copied(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = call(*own)
        except Exception as problem:  # noqa: BLE001  NumPy raised nothing, so this is a finding
            return [f"raised {type(problem).__name__}: {problem}"]
    found = []
    for at, got in zip(program.outputs, results, strict=True):
        problem = difference(got, wanted.values[at], [s[at] for s in wanted.samples])
        if problem:
            found.append(f"value {at}: {problem}")
    if not wanted.samples:
        for at, (got, want) in enumerate(zip(own, wanted.args)):
            problem = difference(got, want, ())
            if problem:
                found.append(f"argument {at} afterwards: {problem}")
    return found
