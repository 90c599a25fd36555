"""Reductions of one column of a matrix: long enough for several blocks of the fixed tree."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm


@pytest.mark.parametrize("columns", [2, 3, 5, 9, 40])
def test_reductions_of_one_column_equal_numpy(columns: int, rng: np.random.Generator) -> None:
    first = tm.jit(lambda x: np.sum(x[:, 0]))
    several = tm.jit(lambda x: (x[:, 1].sum(), x[:, -1].max(), x[::-1, 0].mean()))
    for rows in (1, 7, 64, 4095, 4096, 4097, 9000, 70_001):
        x = rng.standard_normal((rows, columns))
        np.testing.assert_allclose(first(x), first.__wrapped__(x), rtol=1e-11, atol=1e-11)
        for got, want in zip(several(x), several.__wrapped__(x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
