"""Transcendental bodies against mpmath: at most 2 units in the last place, edges exact.

Units are those of the true value's binade. The quick test runs the word evaluator on a few
hundred operands of every magnitude; the dense one machine code (nightly: 3 million). Run this
file to print the table.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.scalar import trace_body
from tracemill.compiler.ops.scalar_reference import evaluate
from tracemill.compiler.types import F32, F64, DType

LIMIT = 2.0


@dataclass(frozen=True)
class Case:
    """A function, the interval where it is interesting, for f32 and f64; its true value."""

    name: str
    low: tuple[float, float]
    high: tuple[float, float]
    truth: Callable[..., object]
    extended: str | None = None  # NumPy's long double function, for dense sweeps
    limit: float = LIMIT  # in units of the last place

    def __repr__(self) -> str:
        return self.name


def _both(name, low, high, truth, extended=None):
    return Case(name, (low, low), (high, high), truth, extended or name)


def _quantile(p):
    """In as many digits as the distance of p from 0 or 1 takes."""
    if p <= 0 or p >= 1:
        return {0: -mp.inf, 1: mp.inf}[int(p)]
    with mp.workprec(140 + 2 * max(0, -mp.frexp(min(p, 1 - p))[1])):
        return -mp.sqrt(2) * mp.erfinv(1 - 2 * p)


def _inverse_erf(y):
    return mp.sign(y) * mp.inf if abs(y) == 1 else mp.erfinv(y)


CASES = [
    Case("exp", (-110, -750), (100, 712), mp.exp, "exp"),
    Case("exp2", (-160, -1080), (130, 1030), lambda x: mp.power(2, x), "exp2"),
    Case("expm1", (-20, -40), (90, 712), mp.expm1, "expm1"),
    _both("log", 0, 4, mp.log),
    _both("log2", 0, 4, lambda x: mp.log(x, 2)),
    _both("log10", 0, 4, mp.log10),
    _both("log1p", -1, 3, mp.log1p),
    Case("sin", (-2e5, -2e9), (2e5, 2e9), mp.sin, "sin"),
    Case("cos", (-2e5, -2e9), (2e5, 2e9), mp.cos, "cos"),
    Case("tan", (-2e5, -2e9), (2e5, 2e9), mp.tan, "tan"),
    _both("arcsin", -1, 1, mp.asin),
    _both("arccos", -1, 1, mp.acos),
    _both("arctan", -5, 5, mp.atan),
    Case("sinh", (-90, -711), (90, 711), mp.sinh, "sinh"),
    Case("cosh", (-90, -711), (90, 711), mp.cosh, "cosh"),
    _both("tanh", -5, 5, mp.tanh),
    _both("arcsinh", -5, 5, mp.asinh),
    _both("arccosh", 1, 5, mp.acosh),
    _both("arctanh", -1, 1, mp.atanh),
    _both("cbrt", -8, 8, lambda x: mp.sign(x) * mp.cbrt(abs(x))),
    _both("arctan2", -5, 5, mp.atan2),
    _both("hypot", -5, 5, mp.hypot),
    _both("power", 0, 20, lambda x, y: mp.power(x, y)),
    Case("erf", (-3, -3), (3, 3), mp.erf),
    Case("erfc", (-3, -3), (11, 27.5), mp.erfc),
    Case("ndtr", (-14, -38), (5, 5), lambda x: mp.erfc(-x / mp.sqrt(2)) / 2),
    Case("ndtri", (0, 0), (1, 1), _quantile, None, 4.0),
    Case("erfinv", (-1, -1), (1, 1), _inverse_erf, None, 4.0),
    Case("gammaln", (0, 0), (40, 40), mp.loggamma, None, 4.0),
    Case("digamma", (0, 0), (40, 40), mp.digamma, None, 4.0),
    Case("trigamma", (0, 0), (40, 40), lambda x: mp.psi(1, x), None, 4.0),
    Case("expit", (-104, -745), (30, 50), lambda x: 1 / (1 + mp.exp(-x))),
]
SATURATING = {
    "exp", "exp2", "expm1", "sinh", "cosh", "tanh", "erf", "erfc", "ndtr", "expit",
}  # fmt: skip
POSITIVE = {"gammaln", "digamma", "trigamma"}  # near their negative zeros digits are lost
ARITY = {"arctan2": 2, "hypot": 2, "power": 2}


def operands(case: Case, dtype: DType, count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """A third uniform in the interval, a third of every magnitude, a third near 0 or of order 1."""
    column = 0 if dtype is F32 else 1
    low, high = case.low[column], case.high[column]
    kind = dtype.numpy.type
    top = 38 if dtype is F32 else 308

    def one() -> np.ndarray:
        wide = 10.0 ** rng.uniform(-top, top, count) * rng.choice([-1, 1], count)
        narrow = 2.0 ** rng.uniform(-30, 3, count) * rng.choice([-1, 1], count)
        return np.concatenate([rng.uniform(low, high, count), wide, narrow]).astype(kind)

    if case.name in POSITIVE:
        return [np.abs(one())]
    return [rng.permutation(one()) if i else one() for i in range(ARITY.get(case.name, 1))]


def errors(case: Case, lanes: list[np.ndarray], got: np.ndarray) -> np.ndarray:
    """Distance of each finite result to the truth, in units of the truth's last place."""
    mp.mp.prec = 120
    digits, least = (24, -149) if got.dtype == np.float32 else (53, -1074)
    found = np.zeros(len(got))
    for i, value in enumerate(got):
        at = [mp.mpf(float(x[i])) for x in lanes]
        true = _truth(case, at, least)
        if true is None:
            assert np.isnan(value), (case, [x[i] for x in lanes], value)
            continue
        if mp.isinf(true):
            found[i] = 0 if value == float(true) else np.inf
            continue
        exponent = mp.frexp(true)[1] if true else least
        unit = mp.ldexp(1, max(int(exponent) - digits, least))
        largest = float(np.finfo(got.dtype).max)
        if np.isinf(value):
            assert abs(true) + unit > largest, (case, at, true)
            assert (true > 0) == (value > 0), (case, at, true)
        else:
            found[i] = float(abs(mp.mpf(float(value)) - true) / unit)
    return found


