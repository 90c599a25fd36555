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


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_power_that_the_type_holds_is_exact(dtype: str, rng: np.random.Generator) -> None:
    digits = np.finfo(dtype).nmant + 1
    cases = [(x, k) for k in range(2, 12) for x in range(2, 2000) if x**k < 2**digits]
    base, exponent = (np.array(column, dtype) for column in zip(*cases))
    wanted = np.array([x**k for x, k in cases], dtype)
    least, most = int(np.finfo(dtype).minexp) - digits + 1, int(np.finfo(dtype).maxexp)
    twos = np.arange(least, most, dtype=dtype)
    wide = (rng.lognormal(0, 20, 5000) * rng.choice([-1, 1], 5000)).astype(dtype)
    wide[:3] = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny / 3, np.finfo(dtype).max
    power = tm.jit(lambda x, y: x**y)
    for x, y, want in [
        (base, exponent, wanted), (base * base, exponent / 2, wanted),
        (wide, np.ones_like(wide), wide),
        (base * 0 + 2, base * 0 - 1, base * 0 + 0.5),
        (-base[:50], exponent[:50] * 0 + 1, -base[:50]),
        (twos * 0 + 2, twos, np.ldexp(np.ones_like(twos), twos.astype(int))),
    ]:  # fmt: skip
        fits = x < 2**digits
        assert same_bits(power(x, y)[fits], want[fits]).all()
    assert same_bits(tm.jit(lambda x: x**1.0)(wide), wide).all()
    assert tm.jit(lambda x, y: x**y)(77.0, 2.0) == 5929.0


# -- conversions, scans


@pytest.mark.parametrize("target", ["i1", "i2", "u1", "u2", "i4", "i8", "u8"])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, "f2", "f4", "f8"])
def test_a_float_that_does_not_fit_an_integer_becomes_what_numpy_makes_of_it(
    dtype: Any, target: str, rng: np.random.Generator
) -> None:
    ends = [sign * (2.0**bits + step) for sign in (1, -1) for bits in (7, 8, 15, 16, 31, 32, 40, 63)
            for step in (-1, -0.5, 0, 0.5, 1, 300, 70_000)]  # fmt: skip
    wide = rng.choice([-1, 1], 3000) * 2.0 ** rng.uniform(-2, 62, 3000)
    with np.errstate(all="ignore"):
        x = np.array([np.nan, np.inf, -np.inf, *ends, *wide]).astype(dtype)
        if dtype is ml_dtypes.bfloat16 and target == "u8":
            x = x[np.abs(x.astype(float)) < 2**63]
        want = x.astype(target)
        compiled = tm.jit(lambda x: x.astype(target))
        for part in (slice(None), slice(None, None, 3), slice(0, 5), slice(7, 8)):
            assert_equal(compiled(x[part]), want[part])
        for k in range(12):
            assert_equal(compiled(x[k]), want[k])


def test_a_float_becomes_the_low_bits_of_its_int64_as_uint32() -> None:
    x = np.array([2.0**40 + 5, -(2.0**63), np.nan, 5e9, -1.5, 1e20, -5e9])
    compiled = tm.jit(lambda x: x.astype(np.uint32))
    with np.errstate(all="ignore"):
        assert_equal(compiled(np.tile(x, 9)), np.tile(x.astype(np.int64).astype(np.uint32), 9))
        for value in x:  # single values, of which NumPy makes this
            assert_equal(compiled(value), value.astype(np.uint32))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, "f2"])
@pytest.mark.parametrize("scan", [np.cumsum, np.cumprod])
def test_scans_of_halves_round_at_every_step(
    scan: Any, dtype: Any, rng: np.random.Generator
) -> None:
    compiled = tm.jit(lambda x, axis: scan(x, axis), static_argnames="axis")
    for shape in [(3000,), (5,), (40, 33), (9, 700), (700, 3), (30, 5), (5, 30)]:
        x = rng.normal(1.01, 0.05, shape).astype(dtype)
        for axis in range(x.ndim):
            with np.errstate(all="ignore"):
                assert_equal(compiled(x, axis), scan(x, axis))
    x = np.full(3000, 1.01, dtype)
    assert tm.jit(np.cumsum)(x)[-1] == np.cumsum(x)[-1] != x.astype(float).sum().astype(dtype)
