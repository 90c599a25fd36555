"""Reductions and scans of every shape from one row to one column, against NumPy.

Not here: their order bit for bit (tests/backends/test_row_batches.py).
"""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

SHAPES = [(1, 30_000), (40, 700), (500, 60), (2_000, 24), (20_000, 10), (20_000, 8), (20_000, 5),
          (20_000, 2), (30_000, 1), (0, 9), (3, 9)]  # fmt: skip
EXACT = ("max", "argmax", "argmin", "any", "all", "cumsum", "cumprod")


def checked(name, axis, x):
    """Our value and NumPy's."""
    compiled = tm.jit(lambda x: getattr(np, name)(x, axis=axis))
    return compiled(x), getattr(np, name)(x, axis=axis)


def without_value(name, axis, x):
    """Whether NumPy raises: the largest of nothing."""
    size = x.size if axis is None else x.shape[axis]
    return name in ("max", "argmax", "argmin", "mean", "var") and size == 0


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "argmax", "argmin", "cumsum"])
def test_floats(name, axis, rng):
    for shape in SHAPES:
        x = rng.standard_normal(shape)
        if without_value(name, axis, x):
            continue
        mine, theirs = checked(name, axis, x)
        if name in EXACT:
            np.testing.assert_array_equal(mine, theirs, str(shape))
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9, err_msg=str(shape))


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", ["any", "all", "sum", "argmax", "cumsum"])
def test_bools(name, axis, rng):
    for shape in SHAPES:
        for share in (0.001, 0.999):
            x = rng.random(shape) < share
            if not without_value(name, axis, x):
                np.testing.assert_array_equal(*checked(name, axis, x), str(shape))


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("name", ["sum", "max", "argmin", "cumsum", "cumprod"])
def test_integers(name, axis, rng):
    for shape in SHAPES:
        x = rng.integers(-50, 50, shape).astype(np.int32)
        if not without_value(name, axis, x):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(*checked(name, axis, x), str(shape))


def test_a_variance_is_shared_by_threads_block_by_block(rng):
    """No kernel folds a large array alone: each sum is blocks, then their fold."""
    x = rng.standard_normal((50_000, 20))
    for axis, launches in ((None, 4), (0, 4), (1, 1)):
        compiled = tm.jit(lambda x, axis=axis: np.var(x, axis=axis))
        np.testing.assert_allclose(compiled(x), np.var(x, axis=axis), rtol=1e-9)
        assert str(compiled.lower(x).plan).count("\n  launch ") == launches


def test_the_largest_of_rows_with_nans_and_zeros_of_both_signs(rng):
    first = tm.jit(lambda x: (np.argmax(x, axis=1), np.argmin(x, axis=1), np.argmax(x)))
    for columns in (3, 10, 40, 5_000):
        x = np.where(rng.random((30, columns)) < 0.5, -0.0, 0.0)
        x[::3, columns // 2] = np.nan
        x[1::3, columns // 3 :] = -np.inf
        want = (np.argmax(x, axis=1), np.argmin(x, axis=1), np.argmax(x))
        for mine, theirs in zip(first(x), want):
            np.testing.assert_array_equal(mine, theirs)


def test_short_scans_are_written_out(rng):
    """Rows of a few elements: lanes run over rows, there is no loop along the row."""
    x = rng.standard_normal((1_000, 5)).astype(np.float32)
    compiled = tm.jit(lambda x: np.cumsum(x * 2, axis=1))
    np.testing.assert_array_equal(compiled(x), np.cumsum(x * 2, axis=1))
    assert "scan" not in str(compiled.lower(x).kernels)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads, rng):
    x = rng.standard_normal((30_000, 12)).astype(np.float32)
    functions = [lambda x: x.sum(0), lambda x: x.sum(1), np.var, lambda x: x.var(0), np.argmax]
    before = tm.num_threads()
    want = [tm.jit(f)(x) for f in functions]
    try:
        tm.set_num_threads(threads)
        for function, value in zip(functions, want):
            assert tm.jit(function)(x).tobytes() == value.tobytes()
    finally:
        tm.set_num_threads(before)
