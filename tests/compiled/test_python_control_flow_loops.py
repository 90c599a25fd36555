"""Python's `while` and `for` on traced values: jumps, `else`, what they carry, what they count.

Each function runs as plain Python too, which is the oracle. Not here: whole programs
(test_python_control_flow_programs.py), errors (test_python_control_flow_errors.py).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from python_flow import loops, same

pytestmark = pytest.mark.cpu
X = np.array([1.0, -2.0, 3.0, 0.5])


def halved(x):
    k = 0
    while x.sum() > 1:
        x = x / 2
        k += 1
    return x, k


def with_break(x):
    k = 0
    while True:
        k += 1
        if x[0] > 20:
            break
        x = x * 2 + 1
    return x, k


def with_continue(x):
    k, odd = 0, 0
    while k < 9:
        k += 1
        if (x[0] * k) % 2 < 1:
            continue
        odd += k
    return odd


def with_else(x):
    k = 0
    while x[0] > 0.5:
        x = x * 0.5
        k += 1
        if k > 3:
            break
    else:
        k = k + 100
    return k


def with_return(x):
    for i in range(50):
        x = x + 1
        if x.sum() > 40:
            return x, i
        if x[0] > 30:
            break
    else:
        return x, -2
    return x, -1


def nested_loops(x):
    total = 0
    for i in range(6):
        j = 0
        while True:
            j += 1
            if j > i:
                break
            if x[0] * j > 5:
                continue
            total += j
        if total > 12:
            break
    return total, i


def walrus(x):
    k = 0
    while (size := x.sum()) > 1:
        x = x / 2
        k += 1
    return k, size


def becoming_traced(x):
    error, k = np.inf, 0
    while error > 1e-3:
        following = x * 0.5
        error = np.abs(following - x).max()
        x = following
        k += 1
    return x, k


def containers(x):
    state = {"x": x, "n": 0}
    items = [x[0], 0]
    while state["n"] < 5 and items[0] < 50:
        state["x"] = state["x"] * 2
        state["n"] += 1
        items[0] = items[0] + state["x"][2]
    return state, items


def memory(x):
    view = x[::2]
    k = 0
    while view.sum() > 1:
        view *= 0.5
        x[1] += 1
        k += 1
    return k


def conditions(x):
    k = 0
    while k < len(x) and (x[k] > 0 or not x[k] > -3) and 0 <= k < 7:
        k += 1
    return k


def masked(x):
    y = x.copy()
    while (y < 10).any():
        y[y < 10] *= 3
        y[y <= 0] = 20
    return y


def endless(x):
    while True:
        x = x * 2
        if x.max() > 50:
            return x


FUNCTIONS = [endless, halved, with_break, with_continue, with_else, with_return,
             nested_loops, walrus, becoming_traced, containers, memory, conditions,
             masked]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_loops_run_as_in_python(function: Any) -> None:
    same(function, *[(X * factor,) for factor in (1, 3, 0.2, 25)])


def rows(x, y):
    total = np.float64(0)
    for row in x:
        if row > 0:
            total = total + row
        y[0] += row
    return total


def matrix_rows(x):
    best = x[0] + 0
    for row in x:
        if row.sum() > best.sum():
            best = row + 0
    return best, row


def counted(x, n):
    s = 0.0
    for i in range(n):
        s = s + x[i % 4] * i
    return s


def counted_down(x, n):
    found = -1
    for i in range(n, 0, -2):
        if x[i % 4] > 2:
            found = i
            break
    return found


def searched(x, wanted):
    for i, value in enumerate([3, 1, 2]):
        if value == wanted:
            return i
    return -1


def sizes(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[: i + 1].sum() if i < 2 else x[i]
    return out


def test_rows_of_any_number_are_one_loop() -> None:
    same(rows, *[(np.arange(-3.0, n), np.zeros(2)) for n in (4, 9, 2)])
    rng = np.random.default_rng(1)
    same(matrix_rows, *[(rng.random((n, 3)),) for n in (4, 7, 2)])


def test_ranges_to_numbers_of_the_run_are_one_loop() -> None:
    same(counted, *[(X, n) for n in (3, 7, 2)])
    same(counted_down, *[(X, n) for n in (9, 3, 0, 2)])


def test_a_body_that_needs_its_number_runs_while_tracing() -> None:
    def indexed(x):
        scales = [1.0, 2.0, 3.0, 4.0]
        total = 0.0
        for i in range(len(x)):
            total += scales[i] * x[i]
        return total

    same(indexed, (X,), (X[:3],), versions=2)
    same(sizes, (X,), (X[:3],), versions=2)
    same(searched, *[(X, n) for n in (2, 3, 5)], versions=3)


def test_loops_over_known_numbers_run_while_tracing() -> None:
    def side_effects(x):
        seen = []
        for i in range(3):
            seen.append(i)
            if i == 1:
                continue
            x = x + i
        return seen, x

    same(side_effects, (X,))


def iterators(x):
    items, total = iter([1, 2, 3, None]), 0
    while True:
        item = next(items)
        if item is None:
            break
        total = total + item
    return x * total


def queues(x, n):
    items, total = deque([1, 2, 3]), 0
    if n > 2:
        total = items.popleft()
    while items:
        total += items.popleft()
        if total > n:
            break
    return x * total, len(items)


def closures(x):
    def counter():
        n = 0

        def count():
            nonlocal n
            n += 1
            return n

        return count

    count = counter()
    while True:
        if count() > 5:
            break
    if x[0] > 0:
        count()
    else:
        count()
        count()
    return count()


def test_what_changes_when_it_is_used_is_used_as_often_as_in_python() -> None:
    same(iterators, (X,))
    same(queues, (X, 3), (X, 1), versions=2)
    same(closures, (X,), (-X,))


def test_a_loop_makes_its_trips_in_machine_code() -> None:
    compiled = tm.jit(halved)
    compiled(X * 1e6)
    assert loops(compiled, X, kind="while") == 1
    assert len(compiled.explain_recompiles()) == 1


def test_variables_and_random_numbers_advance_on_every_trip() -> None:
    count = tm.Variable(0, name="python loops")

    @tm.jit
    def walk(limit):
        place, generator = 0.0, tm.random.Generator(3)
        while abs(place) < limit:
            count.assign_add(1)
            place = place + generator.normal() + 0.5
        return place

    assert abs(walk(5.0)) >= 5
    trips = int(count.read())
    assert trips > 2
    assert abs(walk(50.0)) >= 50
    assert count.read() > 3 * trips


def test_without_compiling_a_loop_is_plain_python() -> None:
    with tm.disable_jit():
        x, k = tm.jit(halved)(X * 3)
    assert (k, float(x.sum())) == (3, 0.9375)


def test_a_variable_that_only_the_loop_binds_fixes_the_number_of_trips() -> None:
    def settled(x: Any, trips: int) -> Any:
        for k in range(trips):
            labels = (x > x.mean()).astype(int)
            x = x * 0.5 + labels * k
        return x, labels, k

    compiled = tm.jit(settled)
    for trips in (3, 7, 3, 1):
        for got, want in zip(compiled(X, trips), settled(X, trips)):
            np.testing.assert_array_equal(got, want)
    assert len(compiled.dispatcher.history) == 3  # one for each number of trips
    with pytest.raises(TypeError, match=r"TM260(.|\n)*labels is used"):
        compiled(X, 0)
    assert compiled(X, 7)[2] == 6
