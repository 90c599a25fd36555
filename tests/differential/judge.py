"""Whether a compiled program gave what NumPy gives.

NumPy runs the program once, and a few times more with every rounded result moved by a few ulp,
the terms of every sum too, and the sum by ulps of the sum of their magnitudes, each time one way
and then exactly the other way. Where these runs agree bit for bit, so must the compiled program;
where they spread, it may be as far off as a few times the spread. So no bound is guessed.

Numbers that are equal are not when all are moved. Where programs ask, some runs move only a few.

Where a value has lost its digits (a remainder of something rounded), a few runs are too few to
show what may become of it. There NumPy runs again with anything else in its place, and what
changes then is left out (lost.py).

What no rule settles is drawn in these runs: the sign of a zero that is the sum of zeros, or the
extreme of zeros of both signs, and the order of zeros that are sorted.

Not here: making programs (programs.py).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

from lanes import same_bits
from numpy_lines import kind_of

from .lost import STRAYS, Lost, lost_digits, rests_on_lost
from .programs import Program, copied
from .steps import WRITTEN, Step, run_step
from .tame import is_complex_arithmetic

PAIRS = 6  # two moved values agree again in one of seven: not in all of these
FEWEST, MOST = 1, 4  # ulp of a move: what NumPy's functions promise, and ours keep within two
SLACK = 4.0
TIES, FEW = 12, 0.125  # runs that move a few numbers: of equal ones, some stay so
JUMP = 16  # ulp of a quotient that may fall on either side of a whole number
ULPS = 4  # allowed anywhere in a value that was rounded: two moves may cancel out
LONG = 32  # terms of a sum from which on their roundings, all the same way, are more than a move
_SUM = re.compile(
    r"sum|mean|average|trace|add\.reduce|@|dot\(|matmul|inner|outer|tensordot|einsum"
    r"|convolve|correlate|conv\(|avg_pool"
)
_JUMPS = re.compile(r"remainder|fmod|divmod|floor_divide|^\{0\} // \{1\}$")
_SPREAD = re.compile(r"(?<=\.)(?:nan)?(std|var)\(")
_TIES = re.compile(r"[=!]=|np\.(not_)?equal\(")
_EXTREME = re.compile(r"(?<!arg)(max|min|sort|partition|max_pool)(\.\w+)?\(|ptp\(|clip\(")


class Noise:
    """Moves floats by a few ulp; with `flip` -1 just the other way. share: of them."""

    def __init__(self, seed: int, flip: float, share: float = 1.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.flip = flip
        self.share = share

    def __call__(self, value: Any, size: Any = None) -> Any:
        """The value moved, by ulps of `size` if it is given; what is not finite stays, and zero
        where the size is."""
        array = np.asarray(value)
        if kind_of(array) not in "fc" or not array.size:
            return value
        size = np.abs(array) if size is None else np.asarray(size)
        if array.dtype.kind == "c":
            moved = np.empty(array.shape, array.dtype)
            moved.real = array.real + self._step(size, array.real.dtype)
            moved.imag = array.imag + self._step(size, array.real.dtype)
            moved = np.where(np.isfinite(array), moved, array)
        else:
            wide = array.astype(np.float64)
            moved = (wide + self._step(size, array.dtype)).astype(array.dtype)
            moved = np.where(np.isfinite(wide) & (size != 0), moved, array)
        return _as_it_was(value, moved)

    def signed(self, value: Any) -> Any:
        """The value with signs of zeros drawn anew."""
        array = np.asarray(value)
        if kind_of(array) not in "fc":
            return value
        made = np.array(array)
        for part in (made.real, made.imag) if kind_of(array) == "c" else (made,):
            drawn = self.flip * self.rng.choice([-1.0, 1.0], array.shape)
            part[part == 0] = np.copysign(0.0, drawn[part == 0]).astype(part.dtype)
        return _as_it_was(value, made)

    def jumped(self, value: Any, step: Step, operands: Sequence[Any]) -> Any:
        """A quotient or remainder on either side of its jump, where that is within some ulp."""
        array, (a, b) = np.asarray(value), map(np.asarray, operands)
        if kind_of(array) != "f" or np.broadcast_shapes(a.shape, b.shape) != array.shape:
            return value
        with np.errstate(all="ignore"):
            exact = a.astype(np.float64) / b.astype(np.float64)
            reach = JUMP * float(ml_dtypes.finfo(array.dtype).eps) * np.fmax(np.abs(exact), 1)
            near = np.abs(exact - np.rint(exact)) <= reach
            if re.search(r"floor_divide|//|\[0\]", step.text):
                other = array.astype(np.float64) - np.sign(array - exact + 0.5)
            else:
                turn = np.copysign(np.abs(b).astype(np.float64), a if "fmod" in step.text else b)
                other = array + np.where(np.abs(array) < np.abs(b) / 2, turn, -turn)
            # The operands of the pair's other run may lie on the other side already: so not "the
            # other one", but one of both here and the second there.
            upper = (self.rng.random(array.shape) < 0.5) ^ (self.flip < 0)
            sides = np.where(upper, np.fmax(array, other), np.fmin(array, other))
            moved = np.where(near, sides, array).astype(array.dtype)
        return _as_it_was(value, moved)

    def _step(self, size: Any, dtype: np.dtype[Any]) -> Any:
        info = ml_dtypes.finfo(dtype)
        ulp = np.maximum(size.astype(np.float64) * float(info.eps), float(info.smallest_subnormal))
        signs = self.rng.choice([-1.0, 1.0], size.shape)
        moved = self.flip * ulp * self.rng.uniform(FEWEST, MOST, size.shape) * signs
        if self.share == 1:
            return moved
        return np.where(self.rng.random(size.shape) < self.share, moved, 0.0)


def _as_it_was(value: Any, moved: np.ndarray[Any, Any]) -> Any:
    """An array, a NumPy scalar or a Python number, as `value` is: the last promotes otherwise."""
    if isinstance(value, np.ndarray):
        return moved
    return moved.item() if type(value) in (float, complex) else moved[()]


def _noise_of(step: Step, operands: Sequence[Any]) -> str:
    if step.noise == "exact" and is_complex_arithmetic(step, operands):
        return "rounded"
    if step.writes and "*=" in step.text and kind_of(operands[0]) == "c":
        return "rounded in place"
    if step.noise == "exact" and _EXTREME.search(step.text) and "f" in map(kind_of, operands):
        return "extreme"
    return step.noise


def _magnitude(step: Step, operands: Sequence[Any], made: Any) -> Any:
    """The sum of the magnitudes of what is added; None for a step that is no plain sum."""
    if "logaddexp" in step.text:
        return np.fmax(np.abs(made), np.fmax(*[np.abs(o) for o in operands]))
    if "np.linalg." in step.text and np.size(made):
        largest = max(np.max(np.abs(a)) for a in (made, *operands) if np.size(a))
        return np.full(np.shape(made), largest)  # errors are of the largest's size
    if not _SUM.search(step.text):
        return None
    size = np.abs(run_step(step, [np.abs(o) if kind_of(o) in "ifc" else o for o in operands]))
    terms = max(np.size(o) for o in operands) / max(np.size(made), 1)
    return np.fmax(size, np.abs(made)) * max(terms / LONG, 1)


def _moved(move: Noise, step: Step, noise: str, operands: list[Any]) -> Any:
    """The step's result, as another way to compute it might give it."""
    if noise == "sum":
        operands = [move(o) for o in operands]
    made = run_step(step, operands)
    if noise == "rounded in place":
        operands[0][...] = move(operands[0])
    if noise == "sum" and _SPREAD.search(step.text):
        return _moved_spread(move, step, operands, made)
    if noise == "sum":
        return move.signed(move(made, _magnitude(step, operands, made)))
    if noise == "extreme":
        return move.signed(made)
    return move(made, _magnitude(step, operands, made)) if noise == "rounded" else made


