"""A training step that is interrupted has changed all of its Variables or none."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tracemill as tm
from interruption import interrupt_after

pytestmark = pytest.mark.cpu

SIZE = 1 << 16
ROUNDS = 12


def test_interruptions_at_random_moments_leave_no_update_half_done(
    rng: np.random.Generator,
) -> None:
    left, right = (tm.Variable(np.zeros(SIZE), name=name) for name in ("half/left", "half/right"))

    @tm.jit
    def step(x: np.ndarray) -> np.ndarray:
        work = x
        for _ in range(40):
            work = np.sin(work) + np.cos(work)
        left.assign(left + x)
        right.assign(right - x[::-1])
        return work

    x = np.ones(SIZE)

    def forever() -> None:
        while True:
            step(x)

    step(x)
    began = time.perf_counter()
    step(x)
    took = time.perf_counter() - began
    for _ in range(ROUNDS):
        with pytest.raises(KeyboardInterrupt), interrupt_after(rng.uniform(0.0, 20 * took) + 0.01):
            forever()
        np.testing.assert_array_equal(np.asarray(left), -np.asarray(right))
        assert (np.asarray(left) == np.asarray(left)[0]).all()
