"""What Python loops go over: `enumerate`, `zip` and `reversed` of ranges and rows, and long ranges.

Not here: what is in the loops (test_python_control_flow_loops.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from python_flow import drawn, loops, same

pytestmark = pytest.mark.cpu
CALLS = [(drawn(n, 3, seed=n), drawn(n, seed=n)) for n in (20, 31, 4)]


def numbered(x, y):
    total = np.zeros(3)
    for i, row in enumerate(x):
        total = total * 0.5 + row * i
        y[i] = total.sum()
    return total, y


def numbered_from_three(x, y):
    total = 0
    for i, value in enumerate(y, 3):
        total += i
        y[i - 3] = value * i
    return total, y


def side_by_side(x, y):
    total = np.zeros(3)
    for row, value in zip(x, y):
        total = total * value + row
    return total


def numbered_pairs(x, y):
    out = np.zeros(y.shape)
    for i, (row, value) in enumerate(zip(x, y[1:])):
        out[i + 1] = row[0] - value + out[i]
    return out


def backwards(x, y):
    total = np.zeros(3)
    for row in reversed(x):
        total = total * 0.5 + row
    for i in reversed(range(y.shape[0] - 1)):
        y[i] += y[i + 1]
    return total, y


def windows_with_numbers(x, y):
    out = np.zeros(y.shape[0] - 2)
    for i, j in zip(range(y.shape[0] - 2), range(1, y.shape[0])):
        out[i] = y[i : i + 3].sum() * j
    return out


@pytest.mark.parametrize(
    "function",
    [numbered, numbered_from_three, side_by_side, numbered_pairs, backwards, windows_with_numbers],
    ids=lambda f: f.__name__,
)
def test_rows_and_ranges_with_numbers_and_side_by_side(function: Any) -> None:
    compiled = same(function, *CALLS)
    assert loops(compiled, *CALLS[0]) >= 1


def lists(x, y):
    total = x[0] * 0
    for i, name in enumerate(["a", "b"]):
        total += {"a": 1, "b": 2}[name] * i
    for row, factor in zip(x, [1.0, 2.0]):
        total += row * factor
    for part in reversed([x[0], x[1]]):
        total = total * 0.5 + part
    return total


def own_names(x, y):
    def zip(a, b):
        return [(a[0], b[1]), (a[1], b[0])]

    total = x[0] * 0
    for row, value in zip(x, y):
        total += row * value
    return total


def left(x, y):
    place = 0
    for i, value in enumerate(y):
        place = i
        if value > 1:
            break
    else:
        place = -1
    return place, value


def by_a_number(x, y):
    total = x[0] * 0
    for i, j in enumerate(range(len(y) // 2)):
        for k in zip(range(3), x[0]):
            total += k[0] * k[1] * i - j
    return total


@pytest.mark.parametrize("function", [lists, own_names, by_a_number], ids=lambda f: f.__name__)
def test_what_is_no_row_stays_pythons(function: Any) -> None:
    same(function, *CALLS, versions=3)


def test_a_loop_with_numbers_is_left() -> None:
    compiled = tm.jit(left)
    for n in (3, 7):
        x, y = drawn(n, 3), np.linspace(0, 2, n)
        assert compiled(x, y) == left(x, y)


@pytest.mark.parametrize(
    "text", ["enumerate(y, 1.5)", "zip(y, 3)", "reversed(enumerate(y))", "enumerate()"]
)
def test_bad_arguments_raise_what_python_raises(text: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def f(y):\n    for i in {text}:\n        pass\n    return y\n", space)
    for function in (space["f"], tm.jit(space["f"])):
        with pytest.raises(TypeError):
            function(drawn(20))


def counted_by_hand(x, y):
    k, total = 0, y[0] * 0
    while k < len(y) - 1:
        if y[k] < y[k + 1]:
            total += y[k]
        k += 1
    return total, k


def from_both_ends(x, y):
    i, j = 0, len(y) - 1
    while i < j:
        y[i], y[j] = y[j], y[i]
        i += 1
        j -= 1
    return y


def bound_is_known(x, y):
    k = 0
    while k < 20:
        y = y * 0.5 + k
        k += 1
    return np.zeros(k) + y[0]


@pytest.mark.parametrize(
    "function", [counted_by_hand, from_both_ends, bound_is_known], ids=lambda f: f.__name__
)
def test_a_while_loop_that_a_size_ends(function: Any) -> None:
    calls = [(drawn(n, 3, seed=n), drawn(n, seed=n)) for n in (60, 400, 1000)]
    compiled = same(function, *calls)
    assert loops(compiled, *calls[0], kind="while") == (function is not bound_is_known)


def halved(x, y):
    w = y
    for _ in range(len(x)):
        w = y.reshape(-1)
        y = x[:, 0] * 0.5
    return w, y


def test_sizes_that_a_trip_finds_equal_are_one_on_the_next() -> None:
    same(halved, *CALLS, (drawn(1, 3), drawn(1)))


def summed_from_an_int(x, y):
    s = 0
    for i in range(len(y)):
        if y[i] > 0.1:
            s += y[i]
    return s


def test_a_python_integer_that_becomes_a_float_on_the_first_trip_is_carried() -> None:
    compiled = same(summed_from_an_int, *CALLS, (drawn(1, 3), drawn(1)))
    assert loops(compiled, *CALLS[0])
