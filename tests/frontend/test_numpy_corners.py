"""Corners of NumPy's functions: orders of axes, dtypes asked for, errors, extreme arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import tracemill as tm
from tracemill.numpy.names import SPECIAL

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

A = np.array([[3.0, 1.0, 2.5, 9.0], [0.5, 7.0, 7.5, 1.0], [2.0, 2.0, 8.0, 4.5]])
INTS = (A * 2).astype(int)
BOOLS = A > 2
NANS = np.array([[1.0, np.nan, 3.0], [np.nan] * 3])
HUGE = np.array([1.0, 2.5, np.inf, 1e300, -3.7, 0.0])
NONE = np.ones(0)
BRAIN = NANS.astype(ml_dtypes.bfloat16)

Case = tuple[Callable[..., Any], Any]
SAME: dict[str, Case] = {
    "gradient, axes turned": (lambda x: np.gradient(x, axis=(1, 0)), A),
    "gradient, steps by axis": (lambda x: np.gradient(x, 2.0, 3.0, axis=(1, 0)), A),
    "gradient, places": (lambda x: np.gradient(x, 2.0, np.arange(3) ** 2.0, axis=[-1, 0]), A),
    "gradient, no axis": (lambda x: np.gradient(x, 0.5, axis=()), A),
    "gradient of ints": (lambda x: np.gradient(x, axis=(1, 0)), INTS),
    "ediff1d, ends": (lambda x: np.ediff1d(x, to_end=1, to_begin=[2, 3]), INTS),
    "ediff1d, narrow": (lambda x: np.ediff1d(x, to_end=1.5), A.astype("f4")),
    "cov f4": (lambda x: np.cov(x, dtype="f4"), A),
    "cov of two": (lambda x: np.cov(x, x[:, 0], rowvar=False, dtype="f4"), A),
    "corrcoef f4": (lambda x: np.corrcoef(x, dtype="f4"), A),
    "nanmax of bfloat16": (lambda x: np.nanmax(x, axis=1), BRAIN),
    "nanmin of bfloat16": (lambda x: np.nanmin(x), BRAIN),
    "nanargmax": (np.nanargmax, NANS),
    "nanargmin of rows": (lambda x: np.nanargmin(x, axis=1), NANS[:1]),
    "nanargmax of no rows": (lambda x: np.nanargmax(x, axis=1), NANS[:0]),
    "average": (lambda x: np.average(x, axis=0, weights=x[:, 0], returned=True), A),
    "round far": (lambda x: np.round(x, 400), HUGE),
    "round farther back": (lambda x: np.round(x, -400), HUGE),
    "round as far as can be": (lambda x: np.round(x, 308), HUGE),
    "round of ints": (lambda x: np.round(x, 400), INTS),
    "partition of nothing": (lambda x: np.partition(x, 0), NONE),
    "argpartition of nothing": (lambda x: np.argpartition(x, 2), NONE),
    "partition of no rows": (lambda x: np.partition(x, 7, axis=1), np.ones((0, 3))),
    "argsort of a number": (np.argsort, np.array(3.0)),
    "argpartition of a number": (lambda x: np.argpartition(x, 0), np.array(3.0)),
}


@pytest.mark.parametrize("name", SAME)
def test_a_corner_is_numpys(name: str) -> None:
    function, x = SAME[name]
    want, got = function(x.copy()), tm.jit(function)(x.copy())
    if not isinstance(want, tuple):
        want, got = (want,), (got,)
    assert len(got) == len(want)
    for one, other in zip(got, want):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert type(one) is type(other)
        wide = np.float64 if other.dtype == ml_dtypes.bfloat16 else other.dtype
        precision = 1e-5 if other.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(one.astype(wide), other.astype(wide), precision, precision)


REFUSED: dict[str, Case] = {
    "gradient of bools": (np.gradient, BOOLS),
    "gradient, an axis twice": (lambda x: np.gradient(x, axis=(0, 0)), A),
    "gradient, places of rank 2": (lambda x: np.gradient(x, x, axis=0), A),
    "ediff1d of bools": (np.ediff1d, BOOLS),
    "ediff1d, an end that does not fit": (lambda x: np.ediff1d(x, to_end=1.5), INTS),
    "cov in ints": (lambda x: np.cov(x, dtype=int), A),
    "nanargmax of a row of NaN": (lambda x: np.nanargmax(x, axis=1), NANS),
    "nanargmin of NaN": (np.nanargmin, NANS[1]),
    "average, weights that cancel": (lambda x: np.average(x, weights=x - x), A),
    "average, a column of no weight": (lambda x: np.average(x, 0, x * [1, 0, 1, 1]), A),
    "average, known weights": (lambda x: np.average(x, axis=0, weights=[1, 1, -2]), A),
    "partition past the end": (lambda x: np.partition(x, 4), A),
    "sort of a number": (np.sort, np.array(3.0)),
    "argsort of a number along axis 1": (lambda x: np.argsort(x, axis=1), np.array(3.0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses_is_refused_with_its_class(name: str) -> None:
    function, x = REFUSED[name]
    with pytest.raises(Exception) as wanted:
        function(x.copy())
    kind = TypeError if issubclass(wanted.type, TypeError) else wanted.type
    with pytest.raises(kind):
        tm.jit(function)(x.copy())


def test_the_checks_of_averages_and_places_say_their_codes() -> None:
    with pytest.raises(ValueError, match=r"\[TM261\](.|\n)*All-NaN slice"):
        tm.jit(np.nanargmax)(NANS[1])
    with pytest.raises(ZeroDivisionError, match=r"\[TM262\](.|\n)*Weights sum to zero"):
        tm.jit(lambda x, w: np.average(x, weights=w))(A[0], np.zeros(4))


def test_scipys_functions_are_answered_with_ours() -> None:
    for name in ("expit", "erf", "logsumexp", "gammaln", "psi", "softmax", "erfinv"):
        function = getattr(scipy.special, name)
        with pytest.raises(NotImplementedError, match=rf"hint: tm\.special\.{name} is"):
            tm.jit(lambda x, function=function: function(x))(A)
    assert set(tm.special.__all__) == SPECIAL


def test_sorted_of_an_array_speaks_of_the_comparison() -> None:
    with pytest.raises(TypeError, match=r"\[TM101\](.|\n)*np\.sort for sorted"):
        tm.jit(lambda x: sorted(x[0]))(A)
    np.testing.assert_array_equal(
        tm.jit(lambda x: x * sorted([3, -5, 2], key=lambda i: -i)[0])(A), A * 3
    )


@pytest.mark.parametrize("ends", [(0.0, 2.0), (2.0, 0.0)])
def test_a_geometric_sequence_through_zero_is_an_error(ends: tuple[float, float]) -> None:
    act = tm.jit(lambda a, b: np.geomspace(a, b, 3))
    with pytest.raises(ValueError, match="TM263"):
        act(*map(np.float64, ends))
    with pytest.raises(ValueError, match="TM263"):
        tm.jit(lambda: np.geomspace(*ends, 3))()
    np.testing.assert_allclose(act(np.float64(1), np.float64(4)), [1, 2, 4])


def test_a_geometric_sequence_has_as_many_elements_as_a_size_says() -> None:
    act = tm.jit(lambda x: np.geomspace(2, 32, len(x)) * x)
    for size in (0, 1, 2, 5, 9):
        np.testing.assert_allclose(act(np.ones(size)), np.geomspace(2, 32, size), rtol=1e-14)


def test_an_iterator_that_ends_early_and_memory_that_may_change_are_errors() -> None:
    with pytest.raises(ValueError, match="iterator too short: Expected 5 but iterator had only 3"):
        tm.jit(lambda x: np.fromiter(range(3), int, 5) + x)(1)
    with pytest.raises(NotImplementedError, match="TM110"):
        tm.jit(lambda x: np.frombuffer(bytearray(8)) + x)(1)


@pytest.mark.parametrize("size", [10, 4096, 100_000])
def test_a_number_taken_from_a_size_is_known_however_large_that_is(size: int) -> None:
    def windows(x: Any, width: int) -> Any:
        return np.lib.stride_tricks.sliding_window_view(x, width).sum(axis=1)

    x = np.arange(float(size))
    np.testing.assert_array_equal(tm.jit(windows)(x, 3), windows(x, 3))
    assert tm.jit(lambda x, k: np.zeros(len(x) - k))(x, 4).shape == (size - 4,)
