"""Samples in order or counted: interp, unwrap, isin, quantiles without NaN, grids, windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_same

REAL = "?bBlLefd"
ODD = np.array([np.nan, -np.inf, np.inf, 0, 1, 2, 2.5, 3, -1, 1.0, 9])
PLACES, HEIGHTS = np.array([0.0, 1, 1, 2, 3]), np.array([1.0, 2, 3, np.inf, 5])


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    return np.asarray(rng.normal(size=shape) * 6).astype(dtype)


def with_nan(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    made = numbers(rng, dtype, *shape)
    if made.dtype.kind in "fc":
        made[rng.random(shape) < 0.4] = np.nan
    return made


@pytest.mark.parametrize("dtype", REAL + "FD")
def test_interp_takes_every_dtype(dtype: str, rng: np.random.Generator) -> None:
    x, xp = numbers(rng, dtype, 3, 4), np.sort(numbers(rng, "d", 6))
    assert_same(np.interp, x, xp, numbers(rng, dtype, 6))
    assert_same(lambda xp, fp: np.interp(1.5, xp, fp, period=2.5), xp, numbers(rng, dtype, 6))


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_interp_beyond_and_between_odd_samples(count: int) -> None:
    xp, fp = PLACES[:count], HEIGHTS[:count]
    assert_same(np.interp, ODD, xp, fp)
    assert_same(lambda x, xp, fp: np.interp(x, xp, fp, -7, 8.5), ODD, xp, fp)
    assert_same(lambda x, xp, fp: np.interp(x, xp, fp * (1 + 2j), left=-7j), ODD, xp, fp)


def test_interp_refuses_what_numpy_refuses() -> None:
    assert_same(np.interp, ODD, PLACES, HEIGHTS[:3])
    assert_same(np.interp, ODD, PLACES[:, None], HEIGHTS)
    assert_same(lambda x, xp, fp: np.interp(x, xp, fp, period=0), ODD, PLACES, HEIGHTS)


@pytest.mark.parametrize("dtype", REAL + "D")
def test_unwrap(dtype: str, rng: np.random.Generator) -> None:
    p = numbers(rng, dtype, 4, 7)
    for keywords in ({}, {"axis": 0}, {"period": 4}, {"period": 5}, {"discont": 3.5}, {"axis": 3}):
        assert_same(lambda p, keywords=keywords: np.unwrap(p, **keywords), p)
    assert_same(np.unwrap, p[:, :1])
    assert_same(np.unwrap, p[0, 0])


@pytest.mark.parametrize("dtype", REAL + "FD")
@pytest.mark.parametrize("count", [0, 1, 15, 17, 40])
def test_isin_by_comparisons_and_by_search(
    dtype: str, count: int, rng: np.random.Generator
) -> None:
    x = np.abs(numbers(rng, "d", 3, 4)).astype(dtype)
    for other in "?bldD":
        assert_same(np.isin, x, np.abs(numbers(rng, "d", count)).astype(other))
    assert_same(lambda x, t: np.isin(x[0, 0], t.reshape(1, -1), invert=True), x, x[0])


def test_isin_compares_large_integers_exactly_and_no_nan() -> None:
    x, many = np.array([2**63 - 1, -1, 5]), np.array([2**63, 5, *range(20)], np.uint64)
    assert tm.jit(np.isin)(x, many).tolist() == [False, False, True]
    assert_same(lambda x: np.isin(x, [1, np.nan]), ODD)
    assert_same(np.isin, ODD, np.append(np.arange(30.0), np.nan))
    assert_same(lambda x: np.isin(x, [1], kind="table"), ODD)
    assert_same(lambda x: np.isin(x, [1], kind="other"), ODD)


@pytest.mark.parametrize("dtype", "?bLefdFD")
@pytest.mark.parametrize("shape", [(3, 4), (5,), (0,), (2, 0), (0, 3), (2, 3, 4), ()])
def test_nanmedian(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> None:
    x = with_nan(rng, dtype, *shape)
    for axis in (None, 0, -1, (0, 1)):
        assert_same(lambda x, axis=axis: np.nanmedian(x, axis), x)
        if shape:
            assert_same(lambda x, axis=axis: np.nanmedian(x, axis, keepdims=True), x)


METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher",
    "midpoint", "nearest",
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_nanquantile_of_rows_of_several_lengths(method: str, rng: np.random.Generator) -> None:
    x = with_nan(rng, "d", 6, 11)
    x[2], x[3], x[4, :2] = np.nan, 1.5, [np.inf, -np.inf]
    for axis in (0, 1, None):
        assert_same(lambda x, a=axis: np.nanquantile(x, [[0, 0.25], [0.5, 1]], a, method=method), x)
        assert_same(lambda x, a=axis: np.nanpercentile(x, 90, axis=a, method=method), x)


def test_nanquantile_refuses_and_delivers_as_numpy(rng: np.random.Generator) -> None:
    x = with_nan(rng, "d", 3, 4)
    assert_same(lambda x: np.nanquantile(x, 1.5), x)
    assert_same(lambda x: np.nanquantile(x, 0.5, method="other"), x)
    assert_same(lambda x, out: np.nanmedian(x, axis=1, out=out), x, np.zeros(3))
    assert_same(lambda x: np.nanquantile(x, 0.5), x[:0])
    assert_same(lambda x: np.nanpercentile(x, [10, 20], axis=1, keepdims=True), x > 1)


@pytest.mark.parametrize("dtype", REAL)
def test_histograms_of_two_axes(dtype: str, rng: np.random.Generator) -> None:
    x, y = numbers(rng, dtype, 50), numbers(rng, dtype, 50)
    edges = np.array([-3, 0, 1, 9.5])
    assert_same(np.histogram2d, x, y)
    assert_same(lambda x, y: np.histogram2d(x, y, (3, 4), [[-2, 2], [0, 3.5]]), x, y)
    assert_same(lambda x, y, e: np.histogram2d(x, y, e), x, y, edges)
    assert_same(lambda x, y: np.histogram2d(x, y, [[-3, 0, 1, 9.5], 5], density=True), x, y)
    assert_same(lambda x, y: np.histogramdd((x, y, y), 3), x, y)
    assert_same(lambda x: np.histogramdd(x), x)


Grid = Callable[[Any, Any], Any]
GRIDS: list[Grid] = [
    lambda x, y: np.histogram2d(x, y, [3, 4, 5]), lambda x, y: np.histogram2d(x, y, 0),
    lambda x, y: np.histogram2d(x, y, 1.5), lambda x, y: np.histogram2d(x, y, [[2, 1], 3]),
    lambda x, y: np.histogram2d(x, y[:3]), lambda x, y: np.histogram2d(x, y, range=[[1, 2]]),
    lambda x, y: np.histogram2d(x[:0], y[:0]), lambda x, y: np.histogram2d(x * 0 + 1, y),
    lambda x, y: np.histogram2d(x * np.inf, y), lambda x, y: np.histogram2d(x, y, weights=x[:4]),
    lambda x, y: np.histogramdd((x, y), [2, 3, 4]),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(GRIDS)))
def test_corners_of_grids(at: int, rng: np.random.Generator) -> None:
    assert_same(GRIDS[at], *rng.normal(size=(2, 30)))


@pytest.mark.parametrize("size", [0, 1, 2, 7])
@pytest.mark.parametrize("name", ["hanning", "hamming", "blackman", "bartlett", "kaiser"])
def test_windows_of_a_size(name: str, size: int) -> None:
    more = (14.0,) if name == "kaiser" else ()
    assert_same(lambda x: getattr(np, name)(x.shape[0], *more) * x, np.ones(size))
    assert_same(lambda x: getattr(np, name)(len(x), *more) * x, np.ones(size))


@pytest.mark.parametrize("dtype", REAL + "D")
def test_i0(dtype: str) -> None:
    assert_same(np.i0, np.array([0, 1, 7, 8, 9, 11]).astype(dtype))
    if dtype == "d":
        assert_same(np.i0, np.array([np.nan, np.inf, -np.inf, 8.00001, 700, 800, -3]))
        assert_same(lambda beta: np.kaiser(9, beta), 3.5)
