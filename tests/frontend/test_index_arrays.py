"""Index arrays, and elements written by their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_same

I = np.array([[0, 2, 1], [1, 1, 0]])
C = np.arange(18.0).reshape(3, 2, 3)
MODES = ["raise", "wrap", "clip"]


@pytest.mark.parametrize("mode", [*MODES, "other"])
@pytest.mark.parametrize("dtype", "?bBlQe")
def test_choose(mode: str, dtype: str) -> None:
    i = I.astype(dtype)
    assert_same(lambda i, c: np.choose(i, c, mode=mode), i, C)
    assert_same(lambda i, c: np.choose(i, [c[0, 0], c[1, :, :1], 7], mode=mode), i, C)
    if mode != "raise" and dtype == "l":
        assert_same(lambda i, c: np.choose(i * 9 - 4, c, mode=mode), i, C)


def test_choose_delivers_and_refuses_as_numpy() -> None:
    assert_same(lambda i, c, out: np.choose(i, c, out=out), I, C, np.zeros((2, 3)))
    assert_same(lambda i: np.choose(i[0, 1], [1, 2, 3.5]), I)
    assert_same(lambda i: np.choose(i, []), I)
    assert_same(lambda i, c: np.choose(i, c[:, :, :2]), I, C)


def test_ix() -> None:
    assert_same(lambda i, c: c[np.ix_(i[0], i[1], [0, 1])], I, C[:, [0, 1, 1]])
    assert_same(lambda i: np.ix_(i[0], [True, False, True], [], range(3)), I)
    assert_same(lambda i: np.ix_(i), I)


@pytest.mark.parametrize("mode", [*MODES, ("wrap", "clip")])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", "?bQd")
def test_ravel_multi_index(mode: Any, order: str, dtype: str) -> None:
    i = I.astype(dtype)
    assert_same(lambda i: np.ravel_multi_index((i, i[0]), (3, 4), mode, order), i)
    if mode != "raise" and dtype == "b":
        assert_same(lambda i: np.ravel_multi_index((i * 3, i - 2), (3, 4), mode, order), i)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", "?bQd")
def test_unravel_index(order: str, dtype: str) -> None:
    assert_same(lambda i: np.unravel_index(i, (3, 4), order), (I * 5).astype(dtype))
    assert_same(lambda i: np.unravel_index(i[0, 0], 3, order), I.astype(dtype))
    assert_same(lambda i: np.unravel_index(i[:0], (3, 4), order), I.astype(dtype))


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (1, 1), (5, 5), (2, 7), (0, 3), (3, 0)])
@pytest.mark.parametrize("k", [-6, -2, -1, 0, 1, 3, 7])
def test_triangles_of_every_form(shape: tuple[int, int], k: int) -> None:
    x = np.zeros(shape)
    assert_same(lambda x: np.tril_indices_from(x, k), x)
    assert_same(lambda x: np.triu_indices(x.shape[0], k, x.shape[1]), x)


def test_indices_from_refuse_other_ranks() -> None:
    for function in (np.tril_indices_from, np.triu_indices_from, np.diag_indices_from):
        assert_same(function, np.zeros(3))
    assert_same(np.diag_indices_from, np.zeros((2, 3)))
    assert_same(lambda x: np.diag_indices(x.shape[0], 3), np.zeros(4))
    band = lambda m, k: np.tril(m, k) - np.tril(m, k - 1)
    assert_same(lambda x: x[np.mask_indices(3, band, -1)], np.arange(9.0).reshape(3, 3))


OUT_OF_BOUNDS: list[Callable[[Any], Any]] = [
    lambda i: np.choose(i, [1, 2, 3]),
    lambda i: np.ravel_multi_index((i, i), (3, 4)),
    lambda i: np.unravel_index(i, (3, 1)),
]


@pytest.mark.cpu
@pytest.mark.parametrize("at", range(len(OUT_OF_BOUNDS)))
def test_a_place_out_of_bounds_fails_the_call(at: int) -> None:
    compiled = tm.jit(OUT_OF_BOUNDS[at])
    compiled(I)
    for bad in (I - 1, I + 1):
        with pytest.raises(ValueError, match="TM265"):
            compiled(bad)
    with pytest.raises(ValueError, match="TM265"):
        tm.jit(lambda: OUT_OF_BOUNDS[at](np.arange(5)))()


@pytest.mark.cpu
def test_an_array_that_is_not_finite_fails_the_call() -> None:
    compiled = tm.jit(lambda x: np.asarray_chkfinite(x) * 2)
    assert compiled(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(ValueError, match="TM266"):
        compiled(np.array([1, np.inf]))


# -- written by place

VALUES = [
    np.array([7]),
    np.array([1, 2, 3.7, -4.5]),
    np.array([[1], [2]]),
    np.ones(0),
    np.arange(30),
]


def written(write: Callable[..., Any]) -> Callable[..., Any]:
    def function(a: Any, *rest: Any) -> Any:
        write(a, *rest)
        return a

    return function


@pytest.mark.parametrize("dtype", "?blfD")
@pytest.mark.parametrize("at", range(len(VALUES)))
def test_values_begin_again_where_they_are_too_few(
    dtype: str, at: int, rng: np.random.Generator
) -> None:
    a, mask, v = (rng.normal(size=(3, 4)) * 9).astype(dtype), rng.random((3, 4)) > 0.5, VALUES[at]
    for mode in MODES:
        assert_same(written(lambda a, v, mode=mode: np.put(a, [0, 5, -1, 5], v, mode)), a, v)
        assert_same(written(lambda a, v, mode=mode: a.put([[0, 50], [-20, 5]], v, mode)), a, v)
    assert_same(written(np.place), a, mask, v)
    assert_same(written(np.putmask), a, mask, v)
    assert_same(written(lambda a, m, v: np.place(a[::-1].T, m, v)), a, mask.T.copy(), v)
    assert_same(written(np.fill_diagonal), a, v)
    assert_same(written(lambda a, v: np.fill_diagonal(a.T, v, True)), a, v)


@pytest.mark.parametrize("shape", [(3, 3, 3), (2, 3, 3), (3,), (7, 2), (2, 7), (0, 3)])
def test_fill_diagonal_of_every_form(shape: tuple[int, ...]) -> None:
    assert_same(written(lambda a: np.fill_diagonal(a, [1, 2])), np.zeros(shape))
    assert_same(written(lambda a: np.fill_diagonal(a, 5, wrap=True)), np.zeros(shape))


def test_written_places_refuse_what_numpy_refuses() -> None:
    b = np.arange(6)
    assert_same(written(lambda a: np.put(a, 9, 2)), b)
    assert_same(written(lambda a: np.put(a, 0, 2, "other")), b)
    assert_same(written(lambda a: np.place(a, [1], 2)), b)
    assert_same(written(lambda a: np.putmask(a, [1], 2)), b)
    assert_same(written(lambda a: np.putmask(a, [1, 0, 0.5, 0, 0, 1], 9)), b)
    assert_same(written(lambda a: np.fill_diagonal(a.reshape(2, 3), np.nan)), b)
    b.flags.writeable = False
    assert_same(written(lambda a: np.place(a, a > 1, 2)), b)
