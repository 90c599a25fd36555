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


def test_bounds_of_the_run_draw_what_known_ones_do():
    def drawn(call, *args):
        return tm.jit(call)(*args)

    known, g = Generator(4), Generator(4)
    for made in (
        drawn(lambda x: g.integers(0, len(x), 50), np.ones(7)),
        drawn(lambda n: g.integers(0, n, 50), 7),
        drawn(lambda x: g.integers(x.min(), x.max(), 50), np.array([0, 3, 7])),
        drawn(lambda x: g.integers(0, x.max(), 50), np.array([3, 7.9])),
        drawn(lambda x: g.integers(len(x), size=(50,)), np.ones(7)),
        g.integers(7, size=50), g.integers(np.int8(0), np.array(7), 50), g.integers(0, 7.9, 50),
    ):  # fmt: skip
        np.testing.assert_array_equal(made, known.integers(0, 7, 50))
    wide = drawn(lambda n: g.integers(n, 2**63, 9), -(2**63) + 1)
    np.testing.assert_array_equal(wide, known.integers(-(2**63) + 1, 2**63, 9))


def test_bounds_out_of_order_fail_the_call_and_take_no_numbers():
    g = Generator(4)
    below = tm.jit(lambda n: g.integers(0, n, 3, np.int8))
    for n in (0, -3, 129):
        with pytest.raises(ArgError, match="TM267"):
            below(n)
    assert g.state.read()[1] == 0
    assert below(128).dtype == np.int8
    for call in (lambda: g.integers(3, 3), lambda: g.integers(0), lambda: g.integers([1, 2], 5)):
        for run in (call, tm.jit(call)):
            with pytest.raises(ArgError, match="TM267"):
                run()


def test_size_is_another_name_of_shape():
    one, other = Generator(2), Generator(2)
    for draw in ("random", "uniform", "normal", "bernoulli", "bits"):
        made = getattr(one, draw)(size=(2, 3))
        np.testing.assert_array_equal(made, getattr(other, draw)(shape=(2, 3)))
        assert np.shape(getattr(one, draw)(size=None)) == np.shape(getattr(other, draw)()) == ()
        with pytest.raises(TypeError):
            getattr(one, draw)(shape=3, size=3)
    with pytest.raises(TypeError):
        one.integers(5, shape=3, size=3)
    with pytest.raises(TypeError):
        one.choice(5, shape=3, size=3)


def test_numbers_of_the_law_may_be_arrays():
    low = np.array([0.0, 10, 20])
    inside, outside = Generator(2), Generator(2)
    made = outside.uniform(low, low + 1, 3)
    assert ((made >= low) & (made < low + 1)).all()
    np.testing.assert_array_equal(tm.jit(lambda x: inside.uniform(x, x + 1, 3))(low), made)


def test_choices_are_of_rows_or_integers():
    x = np.arange(15).reshape(5, 3)
    inside, outside, places = Generator(3), Generator(3), Generator(3)
    for a, size in ((5, 40), (x, 4), (x, (2, 2)), (x[0], None), (np.int64(9), 3)):
        count = len(a) if np.ndim(a) else int(a)
        index = places.integers(0, count, size)
        wanted = a[index] if np.ndim(a) else index
        np.testing.assert_array_equal(outside.choice(a, size), wanted)
        made = tm.jit(lambda a, size=size: inside.choice(a, size))(a)
        np.testing.assert_array_equal(made, wanted)
    assert set(outside.choice([1.5, 2.5], 40)) == {1.5, 2.5}
    for options in ({"replace": False}, {"p": [0.5, 0.5]}):
        with pytest.raises(NotImplementedError, match=r"TM111(.|\n)*hint"):
            outside.choice(2, 1, **options)
    for nothing in (0, [], 2.5):
        with pytest.raises(ValueError):
            outside.choice(nothing)


def test_permutations_hold_every_row_once():
    x = np.arange(24).reshape(8, 3)
    inside, outside = Generator(3), Generator(3)
    for call in (lambda g, x: g.permutation(x), lambda g, x: x[g.permutation(len(x))]):
        made = call(outside, x)
        np.testing.assert_array_equal(np.sort(made, axis=0), x)
        np.testing.assert_array_equal(tm.jit(lambda x, c=call: c(inside, x))(x), made)
    firsts = [outside.permutation(4)[0] for _ in range(400)]
    assert stats.chisquare(np.bincount(firsts, minlength=4)).pvalue > 1e-4


def test_shuffle_puts_the_array_itself_in_order():
    x, y, held = (np.arange(12).reshape(6, 2) for _ in range(3))
    inside, outside = Generator(3), Generator(3)
    assert outside.shuffle(x) is None
    tm.jit(lambda a: inside.shuffle(a))(y)
    np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(np.sort(x, axis=0), held)
    outside.shuffle(x[:, 0])
    tm.jit(lambda: inside.shuffle(held))()
    assert (np.sort(held, axis=0) == np.arange(12).reshape(6, 2)).all()
    for wrong in ([1, 2], 3, np.array(3)):
        with pytest.raises(TypeError):
            outside.shuffle(wrong)
