"""Gradients of solvers, decompositions and Fourier transforms against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from library_losses import BATCH, LA, LOSSES, Array, C, M, R, S, of_rank, size

pytestmark = pytest.mark.cpu


def slope(loss: Callable[[Array], Any], a: Array) -> Array:
    """Central differences; for complex numbers dL/dx + i dL/dy."""
    found = np.zeros_like(a)
    for place in np.ndindex(a.shape):
        for turn in (1, 1j) if a.dtype.kind == "c" else (1,):
            step = np.zeros_like(a)
            step[place] = 1e-6 * turn
            found[place] += turn * (loss(a + step) - loss(a - step)) / 2e-6
    return found


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["real", "complex", "several"])
def test_a_gradient_is_the_slope(name: str, kind: str) -> None:
    loss, a = LOSSES[name], {"real": S, "complex": C + 0.1j * M, "several": BATCH}[kind]
    want = slope(loss, a)
    np.testing.assert_allclose(
        tm.grad(loss)(a), want, rtol=1e-4, atol=1e-5 * np.abs(want).max() + 1e-8
    )


@pytest.mark.parametrize("name", ["inv", "slogdet", "cholesky", "eigenvalues", "fft2"])
def test_a_gradient_has_a_gradient(name: str) -> None:
    loss = lambda a: size(tm.grad(LOSSES[name])(a))
    want = slope(lambda a: float(loss(a)), S)
    np.testing.assert_allclose(tm.grad(loss)(S), want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def test_the_likelihood_of_a_gaussian_process() -> None:
    x, y = np.linspace(0, 1, 12), np.sin(np.linspace(0, 6, 12))

    def loss(log_length: Array) -> Array:
        apart = (x[:, None] - x[None, :]) / np.exp(log_length)
        cov = np.exp(-0.5 * apart**2) + 0.01 * np.eye(12)
        factor = LA.cholesky(cov)
        alpha = LA.solve(cov, y)
        return 0.5 * y @ alpha + np.log(np.diag(factor)).sum()

    value = np.float64(-1.0)
    want = (loss(value + 1e-6) - loss(value - 1e-6)) / 2e-6
    np.testing.assert_allclose(tm.jit(tm.grad(loss))(value), want, rtol=1e-5)


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (2, 3, 2)])
@pytest.mark.parametrize("name", ["singular values", "right", "left", "rank", "pinv"])
def test_a_gradient_by_a_matrix_that_is_not_square(name: str, shape: tuple[int, ...]) -> None:
    losses: dict[str, Callable[[Array], Any]] = {
        "singular values": LOSSES["singular values of all"],
        "right": lambda a: (np.abs(LA.svd(a, full_matrices=False)[2]) ** 4)[..., 0].sum(),
        "left": lambda a: (np.abs(LA.svd(a, full_matrices=False)[0]) ** 4)[..., 0].sum(),
        "rank": lambda a: size(of_rank(a, 1)),
        "pinv": LOSSES["pinv"],
    }
    loss = losses[name]
    for a in (R.standard_normal(shape), R.standard_normal(shape) + 1j * R.standard_normal(shape)):
        want = slope(loss, a)
        tolerance = 1e-5 * (1 + np.abs(want).max())
        np.testing.assert_allclose(tm.grad(loss)(a), want, rtol=1e-4, atol=tolerance)


def test_equal_eigenvalues_have_a_gradient_where_vectors_are_not_used() -> None:
    loss = lambda a: (LA.eigh(a)[0] ** 3).sum()
    np.testing.assert_allclose(tm.grad(loss)(2 * np.eye(3)), 12 * np.eye(3), rtol=1e-12)


def test_what_has_no_gradient_says_so() -> None:
    with pytest.raises(TypeError, match=r"TM120(.|\n)*stop_gradient"):
        tm.grad(lambda a: LA.qr(a)[1].sum())(S)
    with pytest.raises(TypeError, match=r"TM120(.|\n)*full_matrices=False"):
        tm.grad(lambda a: LA.svd(a)[2].sum())(S[:2])


def test_what_is_taken_as_a_constant_needs_no_gradient() -> None:
    slope = tm.grad(lambda a: (a * LA.qr(tm.stop_gradient(a))[1]).sum())(S)
    np.testing.assert_array_equal(slope, LA.qr(S)[1])
