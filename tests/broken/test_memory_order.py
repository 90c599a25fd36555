"""Which reshapes of a new array are views of it: as in NumPy, that depends on its memory order.

Not here: views of arguments (tests/frontend/test_mutation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal

# Each makes a new array from a matrix that does not lie in C order.
NEW: dict[str, Callable[[Any], Any]] = {
    "zeros_like": lambda t: np.zeros_like(t),
    "full_like": lambda t: np.full_like(t, 2, order="F"),
    "full in F order": lambda t: np.full((3, 3), 1.0, order="F"),
    "empty_like, filled": lambda t: np.ones_like(t, order="C"),
    "array": lambda t: np.array(t),
    "asarray": lambda t: np.asarray(t, np.float32),
    "copy": lambda t: np.copy(t),
    "the method copy": lambda t: t.copy(),
    "astype": lambda t: t.astype(np.float32),
    "where": lambda t: np.where(t > 3, t, 0),
    "where of two orders": lambda t: np.where(t > 3, t, t.T),
    "clip": lambda t: t.clip(0, 3),
    "round": lambda t: np.round(t, 1),
    "two results": lambda t: np.frexp(t)[0],
    "a row beside it": lambda t: t + np.arange(3.0),
    "two orders": lambda t: t + t.T,
    "cumsum": lambda t: np.cumsum(t, 0),
    "concatenate": lambda t: np.concatenate([t, t]),
    "concatenate of two orders": lambda t: np.concatenate([t, t.T]),
    "roll": lambda t: np.roll(t, 1, 0),
    "diff": lambda t: np.diff(t, axis=0),
    "pad": lambda t: np.pad(t, 1),
    "sum": lambda t: np.stack([t.T, t.T + 1]).T.sum(0),
    "sum that keeps its axis": lambda t: np.stack([t.T, t.T + 1]).T.sum(0, keepdims=True),
    "var": lambda t: np.var(np.stack([t.T, t.T + 1]).T, 0),
    "take": lambda t: t[[0, 2]],
}


@pytest.mark.parametrize("name", NEW)
def test_a_write_through_a_reshape_reaches_what_it_reaches_in_numpy(name: str) -> None:
    def function(x: Any) -> Any:
        new = NEW[name](x.T)
        flat = new.reshape(-1)
        flat[1] = 99
        row = new.ravel()
        row[2] = 77
        return new, flat, row

    x = np.arange(9.0).reshape(3, 3)
    assert_equal(tm.jit(function)(x), function(x))
    turned = np.asfortranarray(x)
    assert_equal(tm.jit(function)(turned), function(turned))


def test_axes_of_operands_that_disagree_lie_in_c_order() -> None:
    def function(x: Any, y: Any) -> Any:
        new = x.transpose(2, 0, 1) + y.transpose(0, 2, 1)
        flat = new.reshape(-1)
        flat[:4] = 0
        return new

    x, y = np.arange(24.0).reshape(2, 3, 4), np.arange(24.0).reshape(4, 3, 2)
    assert_equal(tm.jit(function)(x, y), function(x, y))


def test_a_diagonal_is_a_view_that_shows_writes_and_refuses_them() -> None:
    def shown(x: Any) -> Any:
        found, above = np.diagonal(x), x.diagonal(1)
        x *= 2
        return found + 0, above + 0, np.trace(x), np.diag(x, -1) + 0

    for x in (np.arange(9.0).reshape(3, 3), np.arange(12.0).reshape(3, 4), np.ones((0, 2))):
        assert_equal(tm.jit(shown)(x.copy()), shown(x.copy()))

    def written(x: Any) -> Any:
        np.diagonal(x)[0] = 5
        return x

    with pytest.raises(ValueError, match=r"\[TM247\] at .*test_memory_order.py"):
        tm.jit(written)(np.eye(3))


def test_a_diagonal_named_by_einsum_is_written_through() -> None:
    def function(x: Any, y: Any) -> Any:
        np.einsum("ii->i", x)[...] = 7
        found = np.einsum("iji->ij", y)
        found *= 2
        return x, y, found

    x, y = np.arange(9).reshape(3, 3), np.arange(12.0).reshape(2, 3, 2)
    mine, theirs = (x.copy(), y.copy()), (x.copy(), y.copy())
    assert_equal(tm.jit(function)(*mine), function(*theirs))
    assert_equal(mine, theirs)
