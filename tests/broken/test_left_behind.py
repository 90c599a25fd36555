"""A traced value that a function leaves in a variable outside it is refused, and the variable keeps
what it held."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

X = np.ones(3)
total: Any = np.zeros(3)
history: Any = [1.0]


def adds_to_the_global(x: Any) -> Any:
    global total
    total = total + x
    return total


def keeps_a_list(x: Any) -> Any:
    global history
    history = [*history, x * 2]
    return x


def makes_a_global(x: Any) -> Any:
    global made_here
    made_here = x + 1
    return x


def fails_afterwards(x: Any) -> Any:
    global total
    total = total + x
    raise KeyError("afterwards")


def adds_in_place(x: Any) -> Any:
    global total
    total += x
    return total.sum()


def test_an_array_in_a_global_is_not_replaced_by_a_traced_one() -> None:
    before = total
    compiled = tm.jit(adds_to_the_global)
    for _ in range(2):
        with pytest.raises(TypeError, match=r"\[TM103\].*in adds_to_the_global\n.*global total"):
            compiled(X)
        assert total is before
    np.testing.assert_array_equal(total, np.zeros(3))


def test_nor_is_a_list_that_holds_one() -> None:
    with pytest.raises(TypeError, match=r"\[TM103\](.|\n)*global history"):
        tm.jit(keeps_a_list)(X)
    assert history == [1.0]


def test_a_global_that_was_not_there_is_gone_again() -> None:
    with pytest.raises(TypeError, match=r"\[TM103\](.|\n)*global made_here"):
        tm.jit(makes_a_global)(X)
    assert "made_here" not in globals()


def test_a_function_that_raises_leaves_nothing_traced_behind() -> None:
    before = total
    with pytest.raises(KeyError, match="afterwards"):
        tm.jit(fails_afterwards)(X)
    assert total is before


def test_a_variable_of_an_enclosing_function_is_not_replaced() -> None:
    kept: Any = np.zeros(3)

    def inner(x: Any) -> Any:
        nonlocal kept
        kept = kept + x
        return kept

    before = kept
    with pytest.raises(TypeError, match=r"\[TM103\](.|\n)*kept of the enclosing function"):
        tm.jit(inner)(X)
    assert kept is before


def test_a_variable_made_within_the_trace_may_hold_what_it_likes() -> None:
    def outer(x: Any) -> Any:
        sum_ = x * 0

        def add(y: Any) -> None:
            nonlocal sum_
            sum_ = sum_ + y

        add(x)
        add(x * x)
        return sum_

    np.testing.assert_array_equal(tm.jit(outer)(X * 3), outer(X * 3))


def test_in_place_updates_of_a_global_array_happen_at_every_call() -> None:
    compiled = tm.jit(adds_in_place)
    begin = total.copy()
    try:
        compiled(X)
        compiled(X)
        np.testing.assert_array_equal(total, begin + 2)
    finally:
        total[:] = begin


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("number", [3.0, -3.0])
def test_a_branch_writes_to_arrays_of_its_own(compiled: bool, number: float) -> None:
    def first(a: Any, more: Any) -> Any:
        a[0] = 5
        more["w"] += a
        return a + more["w"]

    def second(a: Any, more: Any) -> Any:
        a *= 2
        return a - more["w"]

    def function(x: Any, w: Any) -> Any:
        return tm.cond(x.sum() > 0, first, second, x[1:], {"w": w}), x + 0, w + 0

    x, w = np.array([1.0, number, 2.0, 0.5]), np.arange(3.0)
    want = (first if x.sum() > 0 else second)(x[1:].copy(), {"w": w.copy()})
    run = tm.jit(function) if compiled else function
    for got, expected in zip(run(x, w), (want, x.copy(), w.copy())):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(x, [1.0, number, 2.0, 0.5])
