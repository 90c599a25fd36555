"""Gradients of random loops over elements equal finite differences of the loops as Python."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm
from loop_gradients import differences, random_loop

pytestmark = pytest.mark.cpu


def compare(rng: np.random.Generator, count: int) -> None:
    """As many loops, each for two sizes."""
    compared = 0
    for _ in range(count):
        function, text = random_loop(rng)
        slope = tm.jit(tm.grad(function))
        for size, trips in ((6, 5), (4, 3)):
            x = rng.uniform(-1, 1, size)
            want = differences(function, x, trips)
            if want is not None:
                compared += 1
                np.testing.assert_allclose(slope(x, trips), want, 1e-4, 1e-5, err_msg=text)
    assert compared > count


@pytest.mark.parametrize("part", range(4))
def test_gradients_equal_finite_differences(part: int, rng: np.random.Generator) -> None:
    compare(rng, 10)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_a_night_of_gradients(part: int, rng: np.random.Generator) -> None:
    compare(rng, 60)
