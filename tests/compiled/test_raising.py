"""`raise` and `assert` on what is known only when a compiled function runs.

Not here: exceptions while a function is traced (test_failures.py); what cannot become a check and
is refused (test_python_control_flow_errors.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from raising_programs import FUNCTIONS, asserted, roots

pytestmark = pytest.mark.cpu
UP, MIXED, DOWN = np.array([1.0, 2, 3]), np.array([5.0, -2, 1]), np.array([-1.0, 2, -3])


def outcome(function: Any, *args: Any) -> Any:
    """The result, or the exception's class and arguments."""
    try:
        return function(*args)
    except Exception as problem:  # noqa: BLE001  compared by the caller
        return type(problem), problem.args


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("first", [UP, MIXED, DOWN], ids=["up", "mixed", "down"])
def test_it_is_raised_where_python_raises_it(function: Any, first: Any) -> None:
    compiled = tm.jit(function)
    longer = [np.concatenate([x, np.abs(x), [0.25]]) for x in (UP, MIXED, DOWN)]
    raised = 0
    for x in (first, UP, MIXED, DOWN, *longer):
        want, got = outcome(function, x.copy()), outcome(compiled, x.copy())
        raised += isinstance(want, tuple)
        if isinstance(want, tuple):
            assert got == want
        else:
            np.testing.assert_allclose(got, want, rtol=1e-15)
    assert raised
    assert len(compiled.dispatcher.versions) == 1


def test_it_names_the_line_and_shows_no_frames_of_ours() -> None:
    with pytest.raises(ValueError, match="x is negative") as caught:
        tm.jit(roots)(DOWN)
    (note,) = caught.value.__notes__
    assert note.startswith("raised at ")
    assert note.endswith(", in roots")
    line = roots.__code__.co_firstlineno + 2
    assert f"raising_programs.py:{line}" in note


def test_numbers_select_no_version_and_are_checked_before_they_are_used() -> None:
    @tm.jit
    def shared(x: Any, n: int) -> Any:
        if n == 0:
            raise ZeroDivisionError("n is zero")
        return x * (12 // n)

    for n in (3, 0, 4, 0):
        if n:
            np.testing.assert_array_equal(shared(UP, n), UP * (12 // n))
        else:
            with pytest.raises(ZeroDivisionError, match="n is zero"):
                shared(UP, n)
    assert len(shared.dispatcher.versions) == 1


def test_nothing_is_written_by_a_call_that_raises() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        x[0] = 7
        if x[1] < 0:
            raise ValueError("late")
        return x

    x = MIXED.copy()
    with pytest.raises(ValueError, match="late"):
        f(x)
    np.testing.assert_array_equal(x, MIXED)
    assert f(UP.copy())[0] == 7


def test_a_value_of_the_run_in_the_text_is_left_out() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        if x.min() < 0:
            raise ValueError(f"{x.shape}: the least is {x.min()}")
        return x

    with pytest.raises(ValueError, match=r"^\(3,\): the least is \.\.\."):
        tm.jit(lambda x: f(x))(np.array([-1.0, 2, 3]))


def test_gradients_pass_what_was_checked() -> None:
    def loss(x: Any) -> Any:
        return asserted(x).sum()

    np.testing.assert_allclose(tm.jit(tm.grad(loss))(UP), 0.5 / np.sqrt(UP))
    with pytest.raises(AssertionError, match="negative"):
        tm.jit(tm.grad(loss))(DOWN)
