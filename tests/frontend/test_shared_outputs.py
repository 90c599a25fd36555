"""Ufuncs with two results whose outputs share memory with each other or with an operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal

pytestmark = pytest.mark.cpu

SIZE = 8
PLACES: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "apart": lambda x, b: (b[:SIZE], b[SIZE : 2 * SIZE]),
    "one array": lambda x, b: (b[:SIZE], b[:SIZE]),
    "the second further on": lambda x, b: (b[:SIZE], b[1 : SIZE + 1]),
    "the first further on": lambda x, b: (b[1 : SIZE + 1], b[:SIZE]),
    "one reversed": lambda x, b: (b[:SIZE], b[:SIZE][::-1]),
    "strided": lambda x, b: (b[: 2 * SIZE : 2], b[:SIZE]),
    "the first is the operand": lambda x, b: (x, b[:SIZE]),
    "the second is the operand": lambda x, b: (b[:SIZE], x),
    "both are the operand": lambda x, b: (x, x),
    "the first is the operand reversed": lambda x, b: (x[::-1], x),
    "the second is the operand reversed": lambda x, b: (x, x[::-1]),
    "both are the operand reversed": lambda x, b: (x[::-1], x[::-1]),
}
NUMBERS = [5.5, -7.25, 9, 0.5, -3, 12, 8, 1]


def _divided(x: Any, **keywords: Any) -> Any:
    return np.divmod(x, x.dtype.type(3), **keywords)


def _compare(function: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> None:
    mine = [x.copy() for x in arrays]
    assert_equal(tm.jit(function)(*mine), function(*arrays))
    for got, want in zip(mine, arrays):
        assert_equal(got, want)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("ufunc", "dtype"),
    [(_divided, "f8"), (_divided, "f4"), (_divided, "f2"), (_divided, "i8"), (_divided, "u1"),
     (np.modf, "f8"), (np.modf, "f2")],
)  # fmt: skip
def test_what_is_written_last_is_what_numpy_writes_last(ufunc: Any, dtype: str, place: str) -> None:
    def function(x: Any, room: Any) -> Any:
        return ufunc(x, out=PLACES[place](x, room))

    _compare(function, np.abs(NUMBERS).astype(dtype), np.zeros(2 * SIZE, dtype))


@pytest.mark.parametrize("first", [-2, 0, 1])
@pytest.mark.parametrize("second", [-1, 0, 2])
def test_outputs_in_the_operands_memory_wait_for_it(first: int, second: int) -> None:
    def function(room: Any) -> Any:
        return np.modf(
            room[2:-2],
            out=(room[2 + first : len(room) - 2 + first], room[2 + second :][: len(room) - 4]),
        )

    _compare(function, np.array(NUMBERS * 2))


@pytest.mark.parametrize("place", ["one array", "the second further on", "both are the operand"])
def test_a_mask_leaves_the_elements_it_hides(place: str) -> None:
    def function(x: Any, room: Any, mask: Any) -> Any:
        return np.modf(x, out=PLACES[place](x, room), where=mask)

    _compare(function, np.array(NUMBERS), np.full(2 * SIZE, -1.0), np.array([True, False] * 4))


def test_outputs_may_be_arguments_that_share_memory() -> None:
    room = np.zeros(2 * SIZE)
    mine = room.copy()
    x = np.array(NUMBERS)
    compiled = tm.jit(lambda x, a, b: np.modf(x, out=(a, b)))
    assert_equal(compiled(x, mine[:SIZE], mine[1 : SIZE + 1]),
                 np.modf(x, out=(room[:SIZE], room[1 : SIZE + 1])))  # fmt: skip
    assert_equal(mine, room)
