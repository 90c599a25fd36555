"""Subscripts read and written: basic, index arrays, masks, mixed, as NumPy has them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traced import assert_equal, assert_same, trace_function
from tracemill.compiler.errors import UnsupportedError

SHAPES = st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple)


@st.composite
def subscripts(draw: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """A shape and a key for it, now and then out of bounds."""
    shape = draw(SHAPES)
    common = draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    key: list[Any] = []
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 9)):
        size = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "slice", "new", "array", "array", "ellipsis"]))
        if kind == "ellipsis" and not any(part is Ellipsis for part in key):
            key.append(Ellipsis)
            axis += draw(st.integers(0, len(shape) - axis))
            continue
        if kind == "new":
            key.append(None)
            continue
        key.append(_part(draw, kind, size, common))
        axis += 1
    return shape, tuple(key)


def _part(draw: Any, kind: str, size: int, common: tuple[int, ...]) -> Any:
    if kind == "int":
        return draw(st.integers(-size - 1, size))
    if kind == "array" and size:
        shape = common[draw(st.integers(0, len(common))) :]
        index = st.integers(-size, size - 1)
        count = int(np.prod(shape))
        made = np.array(draw(st.lists(index, min_size=count, max_size=count)), int)
        return made.reshape(shape)
    bound = st.one_of(st.none(), st.integers(-size - 2, size + 2))
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, 3, -1, -2])))


@given(subscripts())
def test_reading_any_subscript_equals_numpy(case: Any) -> None:
    shape, key = case
    x = np.arange(int(np.prod(shape)) * 1.0).reshape(shape)
    assert_same(lambda x: x[key], x)
    assert_same(lambda x: x.T[key], x)


@given(subscripts())
def test_writing_any_subscript_equals_numpy(case: Any) -> None:
    shape, key = case
    x = np.arange(int(np.prod(shape)) * 1.0).reshape(shape)
    value: Any = 1.0
    with contextlib.suppress(IndexError):
        value = x[key] * 10 + 1

    def assign(x: Any) -> None:
        x[key] = value

    def augment(x: Any) -> Any:
        y = x.copy()
        y[key] += 1
        return y

    assert_same(assign, x)
    assert_same(augment, x)


def test_a_mask_known_while_tracing_selects_by_index() -> None:
    x = np.arange(8.0).reshape(2, 4)
    assert_same(lambda x: x[:, np.array([True, False, True, True])], x)
    assert_same(lambda x: x[np.newaxis, np.array([True, True])], x)
    assert_same(lambda x: x[..., np.arange(4) % 2 == 0], x)
    assert_same(lambda x: x[np.array([[True, False, True, False]] * 2)], x)
    assert_same(lambda x: (x[True].shape, x[False].shape), x)


def test_a_mask_known_only_at_run_time_selects_for_arithmetic_reduction_and_assignment() -> None:
    x = np.arange(12.0).reshape(3, 4) - 4
    y = np.linspace(0, 1, 12).reshape(3, 4)

    def function(x: Any, y: Any) -> Any:
        m = x > 0
        x[m] = 0
        y[y > 0.5] += 10
        y[m] = x[m] * 2 + y[m]
        y[x[:, 0] < -1] *= -1
        z = np.sqrt(y[m])
        return z.sum(), y[m].mean(), y[m].max(), y[m].min(), y[m].size, (y[m] > 0.6).any()

    assert_same(function, x, y)
    assert_same(lambda x: x[x > 0].sum() + x[x[:, 0] > 0].sum(axis=0), x)


def test_a_mask_that_is_written_twice_is_one_mask() -> None:
    def function(x: Any) -> Any:
        x = x.copy()
        x[x > 1] = x[x > 1] * 2
        x[(x < 0) & (x > -3)] += 1 - x[(x < 0) & (x > -3)]
        return x

    assert_same(function, np.linspace(-4, 4, 9))

    def other(x: Any) -> Any:
        x = x.copy()
        mask = x > 1
        x[0] = 5.0
        x[x > 1] = x[mask]  # not the same any more
        return x

    with pytest.raises(UnsupportedError, match=r"\[TM112\]"):
        trace_function(other, np.linspace(-4, 4, 9))


def test_what_needs_the_size_of_a_selection_says_so() -> None:
    x = np.arange(6.0)
    for function in (lambda x: x[x > 2], lambda x: np.cumsum(x[x > 2]), lambda x: list(x[x > 2])):
        with pytest.raises(UnsupportedError, match="known only at run time"):
            trace_function(function, x)


def test_run_time_indices_wrap_once_and_are_checked() -> None:
    x = np.arange(10.0).reshape(5, 2)
    call = trace_function(lambda x, i: x[i], x, np.array([0, -5]))
    assert_equal(call(x, np.array([4, -1])), x[[4, -1]])
    for bad in (5, -6):
        with pytest.raises(IndexError):
            call(x, np.array([0, bad]))


def test_a_run_time_scalar_index_is_a_view() -> None:
    x = np.arange(12.0).reshape(3, 4)

    def function(x: Any, i: Any) -> Any:
        k = np.argmax(i)
        row = x[k]
        row += 10
        x[k, 1] = -1
        x[0][k] = 7
        return row.copy(), x[k, -1], x[:, k]

    assert_same(function, x, np.array([1, 5, 2]))


def test_static_indices_outside_raise_while_tracing() -> None:
    x = np.arange(5)
    assert_same(lambda x: x[np.array([-1, -5])], x)
    for function in (
        lambda x: np.take(np.arange(5), 10),
        lambda x: np.zeros((2, 3))[2],
        lambda x: np.take(np.empty((0,)), [0]),
        lambda x: x[5],
        lambda x: x[0, 0],
        lambda x: np.arange(3)[np.array([-4])],
        lambda x: x[1.5],
        lambda x: x[np.array([0.5])],
    ):
        assert_same(function, x)


def test_assignment_reads_the_right_side_first() -> None:
    x = np.arange(9).reshape(3, 3)

    def function(x: Any) -> Any:
        x[:, 0] = x[:, 2]
        x[1:] = x[:-1]
        x += x.T
        y = np.ones((2, 3))
        y[[[0, 0]]] += y[[[0, 0]]]
        y[0], y[1] = y[1], y[0]
        return y

    assert_same(function, x)


def test_put_copyto_fill_and_at() -> None:
    def function(x: Any, i: Any) -> Any:
        np.add.at(x, i, 1.0)
        np.copyto(x, 5, where=x > 6)
        y = np.zeros(4)
        y.fill(2)
        np.put(y, [0, 2], 9)
        np.put_along_axis(x, np.argmax(x, axis=1)[:, None], -1, axis=1)
        np.putmask(y, y > 5, 1)
        return y

    assert_same(function, np.arange(12.0).reshape(3, 4), np.array([0, 0, 2]))


@pytest.mark.parametrize("shape", [(2,), (2, 3), (12, 13), (3, 2)])
@pytest.mark.parametrize("mask", [(0,), (0, 3), (0, 0), (2, 0), (12, 0), (0, 4)])
def test_a_mask_without_elements_fits_any_axis(shape: Any, mask: Any) -> None:
    def written(x: Any, m: Any) -> Any:
        x[m] = 5
        x[m] += 1
        return x

    for function in (lambda x, m: x[m] + 0, lambda x, m: x[None, m].sum(), written):
        assert_same(function, np.ones(shape), np.zeros(mask, bool))
