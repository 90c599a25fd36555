"""Generators: the same numbers for the same seed, of the right law, whoever draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tracemill as tm
from tracemill.compiler.errors import ArgError, DTypeError
from tracemill.compiler.ops.elementwise_bits import philox_bits
from tracemill.random import Generator


def test_the_stream_is_philox_by_counter():
    g = Generator(1)
    key, counter = g.state.read()
    assert counter == 0
    wanted = philox_bits(np.arange(12, dtype=np.uint64), key)
    np.testing.assert_array_equal(g.bits(5), wanted[:5])
    np.testing.assert_array_equal(g.bits((7,)), wanted[5:])
    assert g.state.read()[1] == 12


def test_inside_and_outside_draw_the_same():
    inside, outside = Generator(3), Generator(3)

    @tm.jit
    def draw():
        return (inside.random((2, 3)), inside.normal(shape=4), inside.integers(-5, 5, 6),
                inside.random((), np.float32))  # fmt: skip

    for _ in range(2):
        found = draw()
        wanted = (outside.random((2, 3)), outside.normal(shape=4), outside.integers(-5, 5, 6),
                  outside.random((), np.float32))  # fmt: skip
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype
    assert len(draw.dispatcher.history) == 1


def test_seeds_and_calls_differ():
    drawn = [Generator(s).bits(8) for s in (0, 1, None, None)]
    assert len({d.tobytes() for d in drawn}) == 4
    g = Generator(0)
    assert (g.bits(8) != g.bits(8)).all()


def test_sizes_of_arguments():
    g = Generator(2)
    noisy = tm.jit(lambda x: x + g.normal(0.0, 1.0, x.shape))
    for n in (4, 7):
        assert noisy(np.zeros((n, 2))).shape == (n, 2)
    assert g.state.read()[1] == 2 * 2 * (4 + 7)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_uniform_numbers(dtype):
    x = Generator(5).random(20000, dtype)
    assert x.dtype == dtype
    assert ((x >= 0) & (x < 1)).all()
    assert stats.kstest(x.astype(np.float64), "uniform").pvalue > 1e-3
    y = Generator(5).uniform(-2.0, 6.0, 1000, dtype)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, -2 + 8 * x[:1000].astype(float), atol=2e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_numbers(dtype):
    x = Generator(6).normal(1.0, 2.0, 20000, dtype)
    assert x.dtype == dtype
    assert np.isfinite(x).all()
    assert stats.kstest((x.astype(np.float64) - 1) / 2, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.03


def test_integers():
    x = Generator(7).integers(-3, 4, 14000)
    counts = np.bincount(x + 3, minlength=7)
    assert x.dtype == np.int64
    assert stats.chisquare(counts).pvalue > 1e-3
    small = Generator(7).integers(250, 256, 500, np.uint8)
    assert small.dtype == np.uint8
    assert set(small) == set(range(250, 256))
    wide = Generator(7).integers(0, 2**64, 4, np.uint64)
    np.testing.assert_array_equal(wide, Generator(7).bits(4))
    for low, high, dtype in ((3, 3, int), (0, 300, np.uint8), (0, 5, float)):
        with pytest.raises(ArgError):
            Generator(0).integers(low, high, 2, dtype)
    with pytest.raises(DTypeError):
        Generator(0).random(3, int)


def test_bernoulli():
    x = Generator(8).bernoulli(0.3, 10000)
    assert x.dtype == bool
    assert abs(x.mean() - 0.3) < 0.02


def test_the_state_can_be_saved_and_put_back():
    g = Generator(9)
    g.bits(3)
    saved = g.state.read()
    first = g.normal(shape=5)
    g.state.assign(saved)
    np.testing.assert_array_equal(g.normal(shape=5), first)
