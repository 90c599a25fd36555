"""Forms of arrays, questions about types, functions of known data, functions along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_same

X = np.cos(np.arange(12.0) ** 2).reshape(3, 4)
CUBE = np.cos(np.arange(24.0) ** 2).reshape(2, 3, 4)
One = Callable[[Any], Any]


@pytest.mark.parametrize("names", [None, "C", "F", ["C", "W"], ["O"], ["A", "E"], ["C", "F"], "X"])
def test_require(names: Any) -> None:
    assert_same(lambda x: np.require(x, None, names), X)
    assert_same(lambda x: np.require(x.T, np.float32, names), X)


SAME: list[One] = [
    lambda x: np.dsplit(x[None], [1]), lambda x: np.dsplit(x, 2),
    lambda x: np.asarray_chkfinite(x, int), lambda x: np.real_if_close(x),
    lambda x: np.array_equiv(x, x), lambda x: np.array_equiv(x * 0, x[0] * 0),
    lambda x: np.array_equiv(x, x[0, :3]), lambda x: np.array_equiv([1, 2], [[1, 2], x[0, :2]]),
    lambda x: (np.isfortran(x), np.isfortran(x.T)),
    lambda x: sum(v * i * (j + 1) for (i, j), v in np.ndenumerate(x)),
    lambda x: [x[i] for i in np.ndindex(x.shape)],
    lambda x: np.common_type(x, x.astype("f")), lambda x: np.common_type(x.astype("i1"), 1j * x),
    lambda x: np.common_type(x > 0), lambda x: np.mintypecode([x.astype("F"), "d"]),
    lambda x: [np.isscalar(i) for i in (x, x[0, 0], x.shape[0], 3, x.sum(), x.mean().item())],
    lambda x: [np.iterable(i) for i in (x, x[0, 0], [x], x.shape[0])],
    lambda x: np.promote_types(x.dtype, "f4"), lambda x: np.issubdtype(x.dtype, np.floating),
    lambda x: np.promote_types(x, "f4"), lambda x: np.issubdtype(x, np.floating),
    lambda x: np.isdtype(x.dtype, "real floating"), lambda x: np.typename(x.dtype.char),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(SAME)))
def test_a_form_or_answer_is_numpys(at: int) -> None:
    assert_same(SAME[at], X)


KNOWN: list[One] = [
    lambda x: np.unique([3, 1, 3]) * x[0, 0], lambda x: np.argwhere(np.eye(3)) + x[0, 0],
    lambda x: np.unique(np.arange(6).reshape(2, 3) % 2, axis=0, return_counts=True)[1] * x[0, 0],
    lambda x: np.unique_all(np.arange(3) // 2).values * x[0, 0],
    lambda x: np.flatnonzero(np.arange(5) > 2) + x[0, 0],
    lambda x: np.union1d(np.arange(3), [2, 5]) * x[0, 0],
    lambda x: np.intersect1d(np.arange(6), [4, 9], return_indices=True)[2] * x[0, 0],
    lambda x: np.trim_zeros(np.arange(4)) * x[0, 0],
    lambda x: np.polymul(np.arange(2), [1, 2]) * x[0, 0],
    lambda x: np.polydiv(np.arange(3), [1, 2])[1] * x[0, 0],
    lambda x: np.extract([True, False, True], x[0, :3]), lambda x: np.extract(x > 0, x).sum(),
    lambda x: np.compress([0, 1, 1], x, axis=0), lambda x: x.compress([0, 1, 1]),
    lambda x: x.compress([0, 1, 1, 1, 1], axis=1), lambda x: np.compress(x > 0, x, axis=0),
    lambda x: np.compress(x[0] > 0, x, axis=1).sum(1),
    lambda x: np.compress(x[0, :3] > 0, x, axis=1).max(1),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(KNOWN)))
def test_what_is_known_while_tracing_is_computed_then(at: int) -> None:
    assert_same(KNOWN[at], X)


UNKNOWN: list[One] = [
    np.unique, np.unique_counts, np.argwhere, np.flatnonzero, np.trim_zeros,
    lambda x: np.setdiff1d(x, [1]), lambda x: np.polymul(x[0], x[0]),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(UNKNOWN)))
def test_a_size_that_is_data_is_refused(at: int) -> None:
    with pytest.raises(NotImplementedError, match=r"TM112(.|\n)*hint:"):
        tm.jit(UNKNOWN[at])(X)


ALONG: list[Callable[..., Any]] = [
    np.sum, np.median, np.sort, lambda r: r.max() - r[0], lambda r: r[::-1] * 2,
    lambda r: np.outer(r, r), lambda r: [1, 2], lambda r: (r > 0).any(),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(ALONG)))
@pytest.mark.parametrize("axis", [0, 1, 2, -1, 4])
def test_a_function_is_applied_along_an_axis(at: int, axis: int) -> None:
    function = ALONG[at]
    assert_same(lambda x: np.apply_along_axis(function, axis, x), CUBE)
    assert_same(lambda x: np.apply_along_axis(function, axis, x[:0]), CUBE)
    assert_same(lambda x: np.apply_along_axis(function, 0, x[0, 0]), CUBE)


def test_a_function_along_an_axis_gets_its_arguments() -> None:
    def scaled(row: Any, factor: Any, less: Any = 1) -> Any:
        return row[:2].sum() * factor - less

    assert_same(lambda x: np.apply_along_axis(scaled, 1, x, 3, less=2), CUBE)
    assert_same(lambda x: np.apply_along_axis(np.percentile, 0, x, [25, 50.0]), CUBE)


@pytest.mark.parametrize("axes", [0, [0, 2], (-1, 1), [3]])
def test_a_function_is_applied_over_axes(axes: Any) -> None:
    assert_same(lambda x: np.apply_over_axes(np.sum, x, axes), CUBE)
    assert_same(lambda x: np.apply_over_axes(lambda a, axis: a.ravel(), x, axes), CUBE)


@pytest.mark.cpu
def test_gradients_go_through_a_function_along_an_axis() -> None:
    slope = tm.grad(lambda x: np.apply_along_axis(lambda r: (r * r).sum(), 1, x).sum())
    np.testing.assert_allclose(slope(X), 2 * X)
