"""Parts of NumPy that are written in NumPy run as the user's functions do: polynomials of all
bases, ``np.r_`` and ``np.c_``, grids.

Not here: NumPy's functions that we write ourselves (tests/frontend).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial
from numpy.polynomial import chebyshev as C
from numpy.polynomial import hermite as H
from numpy.polynomial import hermite_e as HE
from numpy.polynomial import laguerre as LA
from numpy.polynomial import legendre as L
from numpy.polynomial import polynomial as P

import tracemill as tm
from traced import assert_equal, outcome

pytestmark = pytest.mark.cpu

VALUES = [P.polyval, C.chebval, L.legval, H.hermval, HE.hermeval, LA.lagval]
BASES = [P.polyvander, C.chebvander, L.legvander, H.hermvander, HE.hermevander, LA.lagvander]
COEFFICIENTS = [np.array([1.0, -2, 3, 0.5, 2]), np.array([[1.0, 2], [3, -1], [0.5, 1]])]
QUADRATIC, FITTED = Polynomial([1.0, 2, 3]), Chebyshev([1.0, 2, 3, 4], domain=[-2, 3])
OLD = np.poly1d([2.0, 1, -1])
JOINED = [
    lambda x, f, i, m, z: np.r_[x, 1],
    lambda x, f, i, m, z: np.r_[f, 1.5, 2],
    lambda x, f, i, m, z: np.r_[i, 3],
    lambda x, f, i, m, z: np.r_[0, x, x[0], z],
    lambda x, f, i, m, z: np.r_[0:5, x],
    lambda x, f, i, m, z: np.r_[-1:1:5j, f],
    lambda x, f, i, m, z: np.r_[m, m],
    lambda x, f, i, m, z: np.r_["1", m, m],
    lambda x, f, i, m, z: np.r_["0,2", x, x],
    lambda x, f, i, m, z: np.r_["0,2,0", x, x],
    lambda x, f, i, m, z: np.r_[m, x],
    lambda x, f, i, m, z: np.r_[i, 300],
    lambda x, f, i, m, z: np.r_[0 : x.shape[0], x],
    lambda x, f, i, m, z: np.r_[[1, 2], x],
    lambda x, f, i, m, z: x[np.r_[0, 2]],
    lambda x, f, i, m, z: np.r_[x > 1, True],
    lambda x, f, i, m, z: np.c_[x, f],
    lambda x, f, i, m, z: np.c_[m, m],
    lambda x, f, i, m, z: np.c_[np.ones(2), m],
    lambda x, f, i, m, z: np.c_[0:3, x],
    lambda x, f, i, m, z: np.c_[z, 1],
    lambda x, f, i, m, z: np.c_[x, m],
    lambda x, f, i, m, z: np.mgrid[0:3, 0:4] * z,
    lambda x, f, i, m, z: np.ogrid[0:3, 0:4][0] * z,
    lambda x, f, i, m, z: np.mgrid[0 : x.shape[0]] * x,
    lambda x, f, i, m, z: np.mgrid[-1:1:5j] * z,
    lambda x, f, i, m, z: m[np.ix_([0, 1], [2, 0])],
    lambda x, f, i, m, z: m[np.s_[:, 1]],
]


def same(function: Any, *args: Any) -> None:
    """Compiled and plain calls give the same, or raise the same class."""
    (want, _), (got, _) = outcome(function, args), outcome(tm.jit(function), args)
    if isinstance(want, Exception):
        assert isinstance(got, type(want)), repr(got)
    else:
        assert_equal(got, want)


@pytest.mark.parametrize("coefficients", COEFFICIENTS, ids=["one", "several"])
@pytest.mark.parametrize("value", VALUES, ids=lambda f: f.__name__)
def test_values_of_series(value: Any, coefficients: Any, rng: Any) -> None:
    x = rng.standard_normal(7)
    same(lambda x: value(x, coefficients), x)
    same(lambda x, c: value(x, c), x, coefficients)
    same(lambda x: value(x, [1, 2, 3]), x.reshape(7, 1))
    same(lambda x: value(x, coefficients), 0.25)


@pytest.mark.parametrize("basis", BASES, ids=lambda f: f.__name__)
def test_bases_of_series(basis: Any, rng: Any) -> None:
    same(lambda x: basis(x, 4), rng.standard_normal((3, 2)))


@pytest.mark.parametrize(
    "value", [P.polyval2d, P.polygrid2d, C.chebval2d, L.leggrid2d], ids=lambda f: f.__name__
)
def test_values_on_planes_and_grids(value: Any, rng: Any) -> None:
    x, y = rng.standard_normal((2, 5))
    c = rng.standard_normal((3, 2))
    same(lambda x, y: value(x, y, c), x, y)


def test_polynomials_that_are_objects(rng: Any) -> None:
    x = rng.standard_normal(6)
    same(lambda x: (QUADRATIC(x), FITTED(x), OLD(x)), x)
    same(lambda x: QUADRATIC.deriv()(x) + (QUADRATIC * 2.0)(x), x)
    same(lambda c: Polynomial(c)(2.0), x)


def test_coefficients_are_read_at_each_call() -> None:
    polynomial = Polynomial([1.0, 2.0])
    f = tm.jit(lambda x: polynomial(x))
    assert f(3.0) == 7.0
    polynomial.coef[1] = 5.0
    assert f(3.0) == 16.0


@pytest.mark.parametrize(
    "function", [P.polyder, P.polyint, C.chebder, C.chebint, L.legder, HE.hermeint]
)
def test_derivatives_and_integrals_of_series(function: Any, rng: Any) -> None:
    same(lambda c: function(c), rng.standard_normal(5))


def test_the_gradient_of_a_series() -> None:
    slope = tm.grad(lambda x: C.chebval(x, [1.0, 2.0, 3.0]).sum())(np.array([0.5, -1.0]))
    np.testing.assert_allclose(slope, [2 + 12 * 0.5, 2 - 12], rtol=1e-15)


@pytest.mark.parametrize("function", JOINED)
def test_arrays_joined_in_brackets(function: Any) -> None:
    x = np.arange(3.0)
    args = (x, x.astype(np.float32), x.astype(np.int8), np.arange(6.0).reshape(2, 3), np.array(2.0))
    same(function, *args)


def test_joined_arrays_of_any_size_are_compiled_once() -> None:
    f = tm.jit(lambda x: np.r_[x[:1], x, 0.0] + np.c_[x, x].sum())
    for n in (3, 8, 21):
        x = np.arange(float(n))
        np.testing.assert_array_equal(f(x), f.__wrapped__(x))
    assert len(f.explain_recompiles()) == 1
