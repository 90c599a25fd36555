"""Random NumPy programs: data, their source text, their arguments.

A program is a list of steps over numbered values; the first values are its parameters. It is
grown by running NumPy itself for three choices of sizes at once, so that each step is valid for
all of them.

Not here: the expressions (tests/support/numpy_lines.py), comparing (judge.py).
"""

from __future__ import annotations

import functools
import linecache
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from lanes import edge_values
from numpy_lines import CHOICES, KINDS, Line, kind_of, lines
from tracemill.compiler.types import dtype_of

LINES = lines()
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = [
    *(np.dtype(name) for name in "? b h i l B H I L e f d F D f d l d f".split()),
]  # fmt: skip
WITH_BF16 = [BF16, BF16, *(np.dtype(name) for name in "?fd")]  # what ml_dtypes promotes it with
SHAPES = ("n", "nm", "mn", "m", "nm", "1m", "n1", "", "2n", "nn", "mnm")
NAMES = "abcdef"
MOST_ELEMENTS = 3000


@dataclass(frozen=True)
class Step:
    """`text` with its choices made, still with `{0}`, `{1}`... for the operands."""

    text: str
    operands: tuple[int, ...]
    noise: str
    line: str = ""  # the text before the choices

    @property
    def writes(self) -> bool:
        """Whether it is a statement."""
        return self.noise == "write"


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
        space: dict[str, Any] = {"np": np, "ml_dtypes": ml_dtypes}
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


@functools.cache
def step_function(text: str, count: int, statement: bool) -> Callable[..., Any]:
    """A step as a function of its operands."""
    names = [f"o{i}" for i in range(count)]
    space: dict[str, Any] = {"np": np, "ml_dtypes": ml_dtypes}
    body = text.format(*names)
    if not statement:
        made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {body}", space)
        return made
    exec(f"def run({', '.join(names)}):\n    {body}\n", space)
    run: Callable[..., Any] = space["run"]
    return run


def run_step(step: Step, operands: Sequence[Any]) -> Any:
    """What NumPy makes of it; an array in place of a Python bool or int."""
    return step_function(step.text, len(operands), step.writes)(*operands)


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
    elif array.size:
        made[tuple(slice(None, 1) if not s else slice(None) for s in array.strides)] = array[
            tuple(slice(None, 1) if not s else slice(None) for s in array.strides)
        ]
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
        if any(o is WRITTEN for o in operands) or not _tame(step, operands):
            return None
        if _laid_out_by_numpy(step, operands) or step.writes and not KINDS["w"](operands[0]):
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


WRITTEN = object()
_ARITHMETIC = re.compile(r"[*/]|square|absolute|sum|prod|1j|diff|reciprocal|sign")


def is_complex_arithmetic(step: Step, operands: Sequence[Any]) -> bool:
    """Whether complex numbers are computed with, not only moved or compared."""
    moves = step.noise == "exact" and not _ARITHMETIC.search(step.text)
    return not moves and any(kind_of(o) == "c" for o in operands)


def _laid_out_by_numpy(step: Step, operands: Sequence[Any]) -> bool:
    """Whether it is up to the memory order NumPy chose for a result if this is a view."""
    first = operands[0]
    while isinstance(first, np.ndarray) and isinstance(first.base, np.ndarray):
        first = first.base
    reshapes = "reshape" in step.text or "ravel" in step.text
    return reshapes and isinstance(first, np.ndarray) and not first.flags.c_contiguous


def _tame(step: Step, operands: Sequence[Any]) -> bool:
    """Whether the C language and the order of sums leave the result alone."""
    arrays = [np.asarray(o) for o in operands]
    if (
        step.writes
        or step.noise == "exact"
        and ("astype(np." in step.text or "dtype=np." in step.text)
    ):
        return _casts_tame(step, arrays)
    if is_complex_arithmetic(step, arrays) and not all(np.isfinite(x).all() for x in arrays):
        return False  # C leaves open which part becomes NaN
    if any(word in step.text for word in ("signbit", "copysign", "frexp")):
        return all(bool(np.isfinite(a).all()) for a in arrays)  # the sign of NaN is nobody's
    if step.noise != "sum":
        return True
    if "einsum" in step.text and not all(np.isfinite(a).all() for a in arrays):
        return False  # it takes factors out of sums, infinite ones too
    for array in arrays:
        if kind_of(array) == "i" and (np.abs(array.astype(np.float64)) > 2.0**40).any():
            return False  # as floats they lose digits, which ones depends on the order
        if kind_of(array) in "fc":
            bits = np.finfo(array.dtype).maxexp if array.dtype != BF16 else 128
            with np.errstate(all="ignore"):
                size = np.abs(array).astype(np.float64)
                finite = size[np.isfinite(size)]
                high = 2.0 ** (2 if "prod" in step.text else bits // 4)
                if (finite > high).any() or ((finite < 1 / high) & (finite > 0)).any():
                    return False
                deviation = "var" in step.text or "std" in step.text
                if array.itemsize == 2 and (array.size > 64 or deviation):
                    return False  # NumPy rounds after each: always the same way, small ones go
                if "prod" in step.text and array.size > bits // 2:
                    return False
    return True


def _casts_tame(step: Step, arrays: Sequence[np.ndarray[Any, Any]]) -> bool:
    """Floats that become integers must fit."""
    if step.writes:
        target = arrays[0].dtype
        return all(np.can_cast(a.dtype, target, "same_kind") for a in arrays[1:])
    integers = [name for name in ("int8", "int16", "int32", "int64") if name in step.text]
    if not integers or kind_of(arrays[0]) not in "fc":
        return True
    with np.errstate(all="ignore"):
        real = arrays[0].real.astype(np.float64)
        low = 0 if "uint" in step.text else -127
        return bool(np.isfinite(real).all() and (real >= low).all() and (real < 127).all())


def random_program(
    rng: np.random.Generator, size: int = 24
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
