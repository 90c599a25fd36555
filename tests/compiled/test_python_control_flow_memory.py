"""Arrays, containers and objects that blocks of control flow change: seen by views and callers.

Not here: arrays whose memory is not known (test_python_control_flow_errors.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from python_flow import same

pytestmark = pytest.mark.cpu
X = np.array([1.0, -2.0, 3.0, 0.5])


@dataclass
class Pair:
    left: Any
    right: Any


def containers(x):
    state = {"x": x, "n": 0}
    items = [x[0], 1, None]
    pair = Pair(x, 1)
    if x[0] > 0:
        state = {"x": x * 2, "n": 1}
        items = [x[1], 2, None]
        pair = Pair(x + 1, 2)
    return state, items, pair


def containers_in_place(x):
    state, items = {"x": x, "n": 0}, [x[0], 1]
    if x[0] > 0:
        state["n"] = 5
        items[0] = x[1]
    else:
        items[1] = 7
        state["x"] = x * 2
    return state, items


def appended(x):
    items = []
    if x.sum() > 0:
        items.append(x)
    else:
        items.append(-x)
        items.append(x)
        items.pop()
    return items


class Counter:
    def __init__(self) -> None:
        self.total = np.float64(0)

    def add(self, value: Any) -> None:
        if value > 0:
            self.total = self.total + value
        else:
            self.total = self.total - value


def objects(x):
    counter = Counter()
    for i in range(3):
        counter.add(x[i])
    return counter.total


@pytest.mark.parametrize(
    "function", [containers, containers_in_place, appended, objects], ids=lambda f: f.__name__
)
def test_containers_and_objects_hold_what_the_branch_put_there(function: Any) -> None:
    same(function, (X,), (-X,))


def written(x):
    y = x * 2
    view = y[1:]
    if x[0] > 0:
        x[1:] = 7
        view[0] = x[0]
        y += 1
    else:
        x *= 2
        np.add(view, 1, out=view)
    return y, view, x


def written_deeper(x):
    rows = x.reshape(2, 2).T
    if x[0] > 0:
        if x[1] > 0:
            rows[0] = 5
        else:
            rows[:, 1] -= 1
        rows.sort(axis=0)
    return rows + 0


def written_by_a_helper(x):
    def fill(part):
        if part.sum() > 1:
            part[:] = 1
        else:
            part += 1

    fill(x[:2])
    fill(x[2:])
    return x.sum()


@pytest.mark.parametrize(
    "function", [written, written_deeper, written_by_a_helper], ids=lambda f: f.__name__
)
def test_arrays_around_a_branch_are_written_and_seen_by_views_and_callers(function: Any) -> None:
    same(function, (X,), (-X,), (np.abs(X),))


def test_arrays_that_share_memory_are_written_in_a_branch() -> None:
    @tm.jit
    def f(a, b):
        if b.sum() > 0:
            a[1:] = 7
        return b.sum()

    x, y = np.arange(6.0), np.arange(6.0)
    y[1:4] = 7
    assert f(x[:4], x[2:]) == y[2:].sum()
    np.testing.assert_array_equal(x, y)


def test_buffers_may_take_turns() -> None:
    def smoothed(x, n):
        old, new = x.copy(), x.copy()
        for _ in range(n):
            new[1:-1] = 0.5 * (old[2:] + old[:-2])
            old, new = new, old
        return old

    same(smoothed, (X, 3), (X, 4), (np.arange(9.0) ** 2, 5))


def written_by_bodies(x):
    y = x * 2
    view = y[1:]

    def body(i, total):
        view[0] += i
        x[i] = y[1]
        return total + y.sum()

    total = tm.fori_loop(0, 3, body, np.float64(0))
    tm.cond(total > 0, lambda: x.sort(), lambda: None)
    return total, y


def test_bodies_of_loops_write_arrays_around_them() -> None:
    for x in (X, -X):
        own, plain = x.copy(), x.copy()
        with tm.disable_jit():
            want = written_by_bodies(plain)
        got = tm.jit(written_by_bodies)(own)
        np.testing.assert_array_equal(got[1], want[1])
        assert got[0] == want[0]
        np.testing.assert_array_equal(own, plain)


def exchanged(x):
    a, b = x * 2, x * 3
    if x.sum() > 0:
        a, b = b, a
    a[0] = 1
    return a, b


def exchanged_on_trips(x):
    y, z = x + 1, x * 2
    for k in range(30):
        if x[k % 4] > 0:
            y, z = z, y
        y[0] += 1
        z[1] += 0.5
    return y, z


def one_of_two_that_nobody_uses(x):
    a, b = x * 2, x * 3
    c = a if x.sum() > 0 else b
    c[0] = 1
    return c


def kept_or_new(x):
    y = x + 1
    if x.sum() > 0:
        y = y * 0.5
    y[0] = 7
    for k in range(20):
        y[0] += x[k % 4]
        if x[k % 4] > 0:
            y = y * 0.5
    y[1] = 3
    return y


def delayed(x):
    a, b = x + 1, x * 2
    for _ in range(20):
        kept = a
        a = a + b
        b = kept
        b[0] = 1
    return a, b


@pytest.mark.parametrize(
    "function",
    [exchanged, exchanged_on_trips, one_of_two_that_nobody_uses, kept_or_new, delayed],
    ids=lambda f: f.__name__,
)
def test_a_name_that_is_the_only_one_used_of_its_memory_is_written(function: Any) -> None:
    same(function, (X,), (-X,))


def parts_read_between_writes(x, n):
    a, b = x + 1, x * 2
    for _ in range(n):
        old = a.copy()
        a[0] = b.sum() * 0.125
        b[-1] = old[-1]
        a[1:] = a[:-1] + 1
    return a, b


def rows_exchanged(x, n):
    m = np.ones((3, 2)) + x[:2]
    for t in range(n):
        m[0], m[1] = m[1].copy(), m[0].copy()
        m[1, 1] = x[t % 4]
    return m


def edges_after_the_middle(x, n):
    for _ in range(n):
        x[1:-1] = 0.5 * (x[2:] + x[:-2])
        x[0] = x[1]
        x[-1] = x[-2]
    return x


@pytest.mark.parametrize(
    "function",
    [parts_read_between_writes, rows_exchanged, edges_after_the_middle],
    ids=lambda f: f.__name__,
)
def test_what_a_trip_reads_between_two_writes_is_what_it_wrote(function: Any) -> None:
    same(function, *[(X, n) for n in (1, 2, 3, 5, 8)])
