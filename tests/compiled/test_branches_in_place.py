"""Branches that write an element write an element: what a branch hands on lies where it was.

Each program runs as plain Python too, which is the oracle. Not here: other control flow
(test_python_control_flow*.py), branches as rows of graphs (tests/kernels/test_flow_plans.py).
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from branch_programs import program
from python_flow import drawn, same

pytestmark = pytest.mark.cpu
N = 24
INTEGERS = np.random.default_rng(3).integers(0, 5, N)


def labelled(m, lab):
    for i in range(len(m)):
        if m[i]:
            lab[i] = i
    return lab


def gathered(v):
    out = np.zeros(len(v))
    k = 0
    for i in range(len(v)):
        if v[i] > 0:
            out[k] = v[i]
            k += 1
    return out, k


def bubbled(a):
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def skipped(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        if abs(x[i]) > 1:
            continue
        y[i] = x[i] * 2
    return y


def once(x, t):
    y = x + 1
    if t > 0:
        y[3] = 5.0
    return y


def scaled(x, t):
    y = x * 2
    if t > 0:
        y += 1
    return y


def both(x, t):
    y = x * 2
    if t > 0:
        y[0] = x[1]
        y[1] = y[0] + 1
    else:
        y[2] = y[3]
    return y


def nested(x, t, u):
    y = x * 2
    if t > 0:
        y[0] = 1
        if u > 0:
            y[1] = 5
        else:
            y[2] = y[0]
        y[3] = y[2]
    return y


def counted(idx, c):
    for i in range(len(idx)):
        if idx[i] > 1:
            c[idx[i]] += 1
    return c


def clipped(m, t):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] > t:
                m[i, j] = t
            elif m[i, j] < -t:
                m[i, j] = -t
    return m


def rows(m, other):
    for i in range(len(m)):
        if m[i, 0] > 0:
            m[i] = other[i]
    return m


def row_swaps(m):
    for i in range(len(m) - 1):
        if m[i, 0] > m[i + 1, 0]:
            kept = m[i].copy()
            m[i] = m[i + 1]
            m[i + 1] = kept
    return m


def sieved(n, p):
    for i in range(2, n):
        if p[i]:
            j = i * i
            while j < n:
                p[j] = False
                j += i
    return p


def parted(x):
    a, b = np.zeros(len(x)), np.zeros(len(x))
    i = j = 0
    for k in range(len(x)):
        if x[k] < 0:
            a[i] = x[k]
            i += 1
        else:
            b[j] = x[k]
            j += 1
    return a, b, i, j


def windows(x):
    y = np.zeros(len(x))
    for i in range(len(x) - 3):
        if x[i] > 0:
            y[i : i + 3] = x[i]
    return y


def eliminated(m):
    n = len(m)
    for k in range(n):
        for i in range(k + 1, n):
            if abs(m[i, k]) > 1e-12:
                f = m[i, k] / m[k, k]
                m[i] = m[i] - f * m[k]
    return m


ONE, MINUS = np.float64(1), np.float64(-1)
SQUARE, WIDE = drawn(5, 5), drawn(6, 5, seed=1)
IN_PLACE: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (labelled, [(drawn(N) > 0, np.zeros(N, int)), (np.ones(3, bool), np.zeros(3, int))]),
    (gathered, [(drawn(N),), (drawn(7, seed=2),), (-np.ones(4),)]),
    (bubbled, [(drawn(N),), (drawn(9, seed=2),)]),
    (skipped, [(drawn(N),), (drawn(7, seed=2),)]),
    (once, [(drawn(N), ONE), (drawn(N), MINUS)]),
    (scaled, [(drawn(N), ONE), (drawn(N), MINUS)]),
    (both, [(drawn(N), ONE), (drawn(N), MINUS)]),
    (nested, [(drawn(N), a, b) for a, b in itertools.product((ONE, MINUS), repeat=2)]),
    (counted, [(INTEGERS, np.zeros(5, int)), (INTEGERS[:7], np.ones(6, int))]),
    (clipped, [(WIDE, np.float64(0.5)), (SQUARE, np.float64(0.1))]),
    (rows, [(WIDE, WIDE + 1), (SQUARE, SQUARE * 2)]),
    (row_swaps, [(WIDE,), (SQUARE,)]),
    (sieved, [(N, np.ones(N, bool)), (50, np.ones(50, bool))]),
    (parted, [(drawn(N),), (drawn(9, seed=2),)]),
    (windows, [(drawn(N),), (drawn(9, seed=2),)]),
    (eliminated, [(SQUARE,), (drawn(5, 5, seed=2),)]),
]


@pytest.mark.parametrize(("function", "calls"), IN_PLACE, ids=[f.__name__ for f, _ in IN_PLACE])
def test_no_branch_and_no_trip_copies_what_a_branch_writes_a_part_of(
    function: Any, calls: list[tuple[Any, ...]]
) -> None:
    compiled = same(function, *calls, *calls[:1])
    plan = str(compiled.lower(*calls[0]).plan).splitlines()
    rows = [line.strip() for line in plan]  # a branch is one, or in the kernel of a loop
    assert any(row.startswith("if ") or re.match(r"launch \d+ @(for|while)_", row) for row in rows)
    inner = [line.strip() for line in plan if line.startswith("    ")]  # of loops and branches
    assert not [line for line in inner if line.startswith("copy ")]


# -- what must be copied, or written in an order of its own


def needed_later(x, t):
    y = x + 1
    z = y.copy()
    if t > 0:
        y[0] = 7
    return y, z, y - z


def read_after_it_is_written(x, t):
    y, z = x + 1, x * 2
    if t > 0:
        y[0] = 7
        z[1] = y[0]
    else:
        z[0] = y[0]
        y[1] = z[0]
    return y + z, y, z


def given_twice(x, t):
    y, z = x + 1, x * 2
    if t > 0:
        y[:2] = z[1]
        z[:] = y
        y[0] = z.sum()
    return y, z


def exchanged(x, y, t):
    for _ in range(3):
        if t > 0:
            x[:], y[:] = y.copy(), x.copy()
        t = t + x[0]
    return x, y


def shifted(x):
    for i in range(len(x)):
        if x[i] > 0:
            x[1:] = x[:-1] + x[1:]
    return x


def turned(x, t):
    y = x * 2
    for i in range(3):
        if t > i:
            y[:] = y[::-1] + i
        y[i] += 1
    return y


def the_argument(x, t):
    if t > 0:
        x[0] = 5
    return x.sum()


def the_argument_twice(x, t, u):
    if t > 0:
        x[0] = 5
        if u > 0:
            x[1] = x[0]
    if u > 0:
        x[2] = x[1]
    return x[0]


def a_flag(x, trips):
    first, found = True, -1
    for i in range(trips):
        if first:
            x[i] = -x[i]
            first = x[i] > 0
            found = i
    return x, found


def the_best(x):
    best, cur = x.copy(), x * 1
    for i in range(len(x)):
        cur[i] = x[i] + cur[i - 1]
        if cur[i] > best[0]:
            best[:] = cur
            best[i] += 1
    return best, cur


def a_helper(x):
    def put(y, i):
        if x[i] > 0:
            y[i] = x[i] + y[i - 1]

    y = np.zeros(len(x))
    for i in range(len(x)):
        put(y, i)
    return y


def left(x, y):
    for i in range(len(x)):
        y[i] = 1
        if x[i] > 1.5:
            return y, i
        if x[i] < -1.5:
            break
        y[i] = x[i]
    return y, -1


ORDERED: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (a_helper, [(drawn(N),), (drawn(9, seed=2),)]),
    (needed_later, [(drawn(N), ONE), (drawn(N), MINUS)]),
    (read_after_it_is_written, [(drawn(N), ONE), (drawn(N), MINUS)]),
    (given_twice, [(drawn(N), ONE), (drawn(N), MINUS)]),
    (exchanged, [(drawn(4), drawn(4, seed=2), ONE), (drawn(4), drawn(4, seed=2), MINUS)]),
    (shifted, [(drawn(9),), (drawn(6, seed=2),)]),
    (turned, [(drawn(9), np.float64(1.5)), (drawn(6, seed=2), MINUS)]),
    (the_argument, [(drawn(9), ONE), (drawn(9), MINUS)]),
    (the_argument_twice, [(drawn(9), *p) for p in itertools.product((ONE, MINUS), repeat=2)]),
    (a_flag, [(drawn(9), 5), (-abs(drawn(6)), 6), (drawn(3), 0)]),
    (the_best, [(drawn(9),), (drawn(6, seed=2),)]),
    (left, [(drawn(N), np.zeros(N)), (drawn(N, seed=2), np.ones(N)), (np.ones(3), np.zeros(3))]),
]


@pytest.mark.parametrize(("function", "calls"), ORDERED, ids=[f.__name__ for f, _ in ORDERED])
def test_what_is_still_needed_is_not_written_over(
    function: Any, calls: list[tuple[Any, ...]]
) -> None:
    same(function, *calls, *calls[:1])


def test_an_argument_is_as_it_was_when_a_branch_failed() -> None:
    def failing(x, at):
        for i in range(3):
            if x[i] > 0:
                x[i] = 9
                x[at] = 1
        return x

    compiled = tm.jit(failing)
    x = np.ones(4)
    with pytest.raises(IndexError):
        compiled(x, 7)
    assert (x == 1).all()
    compiled(x, 3)
    np.testing.assert_array_equal(x, [9, 9, 9, 1])


# -- random programs


@pytest.mark.parametrize("seed", range(16))
def test_random_branches_write_what_python_writes(seed: int) -> None:
    function, text = program(seed, 1 + seed % 3)
    try:
        calls = (drawn(5), 3, 1), (drawn(5, seed=1), 2, 4), (-abs(drawn(5)), 4, 0)
        same(function, *calls, versions=len(calls))
    except AssertionError as problem:
        raise AssertionError(f"{problem}\n{text}") from problem
