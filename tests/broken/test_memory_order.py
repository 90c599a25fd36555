"""Which reshapes of a new array are views of it: as in NumPy, that depends on its memory order.

Not here: views of arguments (tests/frontend/test_mutation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal, outcome

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
    "triu": lambda t: np.triu(t),
    "tril of several": lambda t: np.tril(np.stack([t.T, t.T + 1]).T),
    "spectrum": lambda t: np.fft.fft(t),
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


def memory(array: Any) -> Any:
    """The array after a write through what it is as one axis, which may be a copy."""
    row = array.reshape(-1)
    row[...] += 100
    return array


# Each depends on how its argument lies in memory.
DEPENDS: dict[str, Callable[[Any], Any]] = {
    "a reshape of a new array": lambda x: memory(x * 2),
    "its flags": lambda x: ((x * 2).flags.c_contiguous, (x * 2).flags.f_contiguous),
    "flags of views": lambda x: (x.T.flags.c_contiguous, x[1:].flags.f_contiguous),
    "elements as they lie": lambda x: (x.ravel("K"), (x + 1).flatten("K")),
    "elements in the order there is": lambda x: (x.reshape(-1, order="A"), x.flatten("A")),
    "ravel": lambda x: (memory(x.ravel("A")), memory(x.ravel("F")), memory(x.ravel("K")), x),
    "copies": lambda x: [memory(x.copy(order)) for order in "CFAK"],
    "orders of ufuncs": lambda x: [memory(np.add(x, 1, order=order)) for order in "CFAK"],
    "orders of arrays": lambda x: [memory(np.array(x, order=order)) for order in "CFAK"],
    "no copy where the order is there": lambda x: (np.asarray(x, order="F").fill(3), x)[1],
    "contiguous": lambda x: (np.ascontiguousarray(x).fill(3), x)[1],
    "contiguous in Fortran order": lambda x: (np.asfortranarray(x).fill(3), x)[1],
    "a cast that need not copy": lambda x: (x.astype(float, "F", copy=False).fill(3), x)[1],
    "of sorts": lambda x: (memory(np.sort(x, 0)), memory(np.partition(x, 1, 0))),
    "without NaN": lambda x: memory(np.nan_to_num(x)),
    "through index arrays": lambda x: memory(x[:, np.array([1, 0])]),
    "every second row": lambda x: memory(x[::2] + x[::2]),
    "an axis split": lambda x: memory(x.reshape(2, 2, -1)),
}
X = np.arange(20.0).reshape(4, 5)
LAYOUTS = [
    np.arange(40.0).reshape(4, 10)[:, ::2],
    np.asfortranarray(X),
    X,
    np.arange(40.0).reshape(8, 5)[::-2],
    np.arange(40.0).reshape(10, 4)[::2].T,
    np.asfortranarray(X)[:2],
    X[:1],
    np.asfortranarray(X[:, :2])[::2],
]


@pytest.mark.parametrize("name", DEPENDS)
def test_a_compilation_serves_only_arrays_that_lie_as_its_own_did(name: str) -> None:
    function = DEPENDS[name]
    compiled = tm.jit(function)
    for layout in LAYOUTS * 2:
        for got, wanted in zip(outcome(compiled, [layout]), outcome(function, [layout])):
            if isinstance(wanted, Exception):
                assert isinstance(got, type(wanted))
                continue
            assert not isinstance(got, Exception), got
            assert_equal(got, wanted)


def test_new_arrays_of_columns_of_any_width_share_a_compilation() -> None:
    compiled = tm.jit(lambda x: memory(x * 2))
    for width in range(10, 16):
        x = np.arange(6.0 * 3 * width).reshape(6, 3 * width)[:, ::3]
        assert_equal(compiled(x), memory(x * 2))
    assert len(compiled.explain_recompiles()) == 1


def test_an_identity_in_fortran_order() -> None:
    assert_equal(tm.jit(lambda: memory(np.eye(2, 3, order="F")))(), memory(np.eye(2, 3, order="F")))


@pytest.mark.parametrize("columns", [36, 37, 38])
def test_a_piece_of_columns_in_fortran_order_is_viewed_as_one_row(columns: int) -> None:
    def act(a: Any) -> Any:
        for piece in np.array_split(a, 3, axis=1):
            row = np.reshape(piece, -1, order="F")
            row += np.arange(row.size)
        return a.sum()

    mine = np.asfortranarray(np.arange(2.0 * columns).reshape(2, columns))
    theirs = mine.copy("F")
    assert tm.jit(act)(mine) == act(theirs)
    np.testing.assert_array_equal(mine, theirs)
