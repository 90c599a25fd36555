"""Derives the polynomial coefficients of compiler/ops/math/coefficients.py.

Each `Fit` asks for the polynomial, in the variable's own powers, that minimises the greatest
weighted error over an interval (Remez' exchange in mpmath). Run this file to print the module;
a test compares it with what is committed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import wrap

import mpmath as mp
import numpy as np

mp.mp.dps = 50


@dataclass(frozen=True)
class Fit:
    """weight(x) * (target(x) - sum(c[i] * x**i)) is kept small for low <= x <= high."""

    name: str
    target: Callable[[mp.mpf], mp.mpf]
    low: object
    high: object
    degree: dict[str, int]
    weight: Callable[[mp.mpf], mp.mpf]
    doc: str


def minimax(fit: Fit, degree: int) -> tuple[list[mp.mpf], mp.mpf]:
    """Coefficients, lowest power first, and the greatest weighted error."""
    low, high = mp.mpf(fit.low), mp.mpf(fit.high)
    grid = [_cosine_point(low, high, i, 60 * (degree + 2)) for i in range(60 * (degree + 2) + 1)]
    known = [(x, fit.target(x), fit.weight(x)) for x in grid]
    picks = [round(i * (len(grid) - 1) / (degree + 1)) for i in range(degree + 2)]
    for _ in range(30):
        coefficients, level = _solve([known[i] for i in picks], degree)
        errors = [w * (y - _evaluate(coefficients, x)) for x, y, w in known]
        following = _extrema(errors, degree + 2)
        worst = max(abs(e) for e in errors)
        if following is None or worst <= abs(level) * mp.mpf("1.001"):
            break
        picks = following
    return coefficients, worst


def _cosine_point(low: mp.mpf, high: mp.mpf, index: int, count: int) -> mp.mpf:
    return (low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * index / count)


def _solve(points: list[tuple[mp.mpf, mp.mpf, mp.mpf]], degree: int):
    size = degree + 2
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for row, (x, y, w) in enumerate(points):
        power = mp.mpf(1)
        for column in range(degree + 1):
            matrix[row, column] = w * power
            power *= x
        matrix[row, degree + 1] = (-1) ** row
        right[row] = w * y
    solution = mp.lu_solve(matrix, right)
    return list(solution[: degree + 1]), solution[degree + 1]


def _evaluate(coefficients: list[mp.mpf], x: mp.mpf) -> mp.mpf:
    total = mp.mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def _extrema(errors: list[mp.mpf], count: int) -> list[int] | None:
    """Indices of `count` alternating extreme errors, the smallest ends dropped."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    if len(runs) < count:
        return None
    while len(runs) > count:
        drop_first = abs(errors[runs[0]]) < abs(errors[runs[-1]])
        runs = runs[1:] if drop_first else runs[:-1]
    return runs


def _series_safe(function, small_value, x, at="1e-12"):
    """function(x), or the limit where x is too near 0 for it."""
    return mp.mpf(small_value) if abs(x) < mp.mpf(at) else function(x)


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.001")
QUARTER_PI = mp.pi / 4 * mp.mpf("1.01")
ONE = lambda x: mp.mpf(1)


def _odd_tail(f, third):
    """(f(r) - r) / r**3 as a function of z = r*r."""
    return lambda z: _series_safe(lambda z: (f(mp.sqrt(z)) - mp.sqrt(z)) / z / mp.sqrt(z), third, z)


def _erfcx_tail(t):
    """erfc(x) * exp(x*x) * (x + k) at x of t = (x - k) / (x + k)."""
    k = ERFC_K
    x = k * (1 + t) / (1 - t) if t < 1 else mp.inf
    if x > 10**12:
        return (1 + (1 - t) / (1 + t)) / mp.sqrt(mp.pi)
    return (mp.erfc(x) * mp.exp(x * x) if x < 100 else _erfcx_far(x)) * (x + k)


def _erfcx_far(x):
    z = 1 / (2 * x * x)
    total, term = mp.mpf(1), mp.mpf(1)
    for n in range(1, 30):
        term *= -(2 * n - 1) * z
        total += term
    return total / (x * mp.sqrt(mp.pi))


ERFC_K = mp.mpf(3)

DIGAMMA_ZERO = mp.findroot(mp.digamma, mp.mpf("1.46163"))

