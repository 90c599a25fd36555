"""Arguments that share memory, and those that may not be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

Array = Any
VIEWS: dict[str, Callable[[Array], tuple[Array, Array]]] = {
    "same": lambda x: (x, x),
    "later": lambda x: (x[:-1], x[1:]),
    "earlier": lambda x: (x[1:], x[:-1]),
    "reversed": lambda x: (x, x[::-1]),
    "interleaved": lambda x: (x[::2], x[1::2]),
    "halves": lambda x: (x[:5], x[5:]),
    "one number": lambda x: (x, np.broadcast_to(x[:1], x.shape)),
    "empty": lambda x: (x[:0], x[:0]),
}


def add(x: Array, y: Array) -> Array:
    np.add(x, y, out=x)
    return y * 1


def shift(x: Array, y: Array) -> Array:
    x[1:] = y[:-1] * 2
    return x.sum(), y.sum()


def twice(x: Array, y: Array) -> Array:
    x *= 2
    return x, y + 0


FUNCTIONS = [add, shift, twice]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("warm", [False, True])
def test_a_write_is_seen_through_every_array_that_shares_it(
    function: Callable[..., Any], view: str, warm: bool
) -> None:
    compiled = tm.jit(function)
    if warm:
        compiled(np.ones(10), np.ones(10))
    for _ in range(2):
        mine, theirs = np.arange(10.0) + 1, np.arange(10.0) + 1
        got, want = compiled(*VIEWS[view](mine)), function(*VIEWS[view](theirs))
        np.testing.assert_array_equal(mine, theirs)
        for a, b in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
            np.testing.assert_array_equal(a, b)


def test_one_array_twice_in_a_dict() -> None:
    @tm.jit
    def act(d: dict[str, Array]) -> Array:
        d["a"] += 1
        d["b"] *= 2
        d["c"] = d["a"] + d["b"]
        return d["a"]

    x = np.arange(4.0)
    d = {"a": x, "b": x}
    assert act(d) is x
    assert x.tolist() == [2, 4, 6, 8]
    assert d["c"].tolist() == [4, 8, 12, 16]


def test_an_argument_that_is_captured_too() -> None:
    table = np.arange(4.0)

    @tm.jit
    def act(x: Array) -> Array:
        x += 1
        return table + x

    for _ in range(2):
        want = 2 * (table + 1)
        np.testing.assert_array_equal(act(table), want)
    assert table.tolist() == [2, 3, 4, 5]


def test_a_function_that_also_places_and_keeps() -> None:
    total = tm.Variable(np.zeros(3), name="shared/total")

    @tm.jit
    def act(x: Array, y: Array) -> Array:
        with tm.device("cpu:1"):
            x += y
        total.assign_add(x)
        return total.read()

    x = np.ones(3)
    assert act(x, x).tolist() == [2, 2, 2]
    assert act(x, np.ones(3)).tolist() == [5, 5, 5]


def test_a_read_only_array_is_refused_however_often_the_function_ran() -> None:
    @tm.jit
    def act(x: Array) -> Array:
        x += 1
        return x

    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    for _ in range(2):
        act(np.arange(3.0))
        with pytest.raises(ValueError, match=r"\[TM247\] at .*test_shared_memory.py"):
            act(frozen)
    assert frozen.tolist() == [0, 1, 2]
