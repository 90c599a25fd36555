"""Random programs with control flow give, compiled, what plain Python gives.

Not here: how they are made (tests/support/flow_programs.py).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tracemill as tm
from flow_programs import program
from python_flow import assert_same
from tracemill import TracemillError

pytestmark = pytest.mark.cpu
CALLS = [
    (np.array([1.0, -2.0, 0.5, 3.0]), 3, 1, 2),
    (np.array([-1.0, 0.25, 4.0]), 2, 0, 5),
    (np.array([-1.0, 0.25, 4.0]), 0, 4, 3),
]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(4, 24))
def test_a_program_gives_the_values_and_types_of_python(seed: int, size: int) -> None:
    function, text = program(seed, size)
    compiled = tm.jit(function)
    for x, *numbers in CALLS:
        plain, own = x.copy(), x.copy()
        with np.errstate(all="ignore"):
            try:
                want = function(plain, *numbers)
            except ZeroDivisionError:
                continue
            try:
                got = compiled(own, *numbers)
            except TracemillError as problem:
                if problem.code != "TM106":  # it writes memory that is not known
                    raise
                return
        try:
            assert_same(got, want)
            assert_same(own, plain)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{text}") from problem
