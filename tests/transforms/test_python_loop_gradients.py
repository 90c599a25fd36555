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


FUNCTIONS = [chained, in_each_other, in_a_branch, with_a_branch]


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
