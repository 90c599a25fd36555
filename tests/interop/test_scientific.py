"""SciPy's solvers and scikit-learn's pipelines call compiled functions and their derivatives.

Not here: the derivatives (tests/transforms).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tracemill as tm

pytestmark = pytest.mark.cpu


@tm.jit
def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def residuals(p: Any, t: Any, y: Any) -> Any:
    return p[0] * np.exp(-p[1] * t) - y


TIMES = np.linspace(0, 1, 9)
MEASURED = 2 * np.exp(-3 * TIMES)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG"])
def test_a_minimum_by_gradients(method: str) -> None:
    gradient = tm.jit(tm.grad(rosenbrock))
    found = optimize.minimize(rosenbrock, np.zeros(5), jac=gradient, method=method)
    np.testing.assert_allclose(found.x, np.ones(5), atol=1e-4)
    both = tm.jit(tm.value_and_grad(rosenbrock))
    again = optimize.minimize(both, np.zeros(5), jac=True, method=method)
    np.testing.assert_allclose(again.x, found.x, atol=1e-12)
    assert len(gradient.explain_recompiles()) == len(both.explain_recompiles()) == 1


def test_a_minimum_by_hessians() -> None:
    gradient, hessian = tm.jit(tm.grad(rosenbrock)), tm.jit(tm.hessian(rosenbrock))
    np.testing.assert_allclose(hessian(np.full(5, 0.5)), optimize.rosen_hess(np.full(5, 0.5)))
    found = optimize.minimize(
        rosenbrock, np.zeros(5), jac=gradient, hess=hessian, method="trust-ncg"
    )
    np.testing.assert_allclose(found.x, np.ones(5), atol=1e-4)


def test_least_squares_by_a_jacobian() -> None:
    jacobian = tm.jit(tm.jacobian(residuals))
    found = optimize.least_squares(
        tm.jit(residuals), [1.0, 1.0], jac=jacobian, args=(TIMES, MEASURED)
    )
    np.testing.assert_allclose(found.x, [2, 3], rtol=1e-8)
    fitted, _ = optimize.curve_fit(tm.jit(lambda t, a, b: a * np.exp(-b * t)), TIMES, MEASURED)
    np.testing.assert_allclose(fitted, [2, 3], rtol=1e-8)


def test_functions_of_one_number() -> None:
    assert optimize.brentq(tm.jit(lambda x: x * x - 2), 0, 2) == pytest.approx(2**0.5)
    area, _ = integrate.quad(tm.jit(lambda x: np.exp(-x * x)), 0, np.inf)
    assert area == pytest.approx(np.pi**0.5 / 2)
    found = optimize.root(tm.jit(lambda x: x**3 - 2), 1.0)
    np.testing.assert_allclose(found.x, 2 ** (1 / 3))


def test_a_differential_equation() -> None:
    @tm.jit
    def slope(t: float, y: Any) -> Any:
        return np.array([y[1], -y[0]])

    end = integrate.solve_ivp(slope, (0, 1), [1.0, 0.0], rtol=1e-9, atol=1e-9).y[:, -1]
    np.testing.assert_allclose(end, [np.cos(1), -np.sin(1)], atol=1e-7)
    assert len(slope.explain_recompiles()) <= 2  # for a number of Python, and one of NumPy


def test_a_step_of_a_pipeline() -> None:
    x = np.random.default_rng(0).random((30, 3))
    y = np.log1p(x).sum(axis=1)
    pipeline = make_pipeline(FunctionTransformer(tm.jit(np.log1p)), LinearRegression())
    np.testing.assert_allclose(pipeline.fit(x, y).predict(x), y, rtol=1e-9)
