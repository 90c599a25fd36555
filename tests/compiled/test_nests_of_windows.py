"""Loops that are one kernel and read rows and windows of arrays, or write a few elements at once.

Not here: loops around single elements (test_nests.py), long windows, which stay rows of the plan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.plan import Branch, Loop

pytestmark = pytest.mark.cpu
SIZES = (0, 1, 3, 9, 20)
Array = np.ndarray[Any, Any]


def product(a: Array) -> Array:
    out = np.zeros((a.shape[0], a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[0]):
            out[i, j] = a[i, :] @ a[:, j]
    return out


def root(a: Array) -> Array:
    lower = np.zeros_like(a)
    for i in range(a.shape[0]):
        for j in range(i + 1):
            rest = a[i, j] - (lower[i, :j] * lower[j, :j]).sum()
            if i == j:
                lower[i, j] = np.sqrt(rest)
            else:
                lower[i, j] = rest / lower[j, j]
    return lower


def smoothed(a: Array) -> Array:
    weights = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], a.dtype)
    out = np.zeros_like(a)
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            out[i, j] = (a[i - 1 : i + 2, j - 1 : j + 2] * weights).sum() / 16
    return out


def spread(a: Array) -> Array:
    out = np.zeros(a.shape[0], a.dtype)
    for i in range(a.shape[0]):
        if a[i].max() > 6:
            out[i] = a[i].max() - a[:, i].min()
    return out


def attracted(p: Array) -> Array:
    v = np.zeros_like(p)
    for _ in range(2):
        for i in range(p.shape[0]):
            for j in range(p.shape[0]):
                if i != j:
                    r = p[j] - p[i]
                    v[i] += r / (1 + (r * r).sum())
        for i in range(p.shape[0]):
            p[i] += v[i] * 0.25
    return v


def rows_exchanged(p: Array) -> None:
    n = p.shape[0]
    for i in range(n // 2):
        kept = p[i].copy()
        p[i] = p[n - 1 - i] * 2
        p[n - 1 - i] = kept[::-1]


def a_step_of_three(p: Array) -> None:
    for i in range(p.shape[0]):
        p[i, 1:] = p[i, :-1] + p[i, 1:]


SQUARES = (product, root, smoothed, spread)
ROWS = (attracted, rows_exchanged, a_step_of_three)


def square(n: int, rng: Any) -> Array:
    a = rng.integers(0, 9, (n, n)).astype(float)
    return a @ a.T + 20 * np.eye(n)


@pytest.mark.parametrize("program", [*SQUARES, *ROWS], ids=lambda f: f.__name__)
def test_they_are_one_kernel_that_computes_what_numpy_does(program, rng) -> None:
    jitted = tm.jit(program)
    for n in SIZES:
        given = square(n, rng) if program in SQUARES else rng.random((n, 3))
        mine, theirs = given.copy(), given.copy()
        got, want = jitted(mine), program(theirs)
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)
        if want is not None:
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    rows = jitted.lower(given).plan.rows
    assert not any(isinstance(row, Loop | Branch) for row in rows)


@pytest.mark.parametrize("program", ROWS, ids=lambda f: f.__name__)
def test_few_elements_have_numpys_bits(program, rng) -> None:
    for dtype in (np.float64, np.float32):
        mine = rng.random((9, 3)).astype(dtype)
        theirs = mine.copy()
        got, want = tm.jit(program)(mine), program(theirs)
        np.testing.assert_array_equal(mine, theirs)
        if want is not None:
            np.testing.assert_array_equal(got, want)


def test_a_row_that_is_not_there_is_an_error() -> None:
    @tm.jit
    def total(x, n):
        found = 0.0
        for i in range(n):
            found += x[i].sum()
        return found

    for width in (3, 30):
        x = np.ones((4, width))
        assert total(x, 4) == 4 * width
        with pytest.raises(IndexError, match="size 4"):
            total(x, 5)


def test_vectors_that_several_sums_need_are_made_once_in_rows(rng) -> None:
    @tm.jit
    def power(a, x, n):
        total = 0.0
        for _ in range(n):
            y = a @ (a @ (x + total))
            total = y.sum() / (1 + y.max())
        return total

    a, x = rng.random((20, 20)), rng.random(20)
    with tm.disable_jit():
        want = power(a, x, 3)
    np.testing.assert_allclose(power(a, x, 3), want)
    assert any(isinstance(row, Loop) for row in power.lower(a, x, 3).plan.rows)


def test_long_sums_keep_their_rows_and_threads(rng) -> None:
    @tm.jit
    def centred(x, n):
        shift = 0.0
        for _ in range(n):
            shift += (x - shift).sum() / x.shape[0]
        return shift

    x = rng.random(100_000)
    np.testing.assert_allclose(centred(x, 3), x.mean())
    assert any(isinstance(row, Loop) for row in centred.lower(x, 3).plan.rows)
