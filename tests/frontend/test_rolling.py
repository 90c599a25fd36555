"""np.roll by numbers, lists and arrays, known and traced, beside axes of every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from traced import assert_same

X = np.arange(6).reshape(2, 3)
N = np.array
AXES: list[Any] = [None, 0, 1, -1, (0, 1), (1, 1), (), (0, 1, 0), [0], N([0, 1]), 2]
SHIFTS: list[Any] = [
    1, -4, 2**70, True, 2.7, -1.9, 2j, np.float32(1.9), (), [1, 2], (1, 2, 3), [[1], [2]], [[]],
    [N(3), 1], N(3), N([1, 2, 3]), N([1, 2]), N([1.5]), N([[1, 2]]), N([], int), N([1 + 1j]),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("shift", SHIFTS, ids=repr)
def test_shifts_are_added_or_broadcast_as_numpy_does(shift: Any) -> None:
    for axis in AXES:
        assert_same(lambda x, axis=axis: np.roll(x, shift, axis), X)
        if isinstance(shift, np.ndarray):
            assert_same(lambda x, by, axis=axis: np.roll(x, by, axis), X, shift)


def test_an_array_rolls_itself() -> None:
    for x in (np.arange(3), np.arange(5) * 1.5, np.zeros(0, int), N([4])):
        assert_same(lambda x: (np.roll(x, x), np.roll(x, x, 0), np.roll(x, x[:1])), x)


def test_sizes_and_arguments_are_shifts() -> None:
    assert_same(lambda x, k: np.roll(x, (k, 1), (0, 1)), X, 2)
    assert_same(lambda x, k: np.roll(x, (k, x.shape[0]), (0, 0)), X, 2)
    assert_same(lambda x: np.roll(x, [len(x), -1], 0), np.arange(5))
    for number in (3, True, 2.7, -1):
        assert_same(lambda x, k: (np.roll(x, k), np.roll(x, k, 1)), X, number)
