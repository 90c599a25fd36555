"""Sizes that user code computes: where one is negative the call is refused as by NumPy, whatever
the sizes of the calls before.

Not here: slices, which end where their axis ends (test_indexing.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: np.zeros(len(x) - 2).sum(),
    lambda x: np.ones((len(x) - 2, len(x) - 2)).sum(),
    lambda x: np.ones(len(x) - 2).shape,
    lambda x: np.zeros(len(x) - 1, dtype=np.float32).size,
    lambda x: np.zeros(-len(x)).sum(),
    lambda x: np.zeros((len(x) - 2) * (len(x) - 5) + 1).sum(),
    lambda x: np.zeros(len(x) - 3)[0] if len(x) != 3 else 0.0,
    lambda x: np.zeros((3, len(x) - 2)).shape,
    lambda x: np.empty(len(x) - 2).shape,
    lambda x: np.full(len(x) - 2, 3.0).sum(),
    lambda x: np.ones_like(x, shape=(len(x) - 2,)),
    lambda x: np.identity(len(x) - 2).sum(),
    lambda x: np.eye(3, len(x) - 2).sum(),
    lambda x: np.linspace(0, 1, len(x) - 2).sum().round(9),
    lambda x: np.vander(x, len(x) - 2).shape,
    lambda x: np.indices((len(x) - 2,)).sum(),
    lambda x: np.broadcast_to(np.ones(1), (len(x) - 2,)).sum(),
    lambda x: np.concatenate([x, np.ones(len(x) - 2), x]),
    lambda x: np.insert(x, 0, np.zeros(len(x) - 2)),
    lambda x: np.pad(x, len(x) // 2 - 3),
    lambda x: np.pad(x, (3, len(x) - 2)),
    lambda x: np.pad(x[:, None], ((0, 0), (0, len(x) - 4))),
    lambda x: np.cumsum(np.ones((len(x) - 1) // 2)),
    lambda x: np.zeros(max(0, len(x) - 5)),
    lambda x: np.zeros(min(len(x), 5)),
    lambda x: np.arange(len(x) - 3),
    lambda x: x[2 : len(x) - 2].sum(),
    lambda x: x[len(x) - 3 :],
]


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    try:
        return function(x)
    except ValueError:
        return ValueError


@pytest.mark.parametrize("sizes", [(7, 3, 50, 2, 1, 0, 4, 5), (0, 1, 2, 9)], ids=["large", "none"])
@pytest.mark.parametrize("at", range(len(FUNCTIONS)))
def test_a_negative_size_is_refused(at: int, sizes: tuple[int, ...]) -> None:
    function = FUNCTIONS[at]
    compiled = tm.jit(function)
    for size in sizes:
        x = np.arange(float(size))
        want, got = outcome(function, x), outcome(compiled, x)
        if want is ValueError or got is ValueError:
            assert got is want, size
            continue
        np.testing.assert_array_equal(got, want)
        assert np.shape(got) == np.shape(want)
    assert len(compiled.dispatcher.versions) <= 4


def trips(x: Any, count: int) -> Any:
    total = 0.5
    for _ in range(count):
        total = total + np.ones(len(x) - 3).sum()
    return total


def in_a_branch(x: Any, count: int) -> Any:
    total = 0.5
    if count > 1:
        total = total + np.ones(len(x) - 3).sum()
    return total


@pytest.mark.parametrize("function", [trips, in_a_branch])
def test_it_is_refused_where_it_is_computed(function: Callable[..., Any]) -> None:
    compiled = tm.jit(function)
    for size, count in ((7, 2), (2, 0), (2, 3), (5, 20), (1, 20), (1, 0)):
        want, got = (outcome(partial(f, count=count), np.ones(size)) for f in (function, compiled))
        assert got == want, (size, count)


def test_nothing_is_read_or_written_beside_an_array() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        return np.concatenate([x, np.ones(len(x) - 3000), x, x, x])

    assert f(np.arange(5000.0)).shape == (22000,)
    for _ in range(30):
        with pytest.raises(ValueError, match="TM242"):
            f(np.full(1000, 7.0))
