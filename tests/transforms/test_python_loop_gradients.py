"""Derivatives through Python's loops over sizes, in each other and in branches.

Not here: `tm.scan` and its kin (test_flow_gradients.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu


def chained(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + np.sin(x[i]) * x[i - 1]
    return total


def in_each_other(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x) - 1):
            total = total + np.sin(x[i]) * x[j] * x[j + 1]
    return total


def in_a_branch(x: Any) -> Any:
    total = 0.0
    if x[0] > 0:
        for i in range(len(x)):
            total = total + np.cos(x[i]) * x[0]
    return total


def with_a_branch(x: Any) -> Any:
    total = x[0] * len(x)
    for i in range(len(x)):
        if x[i] > 0.5:
            for j in range(len(x)):
                total = total + x[i] * x[j] / len(x)
    return total


def over_pairs(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            total = total + 1 / (0.5 + (x[i] - x[j]) ** 2)
    return total


def three_deep(x: Any) -> Any:
    total = 0.0
    for i in range(len(x) - 1, -1, -1):
        for j in range(i, len(x)):
            for k in range(j - i):
                total = total + x[i] * x[j] * np.sin(x[k])
    return total


def by_functions(x: Any) -> Any:
    def row(i: Any, total: Any) -> Any:
        return tm.fori_loop(0, i, lambda j, t: t + x[i] * np.sin(x[j]), total)

    return tm.fori_loop(0, len(x), row, 0.0)


FUNCTIONS = [
    chained, in_each_other, in_a_branch, with_a_branch, over_pairs, three_deep, by_functions,
]  # fmt: skip


def slope(function: Callable[..., Any], x: np.ndarray[Any, Any], step: float = 1e-6) -> Any:
    """By differences of the plain function, a row for each element."""
    steps = step * np.eye(len(x))
    return np.array([(function(x + s) - function(x - s)) / (2 * step) for s in steps])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_and_jacobians_are_slopes(function: Callable[..., Any]) -> None:
    gradient = tm.jit(tm.grad(function))
    for count in (20, 33, 7):
        x = np.linspace(0.11, 1.0, count)
        want = slope(function, x)
        np.testing.assert_allclose(gradient(x), want, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(tm.jacobian(function)(x), want, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(tm.vjp(function, x)[1](1.0)[0], want, rtol=1e-6, atol=1e-7)
    assert len(gradient.dispatcher.versions) <= 2


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_hessians_are_slopes_of_gradients(function: Callable[..., Any]) -> None:
    x = np.linspace(0.11, 1.0, 18)
    want = slope(tm.grad(function), x)
    np.testing.assert_allclose(tm.hessian(function)(x), want, rtol=1e-5, atol=1e-6)


def cholesky(a: Any) -> Any:
    n = len(a)
    lower = np.zeros((n, n))
    for j in range(n):
        total = 0.0
        for k in range(j):
            total = total + lower[j, k] * lower[j, k]
        lower[j, j] = np.sqrt(a[j, j] - total)
        for i in range(j + 1, n):
            total = 0.0
            for k in range(j):
                total = total + lower[i, k] * lower[j, k]
            lower[i, j] = (a[i, j] - total) / lower[j, j]
    return lower


def solved(lower: Any, b: Any) -> Any:
    x = np.zeros(len(b))
    for i in range(len(b)):
        total = b[i]
        for j in range(i):
            total = total - lower[i, j] * x[j]
        x[i] = total / lower[i, i]
    return x


@pytest.mark.parametrize("n", [3, 18])
def test_gradients_of_algorithms_written_as_loops(n: int) -> None:
    rng = np.random.default_rng(n)
    m = rng.standard_normal((n, n))
    a = m @ m.T + n * np.eye(n)
    slopes = tm.grad(lambda a: 2 * np.log(np.diag(cholesky(a))).sum())(a)
    inverse = np.linalg.inv(a)  # the loops read the lower triangle
    np.testing.assert_allclose(slopes, np.tril(2 * inverse) - np.diag(np.diag(inverse)), atol=1e-13)
    lower, b = np.linalg.cholesky(a), rng.standard_normal(n)
    slopes = tm.grad(lambda low: (solved(low, b) ** 2).sum())(lower)
    x = np.linalg.solve(lower, b)
    want = -np.outer(np.linalg.solve(lower.T, 2 * x), x)
    np.testing.assert_allclose(np.tril(slopes), np.tril(want), atol=1e-13)


def test_a_loop_whose_trips_data_decide() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(int(x[0])):
            total = total + x[i] * x[i]
        return total

    np.testing.assert_array_equal(tm.grad(f)(np.array([2.0, 5.0, 7.0])), [4, 10, 0])


def recurrent(x: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) + x[i] * y[i - 1] * 0.1
    return (y * y).sum()


def cheapest_way(cost: Any) -> Any:
    way = np.zeros(cost.shape)
    for i in range(1, len(cost)):
        for j in range(1, len(cost)):
            way[i, j] = cost[i, j] + np.minimum(way[i - 1, j], way[i, j - 1])
    return way[-1, -1]


@pytest.mark.parametrize(("loop", "axes"), [(chained, 1), (recurrent, 1), (cheapest_way, 2)])
def test_gradients_of_elements_take_memory_for_elements(loop: Any, axes: int) -> None:
    """Of arrays that a loop reads and fills, elements are kept, not the array at each trip."""
    lowered = tm.jit(tm.grad(loop)).lower(np.ones((5,) * axes))
    assert lowered.plan.peak_bytes(n=1000) < 12 * 8 * 1000**axes


@pytest.mark.parametrize("loop", [chained, recurrent])
def test_gradients_of_elements_are_one_kernel_each_way(loop: Any) -> None:
    assert "repeat" not in str(tm.jit(tm.grad(loop)).lower(np.ones(5)).plan)
