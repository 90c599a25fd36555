"""Loops and branches that do not fit: the error shows both types and the line, compiled and not.

Not here: what fits (test_control_flow.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill import TracemillError

pytestmark = pytest.mark.cpu
X = np.arange(6.0)


def refused(function: Callable[..., Any], *args: Any) -> TracemillError:
    """The error of the compiled function; plain Python raises the same class and code."""
    with pytest.raises(TypeError) as plain, tm.disable_jit():
        function(*args)
    with pytest.raises(TypeError) as caught:
        tm.jit(function)(*args)
    found, other = caught.value, plain.value
    assert isinstance(found, TracemillError)
    assert isinstance(other, TracemillError)
    assert found.code == other.code == "TM260"
    return found


def line_of(text: str) -> int:
    """The line of this file that holds the text."""
    lines = inspect.getsource(inspect.getmodule(line_of)).split("\n")  # type: ignore[arg-type]
    return next(at for at, line in enumerate(lines, 1) if text in line and "line_of" not in line)


def test_a_carried_dtype_that_changes_is_shown_with_the_line_that_changes_it() -> None:
    def narrowed(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            return {"a": c["a"], "b": c["b"].astype(np.float32)}  # narrower

        return tm.fori_loop(0, 3, body, {"a": x, "b": x})

    problem = refused(narrowed, X)
    assert "f64[n]" in str(problem)
    assert "f32[n]" in str(problem)
    assert "['b']" in str(problem)
    assert problem.place is not None
    assert problem.place.line == line_of("# narrower")
    assert problem.place.file == __file__


def test_a_carried_shape_that_changes_is_shown() -> None:
    problem = refused(lambda x: tm.while_loop(lambda c: c.sum() > 0, lambda c: c[1:], x), X)
    assert "f64[n]" in str(problem)
    assert "f64[n - 1]" in str(problem)


def test_another_structure_is_refused() -> None:
    problem = refused(lambda x: tm.fori_loop(0, 3, lambda i, c: (c, c), x), X)
    assert "structure" in str(problem)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tm.while_loop(lambda c: c > 0, lambda c: c, x),
        lambda x: tm.fori_loop(0, 2.5, lambda i, c: c, x),
        lambda x: tm.fori_loop(0, x, lambda i, c: c, x),
        lambda x: tm.scan(lambda c, r: c, x, x),
        lambda x: tm.scan(lambda c, r: (c, r), x),
        lambda x: tm.scan(lambda c, r: (c, r), x, (x, x[1:])),
        lambda x: tm.scan(lambda c, r: (c, r), x, x, length=4),
        lambda x: tm.scan(lambda c, r: (c, r), x, x.sum()),
        lambda x: tm.cond(x > 0, lambda: x, lambda: x),
    ],
)
def test_what_is_no_condition_bound_or_stack_is_refused(function: Callable[..., Any]) -> None:
    refused(function, X)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (lambda x: x, lambda x: x[1:], "f64[n - 1]"),
        (lambda x: x, lambda x: x.astype(np.float32), "f32[n]"),
        (lambda x: x, lambda x: (x, x), "structure"),
    ],
)
def test_branches_that_give_different_things_are_refused(
    first: Callable[..., Any], second: Callable[..., Any], text: str
) -> None:
    with pytest.raises(TracemillError, match="TM260") as caught:
        tm.jit(lambda x: tm.cond(x.sum() > 0, first, second, x))(X)
    assert text in str(caught.value)


def test_what_was_passed_in_is_not_written() -> None:
    def body_writes(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            c[i] = -1.0
            return c

        return tm.fori_loop(0, 3, body, x)

    x = X.copy()
    with tm.disable_jit():
        want = body_writes(x)
    np.testing.assert_array_equal(tm.jit(body_writes)(x), want)
    np.testing.assert_array_equal(x, X)


def test_an_index_outside_its_axis_fails_the_call() -> None:
    w = tm.Variable(np.zeros(1), name="control flow errors")

    @tm.jit
    def f(x: Any, n: Any) -> Any:
        w.assign(w.read() + 1)
        return tm.fori_loop(0, n, lambda i, c: c + x[i], 0.0)

    assert f(X, 6) == X.sum()
    with pytest.raises(IndexError, match="index 6 is out of bounds"):
        f(X, 7)
    assert w.read() == [1.0]


def test_gradients_of_loops_of_what_has_none_are_refused_with_the_line() -> None:
    def body(c: Any) -> Any:
        return tm.host_call(np.sin, c, result=c)

    @tm.jit
    def f(x: Any) -> Any:
        return tm.grad(lambda x: tm.while_loop(lambda c: c.sum() < 9, body, x).sum())(x)

    with pytest.raises(TracemillError, match=r"TM120.*test_control_flow_errors"):
        f(X)


def test_a_body_runs_on_one_device() -> None:
    @tm.jit
    def inside(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            with tm.device("cpu:1"):
                return c + i

        return tm.fori_loop(0, 3, body, x)

    with pytest.raises(TracemillError, match="TM260"):
        inside(X)

    @tm.jit
    def around(x: Any) -> Any:
        with tm.device("cpu:1"):
            y = tm.fori_loop(0, 3, lambda i, c: c + i, x)
        return tm.cond(y.sum() > 0, lambda: y + x, lambda: x)

    np.testing.assert_array_equal(around(X), X + 3 + X)
