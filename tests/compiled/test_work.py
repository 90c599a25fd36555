"""What a compiled function computes grows as the work of its NumPy form does, whatever is fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.kernel.cost import kernel_work


def centred(t: Any) -> Any:
    z = t - t.mean(axis=0)
    return z, (z * z).sum(axis=0)


def softmax_down(t: Any) -> Any:
    e = np.exp(t - t.max(axis=0))
    p = e / e.sum(axis=0)
    return p, (p * t).sum(axis=0)


def scaled(t: Any) -> Any:
    z = (t - t.min(axis=0)) / (t.max(axis=0) - t.min(axis=0))
    return z, z.mean(axis=0)


def filled(t: Any) -> Any:
    return np.corrcoef(np.where(t > 1, np.nanmean(t, axis=0), t), rowvar=False)


def standardised(t: Any) -> Any:
    z = (t - t.mean(axis=0)) / t.std(axis=0)
    return np.cov(z, rowvar=False)


def in_groups(t: Any) -> Any:
    u = t.reshape(-1, 4, t.shape[1])
    z = u - u.mean(axis=1, keepdims=True)
    return z, (z * z).sum(axis=1), z.sum(axis=(0, 1))


def rows(t: Any) -> Any:
    z = t - t.mean(axis=1, keepdims=True)
    return z, (z * z).sum(axis=1), np.abs(z).max(axis=0)


FUNCTIONS = (centred, softmax_down, scaled, filled, standardised, in_groups, rows)


def work(function: Callable[..., Any], rows: int, columns: int) -> int:
    plan = tm.jit(function).lower(np.ones((rows, columns))).plan.data
    assert plan.kernels
    sizes = dict.fromkeys("nkp", rows) | {"m": columns}
    total = 0
    for kernel in plan.kernels:
        estimate = kernel_work(kernel)
        total += estimate if isinstance(estimate, int) else estimate.substitute(sizes)
    return total


@pytest.mark.parametrize("columns", [4, 20, 64])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_work_grows_with_the_rows_and_not_with_their_square(
    function: Callable[..., Any], columns: int
) -> None:
    few, many = work(function, 4000, columns), work(function, 8000, columns)
    assert many < 3 * few


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_results_are_numpy_s(function: Callable[..., Any], rng: np.random.Generator) -> None:
    t = rng.standard_normal((4000, 20))
    wanted, got = function(t), tm.jit(function)(t)
    pairs = zip(wanted, got) if isinstance(wanted, tuple) else [(wanted, got)]
    for a, b in pairs:
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-11)
