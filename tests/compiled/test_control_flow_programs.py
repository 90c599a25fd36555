"""Control flow in Programs: entries over one state, values before and after a loop fetched and fed.

Not here: Programs (test_programs.py).
"""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu


def test_a_program_runs_loops_and_prunes_those_not_needed() -> None:
    w = tm.Variable(np.zeros(3), name="control flow in a program")

    def train(x):
        hidden = x * 2

        def body(i, total):
            w.assign(w.read() + hidden)
            return total + hidden.sum()

        return tm.fori_loop(0, 3, body, 0.0)

    def predict(x):
        return tm.cond(x.sum() > 0, lambda: w.read() + x, lambda: x)

    program = tm.Program(train=tm.jit(train), predict=tm.jit(predict))
    x = np.arange(3.0)
    assert program.run("train", {"x": x}) == 18.0
    np.testing.assert_array_equal(w.read(), 6 * x)
    np.testing.assert_array_equal(program.run("predict", {"x": x}), 7 * x)
    np.testing.assert_array_equal(program.run("predict", {"x": -x}), -x)
    np.testing.assert_array_equal(program.run("train/hidden", {"x": x}), 2 * x)
    np.testing.assert_array_equal(w.read(), 6 * x)