def _moved_spread(move: Noise, step: Step, operands: Sequence[Any], made: Any) -> Any:
    """A variance or standard deviation: what is left of it where the numbers are equal is what
    their mean was rounded by."""
    text = re.sub(r", (ddof|correction)=[^,)]*", "", _SPREAD.sub("mean(", step.text))
    size = run_step(replace(step, text=text), [np.abs(o) for o in operands])
    with np.errstate(all="ignore"):
        is_variance = "var" in _SPREAD.findall(step.text)
        root = np.sqrt(made) if is_variance else made
        moved = np.fmax(np.asarray(move(root, size)), np.zeros_like(root))
        return _as_it_was(made, (moved * moved if is_variance else moved).astype(made.dtype))


def run_numpy(
    program: Program,
    args: Sequence[Any],
    move: Noise | None = None,
    plain: Sequence[Any] = (),
    lost: Lost | None = None,
) -> list[Any]:
    """All values of the program, moved or as they are. plain: those that were not moved.
    lost: what has no digits left, to have others in its place."""
    values: list[Any] = list(args)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for step in program.steps:
            operands = [values[i] for i in step.operands]
            if move is None:
                made = run_step(step, operands)
            else:
                made = _moved(move, step, _noise_of(step, operands), operands)
                if (
                    len(operands) == 2
                    and _JUMPS.search(step.text)
                    and any(not _is_same(plain[i], values[i]) for i in step.operands)
                ):
                    made = move.jumped(made, step, operands)
            if lost is not None:
                made = lost.replaced(len(values), made, operands)
            values.append(WRITTEN if step.writes else made)
    return values


