"""Polynomials, bits of bytes, norms and powers of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_same

ROWS = [
    np.array([1, 2, 3]), np.array([4.0, 5]), np.array([0, 0, 1]), np.array([7]), np.array([1j, 2]),
    np.array([True, False]), np.ones(0), np.array(3.0),
]  # fmt: skip


@pytest.mark.parametrize("p", ROWS)
def test_polynomials_are_combined_derived_and_integrated(p: Any) -> None:
    for q in ROWS:
        assert_same(np.polyadd, p, q)
        assert_same(np.polysub, p, q)
    for times in (-1, 0, 1, 2, 3):
        assert_same(lambda p, m=times: np.polyder(p, m), p)
        assert_same(lambda p, m=times: np.polyint(p, m), p)
        assert_same(lambda p, m=times: np.polyint(p, m, 3), p)
        assert_same(lambda p, m=times: np.polyint(p, m, [1, 2.5]), p)


@pytest.mark.parametrize("dtype", "?bBlefd")
@pytest.mark.parametrize("roots", [[1, 2, 3], [0], [], [5, -2, 0.5, 3, 1], [np.inf, 1]])
def test_a_polynomial_of_real_roots(dtype: str, roots: list[float]) -> None:
    if np.isfinite(roots).all() or dtype in "efd":
        with np.errstate(invalid="ignore"):
            assert_same(np.poly, np.array(roots).astype(dtype))


X = np.arange(9) - 4.0
Y = np.cos(np.arange(18.0) ** 2).reshape(9, 2)
W = np.sqrt(np.arange(9) + 1.0)
Fit = Callable[[Any, Any, Any], Any]
FITS: dict[str, Fit] = {
    "line": lambda x, y, w: np.polyfit(x, y[:, 0], 1),
    "two rows": lambda x, y, w: np.polyfit(x, y, 3),
    "weights": lambda x, y, w: np.polyfit(x, y, 2, w=w),
    "full": lambda x, y, w: np.polyfit(x, y[:, 0], 2, full=True),
    "covariance": lambda x, y, w: np.polyfit(x, y[:, 1], 2, cov=True),
    "covariances": lambda x, y, w: np.polyfit(x, y, 2, cov=True),
    "unscaled": lambda x, y, w: np.polyfit(x, y, 1, cov="unscaled"),
    "no full rank": lambda x, y, w: np.polyfit(np.minimum(x, -3), y, 3),
    "a negative degree": lambda x, y, w: np.polyfit(x, y, -1),
    "another length": lambda x, y, w: np.polyfit(x, y[:3], 1),
    "no points": lambda x, y, w: np.polyfit(x[:0], y[:0], 1),
    "x of rank 2": lambda x, y, w: np.polyfit(y, x, 1),
    "fewer weights": lambda x, y, w: np.polyfit(x, y, 1, w=w[:2]),
}


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("dtype", "lfdD")
def test_a_fit_is_numpys(name: str, dtype: str) -> None:
    x, y = X.astype(dtype), (Y * 9).astype(dtype)
    function = FITS[name]
    try:
        wanted = function(x, y, W)
    except Exception as problem:  # noqa: BLE001  compared with the other side's
        with pytest.raises(type(problem)):
            tm.jit(function)(x, y, W)
        return
    got = tm.jit(function)(x, y, W)
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
    for mine, theirs in pairs:
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        precision = 1e-4 if np.asarray(theirs).dtype.itemsize == 4 else 1e-9
        np.testing.assert_allclose(mine, theirs, precision, precision)


@pytest.mark.parametrize("dtype", "?bBlQd")
@pytest.mark.parametrize("axis", [None, 0, 1, -1, 2])
def test_bits_are_packed_and_unpacked(dtype: str, axis: Any, rng: np.random.Generator) -> None:
    x = rng.integers(-1, 2, size=(3, 11)).astype(dtype)
    for order in ("big", "little", "other"):
        assert_same(lambda x, order=order: np.packbits(x, axis, order), x)
    for count in (None, 3, 20, 100, -5, -200, 0):
        assert_same(lambda x, c=count: np.unpackbits(x, axis, c, "little"), x.astype("B") * 77)
    assert_same(lambda x: np.unpackbits(x, axis=axis), x)


@pytest.mark.parametrize("shape", [(0,), (), (0, 3)])
def test_no_bits(shape: tuple[int, ...]) -> None:
    for axis in (None, 0):
        assert_same(lambda x, axis=axis: np.packbits(x, axis), np.ones(shape, int))
        assert_same(lambda x, axis=axis: np.unpackbits(x, axis), np.ones(shape, np.uint8))


ORDERS = [None, 0, 1, -1, np.inf, -np.inf, 3, 0.5, "fro", "f", "other"]
SHAPES = [(3, 4), (5,), (2, 3, 4), (0,), (0, 3), (3, 0), (1, 1), ()]


@pytest.mark.parametrize("dtype", "?bBlefdFD")
@pytest.mark.parametrize("shape", SHAPES)
def test_norms_of_every_order(dtype: str, shape: Any, rng: np.random.Generator) -> None:
    x = np.asarray(rng.normal(size=shape) * 5).astype(dtype)
    for order in ORDERS:
        for axis in (None, -1, (0,), (0, 1), (-1, 0)):
            assert_same(lambda x, o=order, a=axis: np.linalg.norm(x, o, a), x)
        assert_same(lambda x, o=order: np.linalg.norm(x, o, keepdims=True), x)
        if dtype in "ldD":
            assert_same(lambda x, o=order: np.linalg.vector_norm(x, axis=0, ord=o), x)
            assert_same(lambda x, o=order: np.linalg.vector_norm(x, ord=o, keepdims=True), x)
            assert_same(lambda x, o=order: np.linalg.matrix_norm(x, ord=o, keepdims=True), x)


@pytest.mark.cpu
@pytest.mark.parametrize("order", [2, -2, "nuc"])
@pytest.mark.parametrize("axis", [(0, 1), (1, 0), (-1, 0)])
def test_norms_by_singular_values(order: Any, axis: tuple[int, int]) -> None:
    x = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
    for keepdims in (False, True):
        wanted = np.linalg.norm(x, order, axis, keepdims)
        got = tm.jit(lambda x, k=keepdims: np.linalg.norm(x, order, axis, k))(x)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, 1e-12)


@pytest.mark.parametrize("dtype", "?blefD")
def test_powers_of_matrices(dtype: str, rng: np.random.Generator) -> None:
    a = np.abs(rng.normal(size=(2, 3, 3)) * 2).astype(dtype)
    for exponent in (0, 1, 2, 3, 4, 9, 2.5):
        assert_same(lambda a, n=exponent: np.linalg.matrix_power(a, n), a)
    assert_same(lambda a: np.linalg.matrix_power(a[:, :2], 2), a)
    assert_same(lambda a: np.linalg.matrix_power(a[0, 0], 2), a)


@pytest.mark.cpu
def test_negative_powers_are_of_the_inverse() -> None:
    a = np.array([[2.0, 1], [1, 3]])
    got = tm.jit(lambda a: np.linalg.matrix_power(a, -3))(a)
    np.testing.assert_allclose(got, np.linalg.matrix_power(a, -3), 1e-12)