def _truth(case: Case, at, least):
    """The true value; None where the function is not real there."""
    x = at[0]
    if case.name in ("log", "log2", "log10") and x <= 0 or case.name == "log1p" and x <= -1:
        return None if x < (0 if case.name != "log1p" else -1) else mp.mpf("-inf")
    if case.name in ("arcsin", "arccos") and abs(x) > 1 or case.name == "arccosh" and x < 1:
        return None
    if case.name == "ndtri" and not 0 <= x <= 1 or case.name == "erfinv" and abs(x) > 1:
        return None
    if case.name == "arctanh" and abs(x) >= 1:
        return None if abs(x) > 1 else x * mp.inf
    if case.name == "power" and x < 0 and at[1] != mp.floor(at[1]):
        return None
    if case.name == "power" and x != 0 and abs(at[1] * mp.log(abs(x))) > 2000:
        odd = x < 0 and at[1] % 2 == 1
        return (-1 if odd else 1) * (mp.inf if (at[1] > 0) == (abs(x) > 1) else mp.mpf(0))
    if case.name in SATURATING:
        at = [max(min(x, mp.mpf(3000)), mp.mpf(-3000))]
    if case.name in ("erfc", "ndtr") and abs(x) < mp.mpf("1e-40"):
        at = [mp.mpf(0)]
    mp.mp.prec = 120 if abs(x) < 1e6 else 1300
    value = case.truth(*at)
    mp.mp.prec = 120
    return value


@pytest.mark.parametrize("dtype", [F32, F64], ids=repr)
@pytest.mark.parametrize("case", CASES, ids=repr)
def test_a_function_is_right_to_two_units(case, dtype):
    rng = np.random.default_rng(list(case.name.encode()))
    lanes = operands(case, dtype, 60, rng)
    function = trace_body(ALL[case.name].scalar, [dtype] * len(lanes))
    (got,) = evaluate(function, lanes)
    assert errors(case, lanes, got).max() <= case.limit


