"""`tm.special` beside SciPy: the gamma function's family, inverses, entropies, shares."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import tracemill as tm
from tracemill import grad, special

EDGES = np.array([0.0, -0.0, 1.0, 2.0, -1.0, -2.5, 0.5, -0.5, 10.0, 9.999, 1e-300, 1e17, 1e300,
                  np.inf, -np.inf, np.nan])  # fmt: skip
UNARY = {
    "gammaln": sp.gammaln, "digamma": sp.digamma, "psi": sp.psi, "erfinv": sp.erfinv,
    "ndtri": sp.ndtri, "entr": sp.entr,
}  # fmt: skip


def quiet(function: Any, *args: Any) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_values_are_scipys(name: str, dtype: Any, rng: np.random.Generator) -> None:
    spread = rng.uniform(0, 1, 200) if name in ("erfinv", "ndtri") else rng.normal(size=200) * 9
    x = quiet(np.concatenate([EDGES, spread]).astype, dtype)
    wanted = quiet(UNARY[name], x.astype(np.float64))
    found = getattr(special, name)(x)
    assert found.dtype == dtype
    close = {2: 2e-3, 4: 5e-7, 8: 2e-13}[x.itemsize]
    np.testing.assert_allclose(found, quiet(wanted.astype, dtype), rtol=close, atol=close)
    for shape in ((), (0,), (1,), (3, 1, 2)):
        values = np.full(shape, 0.25, dtype)
        assert np.shape(getattr(special, name)(values)) == shape
    np.testing.assert_array_equal(getattr(special, name)(x[::-3]), found[::-3])


def test_derivatives_of_gammaln(rng: np.random.Generator) -> None:
    x = np.concatenate([rng.uniform(0, 30, 50), rng.uniform(-5, 0, 20)])
    for order in (0, 1):
        np.testing.assert_allclose(
            special.polygamma(order, x), sp.polygamma(order, x), rtol=1e-11, atol=1e-11
        )
    np.testing.assert_allclose(grad(lambda x: special.gammaln(x).sum())(x), special.digamma(x))
    slope = grad(lambda x: special.digamma(x).sum())(x)
    np.testing.assert_array_equal(slope, special.polygamma(1, x))
    with pytest.raises(NotImplementedError, match="order 2"):
        special.polygamma(2, x)
    with pytest.raises(tm.TracemillError, match="TM120"):
        grad(lambda x: special.polygamma(1, x).sum())(x)


@pytest.mark.parametrize("name", ["erfinv", "ndtri", "entr"])
def test_slopes(name: str) -> None:
    x = np.array([0.02, 0.3, 0.5, 0.9])
    h = 1e-7
    wanted = (UNARY[name](x + h) - UNARY[name](x - h)) / (2 * h)
    found = grad(lambda x: getattr(special, name)(x).sum())(x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_betaln(rng: np.random.Generator) -> None:
    a, b = rng.uniform(0.1, 9, (2, 40))
    np.testing.assert_allclose(special.betaln(a, b), sp.betaln(a, b), rtol=1e-12, atol=1e-13)
    found = grad(lambda a: special.betaln(a, b).sum())(a)
    np.testing.assert_allclose(found, sp.psi(a) - sp.psi(a + b), rtol=1e-11)


def test_xlog1py() -> None:
    x = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 0.0])
    y = np.array([-1.0, 3.0, np.nan, -1.0, 3.0, -2.0])
    np.testing.assert_allclose(special.xlog1py(x, y), quiet(sp.xlog1py, x, y))
    to_y = grad(lambda y: special.xlog1py(x, y).sum())(y)
    np.testing.assert_allclose(to_y[[0, 1, 4]], [0, 0, 0.5])


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_shares(axis: Any, rng: np.random.Generator) -> None:
    x = rng.normal(size=(4, 5)) * 300
    np.testing.assert_allclose(special.softmax(x, axis), sp.softmax(x, axis), rtol=1e-12)
    np.testing.assert_allclose(special.log_softmax(x, axis), sp.log_softmax(x, axis), rtol=1e-12)
    assert special.softmax(x.astype(np.float32), axis).dtype == np.float32
    weights = rng.normal(size=x.shape)
    slope = tm.jit(grad(lambda x: (special.log_softmax(x, axis) * weights).sum()))(x)
    share = sp.softmax(x, axis)
    wanted = weights - share * weights.sum(axis, keepdims=True)
    np.testing.assert_allclose(slope, wanted, rtol=1e-10, atol=1e-12)
