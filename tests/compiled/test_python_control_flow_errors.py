"""Branches and loops of Python that cannot become control flow of the graph: what is said, where.

Not here: what can (test_python_control_flow.py, test_python_control_flow_loops.py).
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill import TracemillError

pytestmark = pytest.mark.cpu
X = np.array([1.0, -2.0, 3.0, 0.5])


def refused(function: Any, code: str, *texts: str, line: str = "", args: Any = (X,)) -> None:
    """The compiled function raises this error, with these texts, at the line that holds `line`."""
    with pytest.raises(TracemillError) as caught:
        tm.jit(function)(*args)
    problem = caught.value
    assert problem.code == code, str(problem)
    for text in texts:
        assert text in str(problem)
    if line:
        lines, first = inspect.getsourcelines(function)
        assert problem.place is not None
        assert line in lines[problem.place.line - first]


def unbound(x):
    if x.sum() > 0:
        y = x
    return y


def other_shapes(x):
    if x.sum() > 0:
        y = x
    else:
        y = x[1:]
    return y + 1


def other_dtypes(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.astype(np.float32)
    return y + 1


def other_structures(x):
    if x.sum() > 0:
        y = x, x
    else:
        y = [x]
    return y[0]


def other_results(x):
    if x.sum() > 0:
        return x
    return x, x


def other_result_dtypes(x):
    if x.sum() > 0:
        return x
    return x.astype(np.float32)


def other_texts(x):
    return "positive" if x.sum() > 0 else x


def nothing_returned(x):
    if x.sum() > 0:
        return x


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (unbound, ("y is used", "f64[n] if this condition is true, nothing if not")),
        (other_shapes, ("y is used", "f64[n]", "f64[n - 1]")),
        (other_dtypes, ("y is used", "f64[n]", "f32[n]")),
        (other_structures, ("y is used", "a tuple of 2", "a list of 1")),
        (other_results, ("the returned value", "f64[n]", "a tuple of 2")),
        (other_result_dtypes, ("the returned value", "f64[n]", "f32[n]")),
        (other_texts, ("this expression", "'positive'", "f64[n]")),
        (nothing_returned, ("the returned value", "f64[n]", "None")),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_what_differs_between_branches_is_named_where_they_are(function: Any, texts: Any) -> None:
    refused(function, "TM260", *texts, line="if x.sum() > 0")


def test_what_differs_and_is_not_used_does_no_harm() -> None:
    def f(x):
        if x.sum() > 0:
            y = x
        else:
            y = "none"
        del y
        return x

    np.testing.assert_array_equal(tm.jit(f)(X), X)


def appended(x):
    items = []
    if x.sum() > 0:
        items.append(x)
    return items


def changing_dtype(x):
    y = x
    while y.sum() > 1:
        y = (y / 2).astype(np.float32)
    return y


def changing_shape(x):
    y = x
    while y.sum() > 1:
        y = y[1:]
    return y


def never_bound(x):
    while x.sum() > 1:
        x = x / 2
        y = x
    return y


def test_lists_that_grow_in_one_branch_are_refused() -> None:
    refused(appended, "TM260", "a list of 1", "a list of 0", "np.zeros(n)", line="if x.sum() > 0")


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        (changing_dtype, ("y is used", "f64[n] before this loop, f32[n] after a trip")),
        (changing_shape, ("y is used", "f64[n]", "f64[n - 1]")),
        (never_bound, ("y is used", "only if this loop makes a trip", "before the loop")),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_what_a_loop_cannot_carry_is_named(function: Any, texts: Any) -> None:
    refused(function, "TM260", *texts, line="while")


def one_or_two(x):
    a, b = x * 2, x * 3
    c = a if x.sum() > 0 else b
    c[0] = 1
    return a, c


def other_name(x):
    y = x + 1
    z = y
    if x.sum() > 0:
        y = y * 0.5
    z[0] = 7
    return y


def view_of_a_name(x):
    y = x + 1
    w = y[:2]
    for k in range(20):
        w[0] += x[k % 4]
        if x[k % 4] > 0:
            y = y * 0.5
    return y


def two_names_of_a_trip(x):
    y, z = x + 1, x * 2
    while y.sum() < 100:
        y = y * 2 + 9
        z = y
    z[0] = 1
    return y


def read_before_the_write(x):
    y = x + 1
    w = y[:2]
    s = np.float64(0)
    if x.sum() > 0:
        y = y * 2
    for k in range(20):
        s = s + w[0] * x[k % 4]
        y[0] += 1
    return s


def row_of_two(x):
    y = x.reshape(2, 2)
    row = y[0]
    if x.sum() > 0:
        row = y[1]
    row[0] = 9
    return y


def base_of_a_row(x):
    y = x.reshape(2, 2)
    row = y[0]
    if x.sum() > 0:
        row = y[1]
    y[:] = 0
    return row


def callers_or_own(x):
    if x.sum() > 0:
        x = x * 2
    x[0] = 9
    return x


@pytest.mark.parametrize(
    "function",
    [one_or_two, other_name, view_of_a_name, two_names_of_a_trip, read_before_the_write,
     row_of_two, base_of_a_row, callers_or_own],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_arrays_that_may_share_memory_are_not_used_once_one_is_written(function: Any) -> None:
    refused(function, "TM106", "shares its memory", ".copy()")


def test_memory_that_only_the_first_trip_writes_is_not_used_after_the_loop() -> None:
    def f(x):
        y = x * 0
        view = y[:2]
        while y.sum() < 9:
            y[0] += 1
            y = y * 2
        return y, view

    refused(f, "TM106", "is written in line")


def test_a_copy_may_be_written() -> None:
    def f(x):
        if x.sum() > 0:
            y = x.copy()
        else:
            y = x * 2
        y[0] = 9
        return y

    for x in (X, -X):
        np.testing.assert_array_equal(tm.jit(f)(x.copy()), f(x.copy()))


class Odd(Exception):
    """Its arguments do not make it again."""

    def __init__(self, text, number):
        super().__init__(text)
        self.number = number


def raising_an_odd_one(x):
    if x.min() < 0:
        raise Odd("negative", 2)
    return x


def raising_in_a_try(x):
    try:
        if x.min() < 0:
            raise ValueError("negative")
    except ValueError:
        return -x
    return x


def raised_by_a_helper_in_a_try(x):
    try:
        return raising(x)
    except ValueError:
        return -x


def raising(x):
    if x.min() < 0:
        raise ValueError("negative")
    return x


def raising_on_both_ways(x):
    if x.min() < 0:
        raise ValueError("negative")
    else:
        raise ValueError("not negative")


def returned_in_with(x):
    with np.errstate(all="ignore"):
        if x[0] > 1:
            return x / 0
    return x


def in_a_function_that_looks_at_its_frame(x):
    if x[0] > 0:
        x = x * 2
    return x, len(locals())


def broken_list(x):
    for k in [1, 2, 3]:
        if x[k] > 0:
            break
    return k


@pytest.mark.parametrize(
    ("function", "texts", "line"),
    [
        (raising_an_odd_one, ("raise Odd", "not plain numbers and texts"), "raise"),
        (raising_in_a_try, ("raise ValueError", "`try` stands around it"), "raise"),
        (raising_on_both_ways, ("so does the other block",), "not negative"),
        (returned_in_with, ("a jump out of `with`",), "if x[0]"),
        (in_a_function_that_looks_at_its_frame, ("`if` needs to know", "tm.cond"), "if x[0]"),
        (broken_list, ("a loop that runs while the function is traced",), "for k in"),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_what_cannot_be_converted_says_why_and_what_to_write(
    function: Any, texts: Any, line: str
) -> None:
    refused(function, "TM101", *texts, line=line)


def test_a_raise_that_a_caller_might_catch_is_refused() -> None:
    with pytest.raises(TracemillError, match="`try` stands around it"):
        tm.jit(raised_by_a_helper_in_a_try)(X)


def test_functions_without_source_are_refused_and_say_so() -> None:
    space: dict[str, Any] = {}
    exec("def f(x):\n    if x.sum() > 0:\n        return x\n    return -x\n", space)
    refused(space["f"], "TM101", "source")


def test_raising_on_numbers_that_are_guarded_is_python_s() -> None:
    def f(x, n):
        if n < 0:
            raise ValueError("negative")
        return x * n

    compiled = tm.jit(f)
    np.testing.assert_array_equal(compiled(X, 2), X * 2)
    with pytest.raises(ValueError, match="negative"):
        compiled(X, -1)


def test_recursion_on_values_is_refused() -> None:
    def halved(s):
        if s < 1:
            return s
        return halved(s / 2)

    refused(halved, "TM104", "calls itself", args=(X[:1].sum() * X,) and (np.array(3.0),))
