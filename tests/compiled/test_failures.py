"""What a failing call says, and that the next one works."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import BoundsError, ShapeError


def test_sizes_that_do_not_fit_are_told_with_their_values():
    subtract = tm.jit(lambda x, y: x - y)
    with pytest.raises(ShapeError) as caught:
        subtract(np.ones((64, 10)), np.ones((32, 10)))
    assert re.search(
        r"they differ in dimension 0: n against k; in this call n is 64, k is 32$",
        str(caught.value),
        re.MULTILINE,
    )
    assert "hint" not in str(caught.value)
    np.testing.assert_array_equal(subtract(np.ones(2), np.ones(2)), np.zeros(2))


def test_a_known_size_is_not_explained():
    with pytest.raises(ShapeError, match=r"dimension 0: n against 3; in this call n is 9$"):
        tm.jit(lambda x: x + np.ones(3))(np.ones(9))


def test_pythons_math_keeps_its_domain_errors():
    root = tm.jit(lambda x: math.sqrt(x) * 2)
    assert root(4.0) == 4.0
    with pytest.raises(ValueError, match=r"\[TM251\] at .*test_failures.py:\d+.*\n  math domain"):
        root(-1.0)
    assert root(9.0) == 6.0


def test_a_call_that_fails_has_printed_and_written_nothing_behind_the_failure(capsys):
    w = tm.Variable(np.zeros(2), name="failing_w")

    @tm.jit
    def pick(x, i):
        y = x[i]
        w.assign_add(1.0)
        x[0] = 5
        tm.print("picked {}", y)
        return y

    x = np.arange(3.0)
    with pytest.raises(BoundsError, match="index 7 is out of bounds for an axis of size 3"):
        pick(x, np.array([0, 7]))
    assert (x[0], w.read().tolist(), capsys.readouterr().out) == (0.0, [0.0, 0.0], "")
    pick(x, np.array([1, 2]))
    assert (x[0], w.read().tolist()) == (5.0, [1.0, 1.0])
    assert capsys.readouterr().out == "picked [1. 2.]\n"


@pytest.mark.parametrize(
    ("dtype", "number", "limits"),
    [("u1", 300, "uint8, which holds 0 to 255"), ("i2", -40000, "int16, which holds -32768 to 3")],
)
def test_an_integer_that_does_not_fit_is_told_of_its_element_type(dtype, number, limits):
    compiled = tm.jit(lambda x, n: x + n)
    x = np.arange(3).astype(dtype)
    assert compiled(x, 1).tolist() == [1, 2, 3]
    with pytest.raises(OverflowError, match=rf"TM246\] at .*\n.* out of bounds for {limits}"):
        compiled(x, number)
