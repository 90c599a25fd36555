"""Sums of few elements are NumPy's bits, and axes of few elements cost no array between kernels."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm

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
        np.testing.assert_allclose(compiled(points, other), function(points, other), rtol=1e-12)
    plan = str(compiled.lower(points, other).plan)
    assert plan.count("launch") == 1
    assert "temporary" not in plan


def test_distances_of_points_read_an_operand_turned_round(rng):
    def distances(a, b):
        apart = a[:, None, :] - b[None, :, :]
        return np.sqrt((apart * apart).sum(axis=2))

    compiled = tm.jit(distances)
    for rows, columns, size in ((90, 70, 20), (3, 1, 5), (40, 33, 64), (20, 50, 300), (5, 9, 0)):
        a, b = rng.standard_normal((rows, size)), rng.standard_normal((columns, size))
        np.testing.assert_allclose(compiled(a, b), distances(a, b), rtol=1e-13)
    assert compiled.lower(a, b) is not None