def _is_same(a: Any, b: Any) -> bool:
    """Whether an operand has not been moved; of several arrays nobody asks."""
    if isinstance(a, list | tuple) or isinstance(b, list | tuple):
        return True
    mine, theirs = np.asarray(a), np.asarray(b)
    return mine.shape == theirs.shape and bool(np.all(same_bits(mine, theirs)))


@dataclass
class Expected:
    """What NumPy gave: the values, the arguments afterwards, and how far each may be off."""

    values: list[Any]
    args: list[Any]
    samples: list[list[Any]] = field(default_factory=list)
    moved_args: list[list[Any]] = field(default_factory=list)
    strayed: list[list[Any]] = field(default_factory=list)
    strayed_args: list[list[Any]] = field(default_factory=list)


def expected(program: Program, args: Sequence[Any], rng: np.random.Generator) -> Expected:
    """Run NumPy, plain and moved."""
    own = copied(args)
    values = run_numpy(program, own)
    made = Expected([np.copy(v) if isinstance(v, np.ndarray) else v for v in values], own)
    noises = (_noise_of(s, [values[o] for o in s.operands]) for s in program.steps)
    if not any(noise.startswith(("rounded", "sum", "extreme")) for noise in noises):
        return made
    for seed in rng.integers(1 << 32, size=PAIRS):
        for flip in (1.0, -1.0):
            move = Noise(int(seed), flip)
            _run_again(program, args, made.samples, made.moved_args, move, values)
    if any(_TIES.search(step.text) for step in program.steps):
        for seed in rng.integers(1 << 32, size=TIES):
            move = Noise(int(seed), 1.0, FEW)
            _run_again(program, args, made.samples, made.moved_args, move, values)
    masks = {
        at: mask
        for at, want in enumerate(made.values)
        if at >= len(args) and want is not WRITTEN
        if (mask := lost_digits(want, [sample[at] for sample in made.samples])).any()
    }
    for turn, seed in enumerate(rng.integers(1 << 32, size=STRAYS if masks else 0)):
        move, lost = Noise(int(seed), 1.0), Lost(int(seed), turn, masks, made.samples)
        _run_again(program, args, made.strayed, made.strayed_args, move, values, lost)
    return made


def _run_again(
    program: Program, args: Sequence[Any], runs: list[Any], args_after: list[Any], *how: Any
) -> None:
    """Add another run, unless what has been moved makes a step impossible."""
    own = copied(args)
    try:
        moved = run_numpy(program, own, *how)
    except (ArithmeticError, IndexError, ValueError):
        return
    runs.append([np.copy(v) if isinstance(v, np.ndarray) else v for v in moved])
    args_after.append(own)


def difference(
    got: Any, want: Any, samples: Sequence[Any], strayed: Sequence[Any] = ()
) -> str | None:
    """What is wrong with `got`; None if nothing."""
    if type(got) is not type(want):
        return f"type {type(got).__name__} instead of {type(want).__name__}"
    mine, theirs = np.asarray(got), np.asarray(want)
    assert all(np.asarray(s).dtype == theirs.dtype for s in samples), "a move changed a dtype"
    if mine.dtype != theirs.dtype:
        return f"dtype {mine.dtype} instead of {theirs.dtype}"
    if mine.shape != theirs.shape:
        return f"shape {mine.shape} instead of {theirs.shape}"
    wrong = ~np.atleast_1d(_acceptable(mine, theirs, [np.asarray(s) for s in samples]))
    if wrong.any():
        wrong &= ~np.atleast_1d(rests_on_lost(mine, theirs, samples, strayed))
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
        # Moves of several steps may cancel out in all samples, but they leave no zero alone.
        settled = np.logical_and.reduce([same_bits(s, want) for s in samples])
        settled &= (want == 0) | ~np.isfinite(want)
        if want.dtype.kind == "c":
            settled &= np.isfinite(want)  # where an infinity meets a NaN, C leaves both parts open
        return exact | _within(got, want, samples) & ~settled


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
    if want.dtype.kind == "c":
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
        samples, strayed = ([run[at] for run in runs] for runs in (wanted.samples, wanted.strayed))
        problem = difference(got, wanted.values[at], samples, strayed)
        if problem:
            found.append(f"value {at}: {problem}")
    for at, (got, want) in enumerate(zip(own, wanted.args)):
        runs = (wanted.moved_args, wanted.strayed_args)
        samples, strayed = ([run[at] for run in each] for each in runs)
        problem = difference(got, want, samples, strayed)
        if problem:
            found.append(f"argument {at} afterwards: {problem}")
    return found
