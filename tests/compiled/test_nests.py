"""Loops around numbers that are one kernel: what they compute, how they fail, how they stop.

Not here: their kernels (kernels/test_nests.py), loops in general (test_control_flow.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from interruption import interrupt_after
from tracemill.compiler.plan import Branch, CommitPoint, Launch, Loop

pytestmark = pytest.mark.cpu
SIZES = (0, 1, 2, 7, 20)
Array = np.ndarray[Any, Any]


def shortest(d: Array) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])


def shortest_if(d: Array) -> None:
    for k in range(d.shape[0]):
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                way = d[i, k] + d[k, j]
                if way < d[i, j]:
                    d[i, j] = way


def relax(u: Array) -> None:
    n, m = u.shape
    for _ in range(3):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                u[i, j] = u[i, j] + (around - u[i, j]) / 4


def lower_triangle(a: Array) -> Array:
    root = np.zeros_like(a)
    for i in range(a.shape[0]):
        for j in range(i + 1):
            rest = a[i, j]
            for k in range(j):
                rest -= root[i, k] * root[j, k]
            if i == j:
                root[i, j] = np.sqrt(rest)
            else:
                root[i, j] = rest / root[j, j]
    return root


def neighbours(cells: Array) -> Array:
    n, m = cells.shape
    out = np.zeros_like(cells)
    for i in range(n):
        for j in range(m):
            total = cells[i, j]
            for a in (-1, 0, 1):
                total += cells[(i + a) % n, (j - a) % m]
            out[i, j] = 7 if total == 3 else total
    return out


def sort_by_insertion(x: Array) -> None:
    for i in range(1, x.shape[0]):
        j = i
        while j > 0 and x[j - 1] > x[j]:
            x[j - 1], x[j] = x[j], x[j - 1]
            j -= 1


def first_at_least(x: Array) -> int:
    found = -1
    for i in range(x.shape[0]):
        if x[i] >= 5:
            found = i
            break
    return found


def two_sums(x: Array) -> tuple[Any, Any]:
    even, odd = x[:0].sum(), x[:0].sum()
    for i in range(x.shape[0]):
        if i % 2 == 0:
            even += x[i]
        else:
            odd += x[i]
    return even, odd


def old_and_new(x: Array) -> Array:
    y = x.copy()
    for i in range(1, x.shape[0]):
        y[i] = x[i] + x[i - 1] + y[i - 1]
    return y


def turned(x: Array) -> None:
    n = x.shape[0]
    for i in range(n // 2):
        kept = x[i]
        x[i] = x[n - 1 - i]
        x[n - 1 - i] = kept


def square(n: int, dtype: Any, rng: Any) -> Array:
    a = rng.integers(0, 9, (n, n)).astype(dtype)
    return a @ a.T + 20 * np.eye(n, dtype=dtype)


def row(n: int, dtype: Any, rng: Any) -> Array:
    return rng.integers(0, 9, n).astype(dtype)


PROGRAMS: dict[Callable[..., Any], Callable[..., Array]] = {
    shortest: square,
    shortest_if: square,
    relax: square,
    lower_triangle: square,
    neighbours: square,
    sort_by_insertion: row,
    first_at_least: row,
    two_sums: row,
    old_and_new: row,
    turned: row,
}
FLOATS_ONLY = (lower_triangle, relax)


def loops_in_rows(jitted: Any, *args: Any) -> Iterator[Any]:
    """The rows of a plan that are loops or branches."""
    rows = jitted.lower(*args).plan.rows
    return (row for row in rows if isinstance(row, Loop | Branch))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_they_are_one_kernel_that_computes_what_numpy_does(program, rng) -> None:
    jitted = tm.jit(program)
    for dtype in (np.float64, np.float32, np.int64, np.int16):
        if program in FLOATS_ONLY and dtype not in (np.float64, np.float32):
            continue
        for n in SIZES:
            given = PROGRAMS[program](n, dtype, rng)
            mine, theirs = given.copy(), given.copy()
            got, want = jitted(mine), program(theirs)
            np.testing.assert_array_equal(mine, theirs)
            for a, b in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
                np.testing.assert_array_equal(a, b)
    assert not any(loops_in_rows(jitted, given))


def test_arrays_that_do_not_lie_in_order_are_read_where_they_are(rng) -> None:
    whole = rng.random((30, 30))
    jitted = tm.jit(shortest)
    for cut in (np.s_[::2, ::2], np.s_[5:20, 1:16][::-1]):
        mine, theirs = whole.copy(), whole.copy()
        jitted(mine[cut])
        shortest(theirs[cut])
        np.testing.assert_array_equal(mine, theirs)
    a = square(12, np.float64, rng)
    np.testing.assert_array_equal(tm.jit(lower_triangle)(a.T), lower_triangle(a.T))


def test_the_whole_loop_is_one_launch_into_the_result(rng) -> None:
    lowered = tm.jit(lower_triangle).lower(square(20, np.float64, rng))
    rows = [row for row in lowered.plan.rows if not isinstance(row, CommitPoint)]
    assert [type(row) for row in rows] == [Launch, Launch]
    zeros, loops = lowered.kernels.split("kernel @")[1:]
    assert zeros.startswith("constant")
    assert loops.startswith("for")


@pytest.mark.parametrize("end", [0, 5, 6, 9, 10**6])
def test_an_index_that_is_too_large_is_an_error_that_changes_nothing(end: int) -> None:
    @tm.jit
    def count(x, n):
        for i in range(n):
            for j in range(2):
                x[i] += j

    x = np.zeros(5)
    if end <= 5:
        count(x, end)
        np.testing.assert_array_equal(x, np.arange(5) < end)
        return
    with pytest.raises(IndexError, match="5") as caught:
        count(x, end)
    assert "x[i] += j" in str(caught.value) or "test_nests.py" in str(caught.value)
    np.testing.assert_array_equal(x, 0)


def test_negative_indices_count_from_the_end_as_far_as_there_are_elements() -> None:
    @tm.jit
    def back(x, n):
        total = 0.0
        for i in range(n):
            total += x[-1 - i] * (i + 1)
        return total

    x = np.arange(4.0)
    assert back(x, 4) == 3 + 2 * 2 + 1 * 3
    with pytest.raises(IndexError, match="-5"):
        back(x, 5)


def test_the_first_failure_of_several_is_the_one_that_is_told() -> None:
    @tm.jit
    def both(x, y, n):
        total = 0.0
        for i in range(n):
            total += y[i]
            total += x[i]
        return total

    with pytest.raises(IndexError, match="size 3"):
        both(np.ones(3), np.ones(7), 9)
    with pytest.raises(IndexError, match="size 4"):
        both(np.ones(8), np.ones(4), 9)


def test_a_long_loop_stops_at_ctrl_c_and_leaves_its_arrays() -> None:
    @tm.jit
    def forever(x, n):
        for i in range(n):
            for j in range(n):
                x[j % 3] += i

    x = np.zeros(3)
    forever(x, 10)
    x[:] = 0
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.1) as sent:
        forever(x, 10**7)
    assert time.monotonic() - sent[0] < 2
    np.testing.assert_array_equal(x, 0)


def test_a_while_that_never_ends_stops_at_ctrl_c() -> None:
    @tm.jit
    def forever(x):
        while x[0] >= 0:
            x[1] += 1

    x = np.zeros(2)
    with pytest.raises(KeyboardInterrupt), interrupt_after(0.1) as sent:
        forever(x)
    assert time.monotonic() - sent[0] < 2
    np.testing.assert_array_equal(x, 0)


def test_gradients_flow_through_the_numbers_of_a_loop(rng) -> None:
    def power(x, c):
        total = 0.0 * c
        for i in range(3, x.shape[0]):
            total = total * c + x[i] * x[i - 1]
        return total

    x = rng.random(9)
    got = tm.jit(tm.grad(power, 0))(x, 0.5)
    step = 1e-6 * np.eye(9)
    want = [(power(x + s, 0.5) - power(x - s, 0.5)) / 2e-6 for s in step]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)


def test_loops_that_fill_an_array_call_nothing(rng) -> None:
    @tm.jit
    def fill(x, y):
        for i in range(x.shape[0]):
            x[i] = 0
        for i in range(x.shape[0]):
            y[i] = x[i]

    for n in (0, 1, 1000):
        x, y = rng.random((2, n))
        fill(x, y)
        assert not x.any()
        assert not y.any()


def test_trips_of_fori_loop_and_while_loop_are_numbers_too(rng) -> None:
    @tm.jit
    def f(x, n):
        def outer(i, carry):
            total, best = carry
            more = tm.while_loop(lambda c: c[0] < i, lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, 0.0))
            return total + more[1], np.maximum(best, more[1])

        return tm.fori_loop(0, n, outer, (0.0, -1.0))

    x = rng.random(8)
    for n in (0, 1, 5, 8):
        sums = [x[:i].sum() for i in range(n)]
        total, best = f(x, n)
        np.testing.assert_allclose(total, sum(sums))
        np.testing.assert_allclose(best, max(sums, default=-1.0))
    assert not any(loops_in_rows(f, x, 3))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_over_numbers_reads_and_writes_its_rows_in_one_kernel(reverse: bool, rng) -> None:
    def filtered(x, k, a):
        def step(carry, row):
            y = a * carry[0] + row[0]
            return (y, carry[1] + row[1]), (y - carry[0], y > 1)

        return tm.scan(step, (x.dtype.type(0), 0), (x, k), reverse=reverse)

    jitted = tm.jit(filtered)
    for dtype in (np.float64, np.float32, np.complex128):
        for n in SIZES:
            x, k = rng.integers(0, 3, n).astype(dtype), np.arange(n)
            args = x, k, dtype(0.5)
            with tm.disable_jit():
                (y, total), (steps, large) = filtered(*args)
            (mine, whole), (rows, marks) = jitted(*args)
            for got, want in ((mine, y), (whole, total), (rows, steps), (marks, large)):
                np.testing.assert_array_equal(got, want)
    assert not any(loops_in_rows(jitted, *args))


def test_the_gradient_of_a_scan_is_a_scan_over_numbers(rng) -> None:
    def loss(x, a):
        last, ys = tm.scan(lambda y, v: (a * y + v, y * v), 0.0, x)
        return last + (ys * ys).sum()

    got = tm.jit(tm.grad(loss, (0, 1)))
    x = rng.random(7)
    want = [(loss(x + s, 0.5) - loss(x - s, 0.5)) / 2e-6 for s in 1e-6 * np.eye(7)]
    np.testing.assert_allclose(got(x, 0.5)[0], want, rtol=1e-6)
    np.testing.assert_allclose(
        got(x, 0.5)[1], (loss(x, 0.5 + 1e-6) - loss(x, 0.5 - 1e-6)) / 2e-6, rtol=1e-6
    )
    assert not any(loops_in_rows(got, x, 0.5))
