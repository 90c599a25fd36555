"""What stands on the left of ``+=`` is read before the right side is computed, as in Python."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal, outcome

pytestmark = pytest.mark.cpu


def bump(x: Any) -> int:
    x[0] = 10
    return 1


def element(x: Any) -> Any:
    x[0] += bump(x)
    return x


def part(x: Any) -> Any:
    x[:2] += bump(x)
    return x


def places(x: Any) -> Any:
    x[np.array([0, 1])] += bump(x)
    return x


def masked(x: Any) -> Any:
    x[x > 1] *= bump(x) + 1
    return x


def of_a_list(x: Any) -> Any:
    held = [x, 2]

    def change() -> int:
        held[1] = 50
        return 1

    held[1] += change()
    return held


def of_a_dict(x: Any) -> Any:
    held = {"n": 1}

    def change() -> Any:
        held["n"] = 50
        return x

    held["n"] -= change()
    return held


def attribute(x: Any) -> Any:
    held = SimpleNamespace(n=1)

    def change() -> Any:
        held.n = 50
        return x

    held.n += change()
    return held.n


def of_an_enclosing_function(x: Any) -> Any:
    n = 1.0

    def change() -> Any:
        nonlocal n
        n = 50.0
        return x

    n += change()
    return n


@pytest.mark.parametrize(
    "function",
    [element, part, places, masked, of_a_list, of_a_dict, attribute, of_an_enclosing_function],
)
def test_the_left_side_is_read_first(function: Callable[[Any], Any]) -> None:
    x = np.arange(4.0)
    for got, wanted in zip(outcome(tm.jit(function), [x]), outcome(function, [x]), strict=True):
        assert_equal(got, wanted)


def test_a_place_that_is_not_there_is_reported_before_the_right_side() -> None:
    def function(x: Any, y: Any) -> Any:
        y[1] += (x - x.T).sum()
        return y

    with pytest.raises(IndexError):
        tm.jit(function)(np.ones((3, 4)), np.zeros(1))