@pytest.mark.parametrize("dtype", [F32, F64], ids=repr)
@pytest.mark.parametrize(
    ("name", "x", "y"),
    [
        ("exp", -np.inf, 0.0), ("exp", np.inf, np.inf), ("exp", -0.0, 1.0), ("log", 0.0, -np.inf),
        ("log", -0.0, -np.inf), ("log", 1.0, 0.0), ("log", np.inf, np.inf), ("log2", 8.0, 3.0),
        ("log1p", -0.0, -0.0), ("log1p", np.inf, np.inf), ("log1p", -1.0, -np.inf),
        ("expm1", -0.0, -0.0), ("expm1", -np.inf, -1.0), ("sin", -0.0, -0.0), ("cos", -0.0, 1.0),
        ("tan", -0.0, -0.0), ("tanh", -0.0, -0.0), ("tanh", np.inf, 1.0), ("tanh", -np.inf, -1.0),
        ("sinh", -0.0, -0.0), ("sinh", -np.inf, -np.inf), ("cosh", -np.inf, np.inf),
        ("arcsin", -0.0, -0.0), ("arctan", -0.0, -0.0), ("arcsinh", -0.0, -0.0),
        ("arctanh", -0.0, -0.0), ("arctanh", 1.0, np.inf), ("arccosh", 1.0, 0.0),
        ("cbrt", -8.0, -2.0), ("cbrt", -0.0, -0.0), ("cbrt", np.inf, np.inf), ("erf", -0.0, -0.0),
        ("erf", np.inf, 1.0), ("erfc", np.inf, 0.0), ("erfc", -np.inf, 2.0), ("ndtr", 0.0, 0.5),
        ("arccos", 1.0, 0.0), ("sin", np.inf, np.nan), ("cos", -np.inf, np.nan),
        ("log", -1.0, np.nan), ("arcsin", 1.5, np.nan), ("arccosh", 0.5, np.nan),
    ],
)  # fmt: skip
def test_an_edge_has_its_exact_value(name, x, y, dtype):
    function = trace_body(ALL[name].scalar, [dtype])
    (got,) = evaluate(function, [np.array([x, np.nan], dtype.numpy)])
    assert np.isnan(got[1])
    assert np.array_equal(got[0], dtype.numpy.type(y), equal_nan=True)
    assert np.isnan(y) or np.signbit(got[0]) == np.signbit(y)


def dense_errors(case: Case, dtype: DType, count: int, seed: int) -> float:
    """The greatest error of machine code on a dense sweep, by long double."""
    from tracemill.backends.llvm.machine import host_machine
    from word_runner import Words

    rng = np.random.default_rng(seed)
    lanes = operands(case, dtype, count, rng)
    function = trace_body(ALL[case.name].scalar, [dtype] * len(lanes))
    machine = host_machine()
    (got,) = Words([function], machine.vector_bits // dtype.bits, machine).run(0, lanes)
    with np.errstate(all="ignore"):
        true = getattr(np, case.extended)(*(x.astype(np.longdouble) for x in lanes))
        digits, least = (24, -149) if dtype is F32 else (53, -1074)
        exponent = np.frexp(true)[1]
        unit = np.ldexp(np.longdouble(1), np.maximum(exponent - digits, least))
        error = np.abs(got.astype(np.longdouble) - true) / unit
        rounded = true.astype(dtype.numpy)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return float(np.where(same, np.where(np.isfinite(error), error, 0), error).max())


# Where long double is no wider than float64 it is the truth for f32 alone.
DENSE = [F32, F64] if np.finfo(np.longdouble).nmant >= 63 else [F32]


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", DENSE, ids=repr)
@pytest.mark.parametrize("case", [c for c in CASES if c.extended], ids=repr)
def test_machine_code_is_right_to_two_units_on_a_dense_sweep(case, dtype, request):
    count = 1_000_000 if request.config.getoption("--tier") == "nightly" else 15_000
    error = dense_errors(case, dtype, count, seed=1)
    assert error <= LIMIT
    assert error <= documented(case, dtype) + 0.1, "docs/numerics.md says less: measure it again"


def documented(case: Case, dtype: DType) -> float:
    """The error that the documentation tells."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "numerics.md").read_text()
    (row,) = re.findall(rf"^\| {case.name} \| (\S+) \| (\S+) \|$", page, re.MULTILINE)
    return float(row[0 if dtype is F32 else 1])


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    for row in CASES:
        if row.extended:
            worst = [dense_errors(row, d, many, seed=3) for d in (F32, F64)]
            print(f"{row.name:10} f32 {worst[0]:.2f}   f64 {worst[1]:.2f}")
