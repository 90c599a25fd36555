"""Instances of np.vectorize call their function with Python numbers, one element at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_same

X = np.cos(np.arange(12.0) ** 2).reshape(3, 4)
K = np.arange(12).reshape(3, 4) - 4

line = np.vectorize(lambda a: a * 2 + 1)
half = np.vectorize(lambda a: a * 0.5, otypes=[np.float32])
pair = np.vectorize(lambda a, b=1: (a + b, a > b))
power = np.vectorize(lambda a, p: a ** p[1] + p[0], excluded=[1])
floor = np.vectorize(lambda a, b: a // b)
whole = np.vectorize(lambda a: int(a * 3), otypes=[int])
waves = np.vectorize(lambda a: np.sin(a) + math.sqrt(2))
exponential = np.vectorize(math.exp)


@np.vectorize
def decorated(a: Any) -> Any:
    return abs(a) + 1


def made_inside(x: Any) -> Any:
    return np.vectorize(lambda v: v * 3 - 1)(x)


CALLS: list[Callable[[Any, Any], Any]] = [
    lambda x, k: line(x), lambda x, k: line(k), lambda x, k: line(x + 1j),
    lambda x, k: line(x[0, 0]),
    lambda x, k: line(3) * x, lambda x, k: line(x[:0]), lambda x, k: half(x[:0]),
    lambda x, k: half(x), lambda x, k: half(x.astype("f")), lambda x, k: half(k.astype("i1")),
    lambda x, k: pair(x), lambda x, k: pair(x, b=x[0]), lambda x, k: power(x, [2, 3]),
    lambda x, k: floor(x, k[0] + 10), lambda x, k: whole(x), lambda x, k: waves(x),
    lambda x, k: exponential(x), lambda x, k: decorated(x), lambda x, k: made_inside(x),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_a_call_is_numpys(at: int) -> None:
    assert_same(CALLS[at], X, K)


def test_what_numpy_decides_by_its_first_results_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"TM111(.|\n)*otypes="):
        tm.jit(lambda x: line(x))(X.astype(np.float32))
    rows = np.vectorize(lambda row: row.sum(), signature="(n)->()")
    with pytest.raises(NotImplementedError, match=r"TM111(.|\n)*apply_along_axis"):
        tm.jit(lambda x: rows(x))(X)


@pytest.mark.cpu
def test_a_size_compiles_nothing_anew() -> None:
    compiled = tm.jit(lambda x: line(x))
    for size in (2, 3, 7, 50):
        x = np.arange(size * (size + 1.0)).reshape(size, -1)
        np.testing.assert_array_equal(compiled(x), line(x))
    assert len(compiled.explain_recompiles()) <= 2