FITS = [
    Fit("EXP", lambda r: _series_safe(lambda r: (mp.exp(r) - 1 - r) / r**2, "0.5", r),
        -HALF_LN2, HALF_LN2, {"f32": 4, "f64": 9}, lambda r: r**2 / mp.exp(r),
        "(e**r - 1 - r) / r**2"),
    Fit("EXPM1", lambda r: _series_safe(lambda r: (mp.exp(r) - 1 - r) / r**2, "0.5", r),
        -HALF_LN2, HALF_LN2, {"f32": 5, "f64": 10}, lambda r: abs(r) + mp.mpf("1e-30"),
        "(e**r - 1 - r) / r**2, relative to e**r - 1"),
    Fit("EXP2", lambda r: _series_safe(lambda r: (2**r - 1) / r, mp.log(2), r),
        "-0.5005", "0.5005", {"f32": 5, "f64": 10}, lambda r: abs(r) / 2**r + mp.mpf("1e-30"),
        "(2**r - 1) / r"),
    Fit("EXP2_TAIL", lambda r: _series_safe(
            lambda r: ((2**r - 1) / r - mp.log(2)) / r, mp.log(2) ** 2 / 2, r),
        "-0.5005", "0.5005", {"f64": 9}, lambda r: r**2 / 2**r + mp.mpf("1e-30"),
        "((2**r - 1) / r - log(2)) / r"),
    Fit("LOG_DIRECT", lambda f: _series_safe(
            lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mp.mpf(1) / 3, f),
        mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(mp.mpf(2)) - 1, {"f32": 7},
        lambda f: _series_safe(lambda f: abs(f**3 / mp.log1p(f)), 0, f) + mp.mpf("1e-20"),
        "(log(1+f) - f + f**2/2) / f**3"),
    Fit("LOG_BY_DIVISION", lambda z: _series_safe(
            lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, mp.mpf(2) / 3, z),
        0, (3 - 2 * mp.sqrt(2)) ** 2 * mp.mpf("1.0001"), {"f64": 6}, lambda z: z + mp.mpf("1e-9"),
        "(2 atanh(s)/s - 2) / s**2 in s**2, s = f/(2+f)"),
    Fit("LOG_TAIL", lambda z: _series_safe(
            lambda z: ((mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z - mp.mpf(1) / 3) / z,
            mp.mpf(1) / 5, z, "1e-10"),
        0, (3 - 2 * mp.sqrt(2)) ** 2 * mp.mpf("1.0001"), {"f64": 7},
        lambda z: z**2 + mp.mpf("1e-9"), "((atanh(s)/s - 1)/s**2 - 1/3) / s**2 in s**2"),
    Fit("LOG_SINGLE", lambda z: _series_safe(
            lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, mp.mpf(2) / 3, z),
        0, (3 - 2 * mp.sqrt(2)) ** 2 * mp.mpf("1.0001"), {"f64": 3}, lambda z: z + mp.mpf("1e-9"),
        "(2 atanh(s)/s - 2) / s**2 in s**2, good enough for powers in f32"),
    Fit("EXP2_SINGLE", lambda r: _series_safe(lambda r: (2**r - 1) / r, mp.log(2), r),
        "-0.5005", "0.5005", {"f64": 5}, lambda r: abs(r) / 2**r + mp.mpf("1e-30"),
        "(2**r - 1) / r, good enough for f32"),
    Fit("SIN_SMALL", _odd_tail(mp.sin, mp.mpf(-1) / 6), 0, QUARTER_PI**2, {"f32": 2, "f64": 5},
        lambda z: z + mp.mpf("1e-9"), "(sin(r) - r) / r**3 in r**2, |r| <= pi/4"),
    Fit("COS_SMALL", lambda z: _series_safe(
            lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24, z, "1e-10"),
        0, QUARTER_PI**2, {"f32": 2, "f64": 5}, lambda z: z**2 + mp.mpf("1e-9"),
        "(cos(r) - 1 + r**2/2) / r**4 in r**2, |r| <= pi/4"),
    Fit("ASIN", _odd_tail(mp.asin, mp.mpf(1) / 6), 0, "0.2501", {"f32": 4, "f64": 11},
        lambda z: z + mp.mpf("1e-9"), "(asin(r) - r) / r**3 in r**2, |r| <= 1/2"),
    Fit("ATAN", _odd_tail(mp.atan, -mp.mpf(1) / 3), 0, mp.tan(mp.pi / 8) ** 2 * mp.mpf("1.001"),
        {"f32": 4, "f64": 10}, lambda z: z + mp.mpf("1e-9"),
        "(atan(r) - r) / r**3 in r**2, |r| <= tan(pi/8)"),
    Fit("SINH", _odd_tail(mp.sinh, mp.mpf(1) / 6), 0, HALF_LN2**2, {"f32": 1, "f64": 4},
        lambda z: z + mp.mpf("1e-9"), "(sinh(r) - r) / r**3 in r**2, |r| <= log(2)/2"),
    Fit("COSH", lambda z: _series_safe(
            lambda z: (mp.cosh(mp.sqrt(z)) - 1) / z, mp.mpf(1) / 2, z),
        0, HALF_LN2**2, {"f32": 2, "f64": 5}, lambda z: z + mp.mpf("1e-9"),
        "(cosh(r) - 1) / r**2 in r**2, |r| <= log(2)/2"),
    Fit("TANH", _odd_tail(mp.tanh, -mp.mpf(1) / 3), 0, "0.37", {"f32": 4, "f64": 10},
        lambda z: z + mp.mpf("1e-9"), "(tanh(r) - r) / r**3 in r**2, |r| <= 0.6"),
    Fit("EXP_TWICE", lambda r: _series_safe(lambda r: (mp.exp(2 * r) - 1) / r, 2, r),
        -HALF_LN2 / 2, HALF_LN2 / 2, {"f32": 5, "f64": 10},
        lambda r: abs(r) / mp.exp(2 * r) + mp.mpf("1e-30"), "(e**2r - 1) / r"),
    Fit("CBRT", lambda m: m ** (-mp.mpf(1) / 3), 1, 2, {"f32": 3, "f64": 4}, ONE,
        "m**(-1/3), a first guess"),
    Fit("ERF", lambda z: _series_safe(
            lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1, z),
        0, "1.0001", {"f32": 6, "f64": 12}, ONE, "erf(x) / x - 1 in x**2, |x| <= 1"),
    Fit("ERFC", _erfcx_tail, "-1", "1", {"f32": 11, "f64": 24}, ONE,
        "erfc(x) e**(x*x) (x + 3) in t = (x - 3) / (x + 3), x >= 0"),
    Fit("ERFC_MIDDLE", _erfcx_tail, "-0.5005", "0.3700", {"f32": 5, "f64": 13},
        lambda t: mp.exp(-((ERFC_K * (1 + t) / (1 - t)) ** 2)) * (1 - t) / (2 * ERFC_K),
        "the same for 1 <= x <= 6.5, measured by what it adds to erf(x)"),
    Fit("LOG_GAMMA_AT_ONE", lambda t: _series_safe(
            lambda t: mp.loggamma(1 + t) / t, -mp.euler, t),
        "-0.5", "0.5", {"f64": 27}, ONE, "log(gamma(1 + t)) / t"),
    Fit("LOG_GAMMA_AT_TWO", lambda t: _series_safe(
            lambda t: mp.loggamma(2 + t) / t, 1 - mp.euler, t),
        "-0.5", "0.5", {"f64": 18}, ONE, "log(gamma(2 + t)) / t"),
    Fit("DIGAMMA", lambda t: _series_safe(
            lambda u: mp.digamma(DIGAMMA_ZERO + u) / u, mp.zeta(2, DIGAMMA_ZERO),
            t + mp.mpf("1.5") - DIGAMMA_ZERO),
        "-0.5", "0.5", {"f64": 21}, ONE,
        "digamma(x) / (x - its zero) in t = x - 3/2, 1 <= x <= 2"),
]  # fmt: skip


def module_text() -> str:
    """The text of compiler/ops/math/coefficients.py."""
    lines = [
        '"""Minimax polynomials, lowest power first; printed by tests/ops/derive_coefficients.py.',
        "",
        "Beside each: what it approximates and the greatest weighted error in units of the last",
        'place (2**-24 or 2**-53), before the coefficients are rounded."""',
        "",
        "from __future__ import annotations",
        "",
        "from ...types import F32, F64, DType",
        "",
        "Coefficients = dict[DType, tuple[float, ...]]",
        "",
    ]
    for fit in FITS:
        rows = []
        for kind, degree in fit.degree.items():
            coefficients, error = minimax(fit, degree)
            bits = 24 if kind == "f32" else 53
            convert = np.float32 if kind == "f32" else np.float64
            values = [float(convert(mp.nstr(c, 40))) for c in coefficients]
            rows.append((kind.upper(), values, float(error * 2**bits)))
            print(f"{fit.name} {kind}: {rows[-1][2]:.3g} units", file=sys.stderr)
        lines.append(f"# {fit.doc}")
        lines.append(f"{fit.name}: Coefficients = {{")
        for kind, values, units in rows:
            lines.append(f"    {kind}: (  # {units:.2g} units")
            lines += wrap(", ".join(map(repr, values)) + ",", 96, initial_indent=" " * 8,
                          subsequent_indent=" " * 8)  # fmt: skip
            lines.append("    ),")
        lines += ["}  # fmt: skip", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(module_text(), end="")
