"""Answers that were wrong in a corner: kernels, kinds of numbers, powers, sizes of code.

Not here: which answers NumPy gives for whole programs (tests/differential).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracemill as tm
from lanes import same_bits
from traced import assert_equal

# -- kernels


@pytest.mark.parametrize(("rows", "size"), [(7, 6), (2, 0), (34, 9), (300, 200)])
def test_products_beside_other_loops_of_their_kernel_fill_all_of_their_result(
    rows: int, size: int
) -> None:
    def function(d: Any, e: Any, c: Any) -> Any:
        product = np.einsum("ij,kj->ik", np.broadcast_arrays(d, c)[0], d)
        positive = np.nan_to_num(product)
        other = np.nan_to_num(np.broadcast_to(e, (c.shape[0], e.shape[1])) @ e.T) * 2
        return np.max(positive, axis=1, initial=1, keepdims=True), positive, other

    d = np.arange(size, dtype=float)[None] / 8
    c = np.zeros((rows, 1), np.float32)
    compiled = tm.jit(function)
    for sizes in (c, c[:-1], c):
        assert_equal(compiled(d, d + 1, sizes), function(d, d + 1, sizes))


def test_a_sign_taken_from_a_rounded_half_needs_no_library() -> None:
    def function(x: Any) -> Any:
        return np.modf(np.exp(x % 5))

    for x in (np.array(3, np.uint8), np.arange(100, dtype=np.uint8)):
        assert_equal(tm.jit(function)(x), function(x))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_copysign_takes_any_sign(dtype: str) -> None:
    x = np.array([1.5, -2, 0, -0.0, np.inf, -np.inf, 3], dtype)
    y = np.array([-0.0, 1, -1, 0, -np.inf, 2, -3], dtype)
    assert same_bits(tm.jit(np.copysign)(x, y), np.copysign(x, y)).all()
    assert tm.jit(np.copysign)(x[0], y[0]) == -1.5


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("count", [5, 700])
def test_many_lanes_gather_and_scatter_whatever_their_type(dtype: str, count: int) -> None:
    def function(x: Any, y: Any, i: Any) -> Any:
        y[:, 1] = x[:, 5]
        y[::3, 9] = x[::3, 0]
        y[::-2, 2] = x[::-2, 8]
        return x[:, 9:2:-3] != 0, x.max(axis=0), x[i, 4], x[:, ::4].T + x[:, 1]

    x = (np.arange(count * 10).reshape(count, 10) % 120).astype(dtype)
    places = np.arange(count)[::-1].copy()
    compiled = tm.jit(function)
    mine, theirs = np.zeros_like(x), np.zeros_like(x)
    assert_equal(compiled(x, mine, places), function(x, theirs, places))
    assert_equal(mine, theirs)


def test_code_that_reads_bytes_far_apart_does_not_grow_with_its_lanes() -> None:
    lowered = tm.jit(lambda x: x.max(axis=(2, 0))).lower(np.zeros((9, 7, 12), np.uint8))
    assert 0 < lowered.asm.count("\n") < 2500, "a line for each of hundreds of lanes"


# -- numbers of Python


def test_a_negative_python_number_has_no_fractional_power() -> None:
    compiled = tm.jit(lambda x, p: x**p)
    for x, p in [(4.0, 0.5), (-4.0, 3), (-4.0, 2.0), (-np.inf, 0.5), (np.nan, 0.5), (-1.0, np.inf),
                 (True, 0.5), (2, -2), (0.0, 0.5), (-8.0, -1.0)]:  # fmt: skip
        assert_equal(compiled(float(x), p), float(x) ** p)
    for x, p in [(-4.0, 0.5), (-8.0, 1 / 3), (-4, -0.5)]:
        with pytest.raises(ValueError, match=r"TM253[\s\S]*complex\(x\) \*\* p"):
            compiled(x, p)
        with pytest.raises(ValueError, match="TM253"):
            tm.jit(lambda x, p=p: x**p)(x)
    for p in (-1.0, -0.5, -2):
        with pytest.raises(ZeroDivisionError):
            compiled(0.0, p)
    assert_equal(tm.jit(lambda x: complex(x) ** 0.5)(-4.0), complex(-4.0) ** 0.5)
    assert np.isnan(tm.jit(lambda x: np.float64(x) ** 0.5)(-4.0))


def test_a_complex_numpy_scalar_gives_its_real_part_with_a_warning() -> None:
    function = tm.jit(lambda c: (float(c[0]), int(c.sum()), complex(c[0])))
    with pytest.warns(np.exceptions.ComplexWarning):
        assert function(np.array([1.5 + 2j])) == (1.5, 1, 1.5 + 2j)
    for c in (np.array(1.5 + 2j), np.array([1.5])):
        with pytest.raises(TypeError):
            tm.jit(lambda c: float(c))(c)


@pytest.mark.parametrize("mode", ["raise", "clip", "wrap"])
def test_nothing_can_be_taken_from_an_empty_axis(mode: str) -> None:
    taken = tm.jit(lambda x, i: np.take(x, i, axis=0, mode=mode))
    with pytest.raises(IndexError):
        taken(np.empty((0, 3)), np.array([0]))
    assert taken(np.empty((0, 3)), np.array([], int)).shape == (0, 3)


# -- powers, degrees, rounding


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, "f2", "f4", "f8"])
def test_a_power_of_one_half_is_a_root_where_numpy_takes_one(dtype: Any) -> None:
    def function(x: Any) -> Any:
        return x**0.5, np.power(x, 0.5), x[0] ** 0.5, x[1] ** 0.5, np.power(x, x * 0 + x[-1] / 2)

    x = np.array([-np.inf, -0.0, 0, 2.25, np.inf, 1]).astype(dtype)
    with np.errstate(all="ignore"):
        for got, want in zip(tm.jit(function)(x), function(x)):
            assert same_bits(np.asarray(got), np.asarray(want)).all(), (got, want)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_degrees_and_radians_are_numpys_bit_for_bit(dtype: str, rng: np.random.Generator) -> None:
    x = rng.standard_normal(1000).astype(dtype)
    for ufunc in (np.degrees, np.radians, np.rad2deg, np.deg2rad):
        assert same_bits(tm.jit(ufunc)(x), ufunc(x)).all()


def test_rounding_to_digits_keeps_each_step_in_the_dtype(rng: np.random.Generator) -> None:
    for dtype in (ml_dtypes.bfloat16, "f2", "f4", "f8"):
        x = (rng.standard_normal(500) * 9).astype(dtype)
        for digits in (1, 2, -1):
            got = tm.jit(lambda x, digits=digits: np.round(x, digits))(x)
            assert same_bits(got, np.round(x, digits)).all()
