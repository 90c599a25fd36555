"""Random NumPy programs: data, their source text, their arguments.

A program is a list of steps over numbered values; the first values are its parameters. It is
grown by running NumPy itself for three choices of sizes at once, so that each step is valid for
all of them.

Not here: the expressions (tests/support/numpy_lines.py, beyond_numpy.py), one step (steps.py),
which steps are no good for a comparison (tame.py), comparing (judge.py).
"""

from __future__ import annotations

import functools
import linecache
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import beyond_numpy
import numpy_lines
from beyond_numpy import KINDS, TRACED_NAMES
from lanes import edge_values
from numpy_lines import CHOICES, Line
from tracemill.compiler.types import dtype_of

from .steps import BF16, WRITTEN, Step, run_step
from .tame import is_laid_out_by_numpy, is_tame

LINES = numpy_lines.lines() + beyond_numpy.lines()
DTYPES = [
    *(np.dtype(name) for name in "? b h i l B H I L e f d F D f d l d f".split()),
]  # fmt: skip
WITH_BF16 = [BF16, BF16, *(np.dtype(name) for name in "?fd")]  # what ml_dtypes promotes it with
SHAPES = ("n", "nm", "mn", "m", "nm", "1m", "n1", "", "2n", "nn", "mnm")
NAMES = "abcdef"
MOST_ELEMENTS = 3000


@dataclass(frozen=True)
class Parameter:
    """One argument: its dtype, its shape in letters, how it lies in memory."""

    dtype: np.dtype[Any]
    shape: str
    layout: str
    odd: bool


