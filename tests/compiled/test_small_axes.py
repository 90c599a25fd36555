"""Sums of few elements are NumPy's bits, and axes of few elements cost no array between kernels."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm
from python_flow import operations

SUMS = {
    "rows": lambda x: x.sum(axis=1),
    "columns": lambda x: x.T.copy().sum(axis=0),
    "product": lambda x: x.prod(axis=1),
    "mean": lambda x: x.mean(axis=1),
    "beside": lambda x: x - x.sum(axis=1, keepdims=True),
    "whole": lambda x: np.sum(x[0]),
}


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_fewer_than_eight_elements_are_those_of_numpy(name, dtype, rng):
    compiled = tm.jit(SUMS[name])
    for size in (*range(1, 8), 1):
        x = (rng.standard_normal((37, size)) * 1e3).astype(dtype)
        np.testing.assert_array_equal(compiled(x), SUMS[name](x), err_msg=str(size))


@pytest.mark.parametrize("size", [3, 7])
def test_what_a_small_sum_rounds_away_is_what_numpy_rounds_away(size):
    def rest(a):
        middle = np.sum(a / a.size)
        return np.sum(a - middle)

    a = 2**59 + 3 * np.arange(size)
    assert tm.jit(rest)(a) == rest(a)


def forces(position, mass):
    offset = position[None, :, :] - position[:, None, :]
    squared = (offset * offset).sum(axis=2) + 0.01
    weight = mass[None, :] / (squared * np.sqrt(squared))
    return (weight[:, :, None] * offset).sum(axis=1)


def centres(points, means):
    """One step of k-means: the weight of every mean for every point, and where they pull it."""
    apart = points[:, None, :] - means[None, :, :]
    near = np.exp(-np.abs(apart).sum(axis=2))
    return (near[:, :, None] * means[None, :, :]).sum(axis=1) / near.sum(axis=1)[:, None]


@pytest.mark.parametrize("axes", [2, 3, 4])
@pytest.mark.parametrize("function", [forces, centres])
def test_pairs_of_points_are_one_kernel_without_an_array_of_pairs(function, axes, rng):
    compiled = tm.jit(function)
    for size in (50, 1, 7, 131):
        points = rng.standard_normal((size, axes))
        other = rng.uniform(0.5, 1.5, size) if function is forces else points[::-1].copy()
        want = function(points, other)
        near = 1e-12 * np.abs(want).max()
        np.testing.assert_allclose(compiled(points, other), want, rtol=1e-12, atol=near)
    plan = operations(str(compiled.lower(points, other).plan))
    assert plan.count("\n  launch ") == 1
    assert "temporary" not in plan


@pytest.mark.parametrize("columns", [2, 3, 5, 7])
def test_few_columns_are_summed_by_blocks_of_rows(columns, rng):
    sums = tm.jit(lambda x: (x.sum(axis=0), (x * x).mean(axis=0), x[:, 1].sum(), x.max(axis=0)))
    for rows in (20_000, 1, 5, 4097, 70_000):
        x = rng.standard_normal((rows, columns))
        got = sums(x)
        want = (x.sum(axis=0), (x * x).mean(axis=0), x[:, 1].sum(), x.max(axis=0))
        for mine, theirs in zip(got, want):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def swapped(x):
    x[:, 0], x[:, 1] = x[:, 1] * 2, x[:, 0] + x.sum(axis=1)
    return x


@pytest.mark.parametrize("columns", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_few_elements_are_read_and_written_whole(columns, dtype, rng):
    unit = tm.jit(lambda x: x / np.sqrt((x * x).sum(axis=1, keepdims=True)))
    soft, exchange = tm.jit(softmax), tm.jit(swapped)
    for rows in (100, 1, 15, 16, 17, 33):
        x = rng.standard_normal((rows, columns)).astype(dtype)
        np.testing.assert_allclose(soft(x), softmax(x), rtol=1e-5)
        want = x / np.sqrt((x * x).sum(axis=1, keepdims=True))
        np.testing.assert_array_equal(unit(x), want)
        mine, theirs = x.copy(), x.copy()
        with tm.disable_jit():
            swapped(theirs)
        exchange(mine)
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert str(soft.lower(x).plan).count("\n  launch ") == 1


@pytest.mark.parametrize("columns", [3, 9, 70])
def test_the_largest_of_numbers_with_a_nan_is_a_nan(columns, rng):
    rows = rng.standard_normal((40, columns))
    rows[::3, columns // 2] = np.nan
    rows[1::3, -1] = np.inf
    for name in ("max", "min"):
        compiled = tm.jit(lambda x, name=name: (getattr(x, name)(1), getattr(x, name)(0)))
        for mine, axis in zip(compiled(rows), (1, 0)):
            np.testing.assert_array_equal(mine, getattr(rows, name)(axis))


def test_distances_of_points_read_an_operand_turned_round(rng):
    def distances(a, b):
        apart = a[:, None, :] - b[None, :, :]
        return np.sqrt((apart * apart).sum(axis=2))

    compiled = tm.jit(distances)
    for rows, columns, size in ((90, 70, 20), (3, 1, 5), (40, 33, 64), (20, 50, 300), (5, 9, 0)):
        a, b = rng.standard_normal((rows, size)), rng.standard_normal((columns, size))
        np.testing.assert_allclose(compiled(a, b), distances(a, b), rtol=1e-13)
    assert compiled.lower(a, b) is not None
