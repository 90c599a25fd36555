"""`cond`, `while_loop`, `fori_loop`, `scan` in compiled functions: programs, bodies, state.

The same functions run as plain Python under `disable_jit`; that is the oracle.

Not here: what trips cost and how loops end (test_control_flow_running.py), errors
(test_control_flow_errors.py), rows and memory (tests/kernels/test_flow_plans.py).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu
_fresh = itertools.count()


def variable(value: Any) -> tm.Variable:
    return tm.Variable(value, name=f"control flow {next(_fresh)}")


def agree(function: Any, *args: Any) -> Any:
    """What the compiled function gives, found equal to what plain Python gives."""
    copies = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    with tm.disable_jit():
        want = function(*copies)
    got = tm.jit(function)(*args)
    left, right = optree.tree_leaves(got), optree.tree_leaves(want)
    assert len(left) == len(right)
    for a, b in zip(left, right):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    return got


# -- programs


def jacobi(u, trips):
    def step(_, u):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return u

    return tm.fori_loop(0, trips, step, u)


def test_jacobi_100_steps(rng):
    u = rng.random((24, 17))
    before = u.copy()
    got = tm.jit(jacobi)(u, 100)
    np.testing.assert_array_equal(u, before)
    want = before.copy()
    for _ in range(100):
        old = want.copy()
        want[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
    np.testing.assert_array_equal(got, want)


def newton(a):
    def far(state):
        x, step, _ = state
        return np.abs(step) > 1e-12 * x

    def improve(state):
        x, _, trips = state
        following = 0.5 * (x + a / x)
        return following, following - x, trips + 1

    x, _, trips = tm.while_loop(far, improve, (a, a, 0))
    return x, trips


def test_newton_stops_when_the_data_say_so():
    f = tm.jit(newton)
    counts = set()
    for a in (2.0, 1e6, 0.25):
        x, trips = f(a)
        np.testing.assert_allclose(x, np.sqrt(a))
        counts.add(int(trips))
    assert len(counts) > 1
    agree(newton, 7.0)


def lstm(xs, h, c, weights, bias):
    def cell(carry, x):
        h, c = carry
        gates = np.concatenate([x, h], axis=1) @ weights + bias
        i, f, g, o = np.split(gates, 4, axis=1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        return (h, c), h

    return tm.scan(cell, (h, c), xs)


def test_an_lstm_by_scan(rng):
    steps, batch, size = 9, 3, 16
    xs = rng.standard_normal((steps, batch, size))
    h, c = rng.standard_normal((2, batch, size))
    weights = rng.standard_normal((2 * size, 4 * size)) * 0.1
    bias = rng.standard_normal(4 * size)
    agree(lstm, xs, h, c, weights, bias)


def power_iteration(a, v):
    def changes(state):
        _, value, before, trips = state
        return (np.abs(value - before) > 1e-13 * np.abs(value)) & (trips < 2000)

    def multiply(state):
        v, value, _, trips = state
        w = a @ v
        v = w / np.sqrt(w @ w)
        return v, v @ (a @ v), value, trips + 1

    return tm.while_loop(changes, multiply, (v, np.float64(1), np.float64(0), 0))


def test_a_power_iteration(rng):
    a = rng.random((12, 12))
    a = a + a.T
    _, value, _, _ = agree(power_iteration, a, np.ones(12))
    np.testing.assert_allclose(value, np.linalg.eigvalsh(a)[-1])


def bisection(low, high):
    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        return tm.cond(middle**3 > 5, lambda: (low, middle), lambda: (middle, high))

    return tm.fori_loop(0, 60, halve, (low, high))


def test_bisection_by_cond():
    low, _ = agree(bisection, np.float64(0), np.float64(5))
    np.testing.assert_allclose(low, np.cbrt(5))


# -- bodies


@dataclass
class State:
    """A dataclass to carry."""

    position: Any
    trips: Any


def random_body(rng: np.random.Generator):
    """A body over a nested carry, made of steps picked at random."""

    def steps(x, m, s, i):
        return [
            lambda: (x * 0.5 + s, m, s, i + 1),
            lambda: (x[::-1] - 1, m * 0.5, x.sum() * 0.1, i),
            lambda: (x, m.T * 0.25 + x[:4, None], s + m.max() * 0.01, i + 2),
            lambda: (np.tanh(x), m[::-1], s * 0.5, i - 1),
            lambda: (np.where(x > s, x, s * 0.5), m, s, i),
            lambda: (np.roll(x, 1), m @ m * 0.05, s, i % 5),
            lambda: tm.cond(i > 2, lambda: (x + 1, m, s, i - 3), lambda: (x, -m, s, i)),
            lambda: (tm.fori_loop(0, i % 3, lambda j, y: y * 0.5 + j, x), m, s, i),
            lambda: (x, tm.scan(lambda c, r: (c + r * 0.1, c), m[0], m)[1], s, i),
        ]

    chosen = rng.integers(0, 9, 5).tolist()

    def body(index, carry):
        x, m, s, i = carry["x"], carry["rest"][0], carry["rest"][1].position, carry["rest"][1].trips
        for number in chosen:
            x, m, s, i = steps(x, m, s, i)[number]()
        return {"x": x + index * 0.01, "rest": (m, State(s, i))}

    return body


@pytest.mark.parametrize("number", range(12))
def test_random_bodies_compute_what_a_python_loop_does(number: int, rng):
    body = random_body(rng)

    def loops(x, m, trips):
        return tm.fori_loop(0, trips, body, {"x": x, "rest": (m, State(np.float64(0.5), 1))})

    f = tm.jit(loops)
    for trips in (0, 1, 2, 7):
        x, m = rng.standard_normal(6), rng.standard_normal((4, 4))
        with tm.disable_jit():
            want = loops(x, m, trips)
        got = f(x, m, trips)
        for a, b in zip(
            (got["x"], got["rest"][0], got["rest"][1].position, got["rest"][1].trips),
            (want["x"], want["rest"][0], want["rest"][1].position, want["rest"][1].trips),
        ):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
            assert np.asarray(a).dtype == np.asarray(b).dtype


def test_nested_loops_with_bounds_from_outer_ones():
    def triangle(n):
        def outer(i, total):
            return tm.fori_loop(0, i, lambda j, t: t + i * j, total)

        return tm.fori_loop(0, n, outer, 0)

    for n in (0, 1, 2, 6):
        assert agree(triangle, n) == sum(i * j for i in range(n) for j in range(i))


def test_sizes_stay_open():
    def run(x, y):
        def body(c, row):
            return c + row[: y.shape[0]].sum(), c * x.shape[1]

        return tm.scan(body, 0.0, x)

    f = tm.jit(run)
    for n, m, k in ((3, 9, 8), (0, 12, 10), (5, 30, 9), (1, 20, 20)):
        x, y = np.arange(float(n * m)).reshape(n, m), np.ones(k)
        with tm.disable_jit():
            want = run(x, y)
        got = f(x, y)
        np.testing.assert_allclose(got[0], want[0])
        np.testing.assert_allclose(got[1], want[1])
    assert len(f.dispatcher.versions) <= 2


def test_a_python_number_takes_the_type_that_the_body_gives_it():
    x = np.arange(5, dtype=np.float32)

    def total(x):
        return tm.fori_loop(0, x.shape[0], lambda i, s: s + x[i], 0.0)

    assert agree(total, x).dtype == np.float32

    def count(n):
        return tm.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 0.5), (0, 1))

    whole, half = tm.jit(count)(3)
    assert (whole, half) == (3, 0.125)
    assert (whole.dtype, half.dtype) == (np.int64, np.float64)


def test_reverse_scans_and_scans_without_arrays(rng):
    x = rng.random((5, 3))
    agree(lambda x: tm.scan(lambda c, r: (c + r, {"y": c * r, "c": c}), x[0], x, reverse=True), x)
    agree(lambda x: tm.scan(lambda c, _: (c * 0.5, c.sum()), x, None, length=4), x)
    agree(lambda x: tm.scan(lambda c, r: (c, r), (), x)[1], x)
    agree(lambda x: tm.scan(lambda c, r: (c + r, None), x[0], x), x)


def test_what_no_trip_changes_and_what_is_carried_twice(rng):
    x = rng.random(4)
    agree(lambda x: tm.fori_loop(0, 3, lambda i, c: (c[0], c[1] + c[0]), (x, x)), x)
    agree(lambda x: tm.fori_loop(0, 3, lambda i, c: (c[1], c[1] * 2), (x, x)), x)
    agree(lambda x: tm.fori_loop(0, 3, lambda i, c: (c[1], c[2], c[0]), (x, x + 1, x + 2)), x)


def test_a_branch_that_is_not_taken_does_not_run(capsys):
    @tm.jit
    def f(x, k):
        return tm.cond(k > 0, lambda: x[np.array([k])], lambda: x[:1] * 0)

    x = np.arange(3.0)
    assert f(x, 2) == [2.0]
    assert f(x, -7) == [0.0]
    with pytest.raises(IndexError):
        f(x, 3)


# -- state and effects


def test_variables_are_read_and_assigned_in_bodies():
    w, trips = variable(np.zeros(3)), variable(np.int64(0))

    @tm.jit
    def run(n, x):
        def body(i, seen):
            w.assign(w.read() * 0.5 + x)
            trips.assign_add(1)
            return seen + w.read().sum()

        return tm.fori_loop(0, n, body, 0.0)

    value, seen = np.zeros(3), 0.0
    for _ in range(4):
        value = value * 0.5 + np.arange(3.0)
        seen += value.sum()
    assert run(4, np.arange(3.0)) == seen
    np.testing.assert_array_equal(w.read(), value)
    assert trips.read() == 4
    assert run(0, np.arange(3.0)) == 0
    assert trips.read() == 4


def test_branches_assign_variables():
    hits, misses = variable(np.int64(0)), variable(np.int64(0))

    @tm.jit
    def note(x):
        tm.cond(x > 0, lambda: hits.assign_add(1), lambda: misses.assign_add(2))
        return hits.read() - misses.read()

    assert [note(x) for x in (1.0, -1.0, 3.0)] == [1, -1, 0]


def test_a_training_loop_is_one_call(rng):
    x = rng.standard_normal((32, 5))
    true = rng.standard_normal(5)
    y = x @ true
    w = variable(np.zeros(5))
    optimiser = tm.optim.SGD([w], lr=0.1)

    @tm.jit
    def train(x, y, steps):
        def step(i, _):
            loss = ((x @ w.read() - y) ** 2).mean()
            optimiser.apply(tm.gradients(loss, [w]))
            return loss

        return tm.fori_loop(0, steps, step, np.inf)

    value = np.zeros(5)
    for _ in range(20):
        value = value - 0.1 * 2 / 32 * x.T @ (x @ value - y)
    train(x, y, 20)
    np.testing.assert_allclose(w.read(), value)


def test_random_numbers_in_a_loop_are_those_of_a_python_loop():
    inside, outside = tm.random.Generator(5), tm.random.Generator(5)
    got = tm.jit(lambda n: tm.fori_loop(0, n, lambda i, c: c + inside.random(3), np.zeros(3)))(4)
    want = np.zeros(3)
    for _ in range(4):
        want = want + outside.random(3)
    np.testing.assert_array_equal(got, want)


def test_prints_come_in_the_order_of_the_program(capsys):
    @tm.jit
    def f(n):
        tm.print("before")

        def body(i, c):
            tm.cond(i % 2 == 0, lambda: tm.print("even {}", i), lambda: tm.print("odd {}", i))
            return c + i

        total = tm.fori_loop(0, n, body, 0)
        tm.print("after {}", total)
        return total

    f(3)
    assert capsys.readouterr().out == "before\neven 0\nodd 1\neven 2\nafter 3\n"