@dataclass(frozen=True)
class Program:
    """Parameters, steps, and which values are returned."""

    parameters: tuple[Parameter, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    @functools.cached_property
    def source(self) -> str:
        """The Python function."""
        count = len(self.parameters)
        names = [*NAMES[:count], *(f"v{i}" for i in range(count, count + len(self.steps)))]
        rows = [f"def program({', '.join(names[:count])}):"]
        for at, step in enumerate(self.steps, count):
            text = step.text.format(*(names[i] for i in step.operands))
            rows.append(f"    {text}" if step.writes else f"    {names[at]} = {text}")
        rows.append(f"    return ({''.join(names[i] + ', ' for i in self.outputs)})")
        return "\n".join(rows) + "\n"

    def function(self) -> Callable[..., Any]:
        """The same, as a function with lines of its own."""
        name = f"<program {abs(hash(self.source)):x}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        space = dict(TRACED_NAMES)
        exec(compile(self.source, name, "exec"), space)
        made: Callable[..., Any] = space["program"]
        return made

    def returning(self, *outputs: int) -> Program:
        """The program that computes only these values."""
        needed, count = set(outputs), len(self.parameters)
        memory = any(step.writes for step in self.steps)
        for at in range(len(self.steps) - 1, -1, -1):
            step = self.steps[at]
            if memory or at + count in needed:
                needed |= set(step.operands) if at + count in needed or step.writes else set()
        kept = [i for i, s in enumerate(self.steps) if i + count in needed or s.writes]
        place = {i: i for i in range(count)} | {i + count: k + count for k, i in enumerate(kept)}
        try:
            steps = tuple(
                Step(s.text, tuple(place[o] for o in s.operands), s.noise, s.line)
                for s in (self.steps[i] for i in kept)
            )
            return Program(self.parameters, steps, tuple(place[o] for o in outputs))
        except KeyError:  # a write to something else: keep all
            return Program(self.parameters, self.steps, outputs)


# -- arguments


def argument(rng: np.random.Generator, parameter: Parameter, sizes: dict[str, int]) -> Any:
    """An array for a parameter, laid out as it says."""
    shape = tuple(sizes.get(letter) or 0 if letter in sizes else int(letter)
                  for letter in parameter.shape)  # fmt: skip
    array = _values(rng, parameter, shape)
    if parameter.layout == "number":
        return array.item() if array.size else 0
    return _laid_out(array, parameter.layout)


def _values(
    rng: np.random.Generator, parameter: Parameter, shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    dtype = parameter.dtype
    kind = "f" if dtype == BF16 else dtype.kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    numbers = rng.integers(0 if kind == "u" else -4, 9, shape).astype(np.float64)
    if kind in "fc":
        fractions = rng.standard_normal(shape)
        numbers = np.where(rng.random(shape) < 0.6, numbers + fractions, numbers)
    made = numbers.astype(dtype)
    if kind == "c":
        made = (made + 1j * rng.standard_normal(shape)).astype(dtype)
    if parameter.odd:
        type = dtype_of(dtype)
        assert type is not None
        odd = rng.choice(edge_values(type), shape)
        made = np.where(rng.random(shape) < 0.4, odd, made)
    return np.asarray(made, dtype)


def _laid_out(array: np.ndarray[Any, Any], layout: str) -> np.ndarray[Any, Any]:
    if layout == "reversed":
        return np.flip(np.flip(array).copy())
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    if layout == "strided" and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if layout == "broadcast" and array.ndim and array.shape[0]:
        return np.broadcast_to(array[:1], array.shape)
    return array.copy()


def arguments(rng: np.random.Generator, program: Program, sizes: dict[str, int]) -> list[Any]:
    """One argument per parameter."""
    return [argument(rng, parameter, sizes) for parameter in program.parameters]


def copied(args: Sequence[Any]) -> list[Any]:
    """Copies that lie in memory as the originals do."""
    return [_copy(arg) if isinstance(arg, np.ndarray) else arg for arg in args]


def _copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.zeros(high - low, np.uint8)
    offset = array.__array_interface__["data"][0] - low
    made: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
    if array.flags.writeable:
        made[...] = array
        return made
    if array.size:
        once = tuple([slice(None) if stride else slice(None, 1) for stride in array.strides])
        made[once] = array[once]
    made.flags.writeable = False
    return made


# -- growing


def random_sizes(rng: np.random.Generator) -> list[dict[str, int]]:
    """Three choices of sizes: two ordinary ones and one with a 0 or a 1."""
    n, m = (int(i) for i in rng.choice(np.arange(2, 8), 2, replace=False))
    edge = {"n": int(rng.integers(0, 4)), "m": int(rng.integers(0, 2))}
    if rng.integers(2):
        edge = {"n": edge["m"], "m": edge["n"]}
    longer = {"n": int(rng.integers(3, 40)), "m": int(rng.integers(3, 11))}
    made = [{"n": n, "m": m}, edge, longer]
    if rng.integers(4) == 0:
        rng.shuffle(made)  # type: ignore[arg-type]
    return made


class Grower:
    """One program being grown, with what its steps give for each choice of sizes."""

    def __init__(self, rng: np.random.Generator, size: int) -> None:
        self.rng = rng
        self.sizes = random_sizes(rng)
        odd = rng.integers(3) == 0
        self.dtypes = WITH_BF16 if rng.integers(12) == 0 else DTYPES
        self.parameters = tuple(self._parameter(odd) for _ in range(rng.integers(3, 6)))
        self.steps: list[Step] = []
        program = Program(self.parameters, (), ())
        self.args = [arguments(rng, program, sizes) for sizes in self.sizes]
        self.values = [copied(args) for args in self.args]
        for _ in range(40 * size):
            if len(self.steps) >= size:
                break
            self._try(self._pick(LINES))

    def _pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def _parameter(self, odd: bool) -> Parameter:
        layouts = ("plain",) * 4 + ("reversed", "transposed", "strided", "broadcast")
        dtype, shape, layout = self._pick(self.dtypes), self._pick(SHAPES), self._pick(layouts)
        if not shape and dtype in (np.bool, np.int64, np.float64, np.complex128):
            layout = self._pick(("number", "plain"))
        plain = layout == "number" or self.dtypes is WITH_BF16  # ml_dtypes differs for odd ones
        return Parameter(dtype, shape, layout, bool(odd) and not plain)

    def _try(self, line: Line) -> None:
        step = self._step(line)
        if step is None:
            return
        made = []
        for values in self.values:
            result = self._run(step, values)
            if result is None:
                if step.writes:
                    self._again()
                return
            made.append(result)
        self.steps.append(step)
        for values, result in zip(self.values, made):
            values.append(result)

    def _again(self) -> None:
        """A write that failed may have changed something: run all over."""
        self.values = [copied(args) for args in self.args]
        for step in self.steps:
            for values in self.values:
                values.append(self._run(step, values))

    def _step(self, line: Line) -> Step | None:
        chosen: list[int] = []
        for kind in line.kinds:
            fit = [i for i, v in enumerate(self.values[0]) if v is not WRITTEN and KINDS[kind](v)]
            if not fit:
                return None
            recent = [i for i in fit if i >= len(self.values[0]) - 6]
            chosen.append(self._pick(recent if recent and self.rng.integers(2) else fit))
        first = self.values[0][chosen[0]]
        text = line.text
        for word, choice in CHOICES.items():
            while "{" + word + "}" in text:
                if word in ("axis", "axes") and not np.ndim(first):
                    return None
                text = text.replace("{" + word + "}", choice(self.rng, first), 1)
        return Step(text, tuple(chosen), line.noise, line.text)

    def _run(self, step: Step, values: Sequence[Any]) -> Any:
        """The result; None where the step is no good for a test."""
        operands = [values[i] for i in step.operands]
        if any(o is WRITTEN for o in operands) or not is_tame(step, operands):
            return None
        if is_laid_out_by_numpy(step, operands) or step.writes and not KINDS["w"](operands[0]):
            return None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                result = run_step(step, operands)
            except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
                return None
        if step.writes:
            return WRITTEN
        array = np.asarray(result)
        fine = dtype_of(array.dtype) is not None and array.size <= MOST_ELEMENTS
        if isinstance(result, complex) and not any(isinstance(o, complex) for o in operands):
            return None  # Python's own root of a negative number: the value decides the type
        return result if fine and array.ndim <= 4 else None


def random_program(
    rng: np.random.Generator, size: int = 21
) -> tuple[Program, list[dict[str, int]], list[list[Any]]]:
    """A program of about `size` steps, three choices of sizes, and arguments for each."""
    grown = Grower(rng, size)
    count = len(grown.parameters)
    used = {o for step in grown.steps for o in step.operands}
    values = [i + count for i, step in enumerate(grown.steps) if not step.writes]
    sinks = [i for i in values if i not in used]
    more = [values[int(i)] for i in rng.integers(0, len(values), 3)] if values else []
    outputs = tuple(dict.fromkeys([*sinks, *more]))
    return Program(grown.parameters, tuple(grown.steps), outputs), grown.sizes, grown.args
