"""Lines that would raise for the sizes of a call, in blocks that the call does not take.

Python never runs them, so the call has its result; where they are taken it raises what Python and
NumPy raise. Not here: `raise` and `assert` (test_raising.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu


def writes(x: Any) -> Any:
    if x[0] > 5:
        x[3] = 1
        x[-4] += 2
    return x


def writes_before(x: Any) -> Any:
    y = np.zeros(len(x))
    if x[0] > 5:
        y[0] = 7
        y[3] = x[2]
    return y


def reads(x: Any) -> Any:
    if x[0] > 5:
        return x[3] * 2
    return x[0]


def of_a_slice(x: Any) -> Any:
    if x[0] > 5:
        return x[2:][1]
    return x[0]


def of_a_row(x: Any) -> Any:
    table = np.stack([x, x + 1])
    return table[2, 0] if x[0] > 5 and len(x) < 4 else table[0, -1]


def of_a_static_axis(x: Any) -> Any:
    pair = np.stack([x[:1], x[-1:]])[:, 0]
    return pair[4] if x[0] > 5 else pair[1]


def by_an_array(x: Any) -> Any:
    if x[0] > 5:
        return x[[0, 3]].sum()
    return x[0]


def by_a_size(x: Any) -> Any:
    if x[0] > 5:
        return x[2 * len(x) - 4]
    return x[0]


def in_a_trip(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 5:
            total += x[3]
    return total


def in_a_loop_that_is_not_entered(x: Any) -> Any:
    k = x[0]
    while k > 5:
        k = k - x[3]
    return k


def behind_a_raise(x: Any) -> Any:
    if x[0] <= 5:
        raise ValueError("small")
    return x[3]


def behind_a_write(x: Any) -> Any:
    r = 1
    if x[0] > 5:
        x *= 2
        r = 6 // (len(x) - 2)
    return r


def behind_another_failure(x: Any) -> Any:
    if x[0] <= 5:
        return 1.0
    if x[1] > 100:
        raise KeyError("large")
    s = 1.0
    if x[1] > s:
        x[0] = 3
        s = x[len(x) % (len(x) - 2)]
    return s


def behind_an_index_of_the_run(x: Any) -> Any:
    first = x[int(x[0]) - 9 if len(x) < 4 else 0]
    return first * 12 // (len(x) - 2) if x[0] > 5 else first


def a_reduction_of_nothing(x: Any) -> Any:
    if x[0] > 5:
        x[0] = 7
        return x[2:].max()
    return x[0]


def a_negative_size(x: Any) -> Any:
    if x[0] > 5:
        return np.ones(len(x) - 3).sum()
    return x[0]


def the_last_line(x: Any) -> Any:
    if x[0] <= 5:
        return x[0]
    x[0] = 1
    return x.reshape(2, 2)[1, 0] + x[3]


def divides(x: Any) -> Any:
    if x[0] > 5:
        return 12 // (len(x) - 2)
    return 0


def takes_the_remainder(x: Any) -> Any:
    return x.sum() + 7 % (len(x) - 2) if x[0] > 5 else x[0]


def adds_shapes_that_do_not_fit(x: Any) -> Any:
    if x[0] > 5:
        return (x + np.ones(4)).sum()
    return x[0]


def reshapes(x: Any) -> Any:
    if x[0] > 5:
        return x.reshape(2, 2)[1, 0]
    return x[0]


def names_an_axis(x: Any) -> Any:
    if x[0] > 5 and len(x) < 4:
        return x.sum(axis=1)
    return x[0]


def of_a_list(x: Any) -> Any:
    numbers = [1.0, 2.0, 3.0, 4.0][: len(x)]
    if x[0] > 5:
        return x[0] * numbers[3]
    return x[0]


def of_a_dict(x: Any) -> Any:
    numbers = {"a": 1.0} if len(x) < 4 else {"a": 1.0, "b": 2.0}
    if x[0] > 5:
        return x[0] * numbers["b"]
    return x[0]


def outcome(function: Callable[..., Any], x: Any) -> Any:
    """What comes back and what is written, or the exception's class."""
    x = x.copy()
    try:
        return function(x), x
    except Exception as problem:  # noqa: BLE001  compared by the caller
        return problem


FUNCTIONS = [
    behind_a_write, behind_another_failure, behind_an_index_of_the_run, a_reduction_of_nothing,
    a_negative_size, the_last_line, writes, writes_before, reads, of_a_slice, of_a_row,
    of_a_static_axis, by_an_array, by_a_size,
    in_a_trip, in_a_loop_that_is_not_entered, behind_a_raise, divides, takes_the_remainder,
    adds_shapes_that_do_not_fit, reshapes, names_an_axis, of_a_list, of_a_dict,
]  # fmt: skip
LOW, HIGH = 1.0, 9.0


@pytest.mark.parametrize("first", [(2, LOW), (2, HIGH), (4, LOW)], ids=["short", "taken", "long"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_line_raises_where_it_is_run(
    function: Callable[..., Any], first: tuple[int, float]
) -> None:
    compiled = tm.jit(function)
    raised = given = 0
    for size, start in (first, (2, LOW), (2, HIGH), (4, LOW), (4, HIGH), (2, HIGH), (2, LOW)):
        x = np.arange(float(size)) + start
        want, got = outcome(function, x), outcome(compiled, x)
        if isinstance(want, Exception):
            raised += 1
            assert isinstance(got, type(want)), got
        else:
            given += 1
            assert not isinstance(got, Exception), got
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
    assert raised
    assert given
    assert len(compiled.dispatcher.versions) <= 4


def test_the_error_says_the_index_and_the_size_of_the_call() -> None:
    compiled = tm.jit(reads)
    for size in (2, 3, 2):
        with pytest.raises(IndexError, match=f"index 3 is out of bounds .* size {size}") as caught:
            compiled(np.full(size, HIGH))
        assert f"test_not_taken.py:{reads.__code__.co_firstlineno + 2}" in str(caught.value)
    assert len(compiled.dispatcher.versions) == 1
    with pytest.raises(ValueError, match=r"\[TM204\] at .*test_not_taken.py.*\n.*broadcastable"):
        tm.jit(adds_shapes_that_do_not_fit)(np.full(2, HIGH))


def test_nothing_is_written_by_a_call_that_raises() -> None:
    x = np.array([HIGH, 2.0])
    with pytest.raises(IndexError):
        tm.jit(writes)(x)
    np.testing.assert_array_equal(x, [HIGH, 2.0])


def raises_twice(x: Any) -> Any:
    tm.print("sum {}", x.sum())
    if x[0] > 5:
        raise KeyError("first")
    x[0] = 2
    return x.reshape(3, 3)


def prints_and_raises(x: Any) -> Any:
    if x[0] > 5:
        x[1] = 9
        tm.print("large: {}", x[0])
        raise ValueError("large")
    return x


def test_what_stands_before_it_happens_first(capfd: pytest.CaptureFixture[str]) -> None:
    compiled = tm.jit(raises_twice)
    for _ in range(2):
        x = np.full(4, HIGH)
        with pytest.raises(KeyError, match="first"):
            compiled(x)
        with pytest.raises(ValueError, match="TM206"):
            compiled(x - 8)
        np.testing.assert_array_equal(x, np.full(4, HIGH))
    assert capfd.readouterr().out == "sum 36.0\nsum 4.0\n" * 2
    assert len(compiled.dispatcher.versions) == 1
    compiled = tm.jit(prints_and_raises)
    for number in (HIGH, LOW, HIGH):
        x = np.full(3, number)
        if number is HIGH:
            with pytest.raises(ValueError, match="large"):
                compiled(x)
        else:
            np.testing.assert_array_equal(compiled(x), x)
        np.testing.assert_array_equal(x, np.full(3, number))
    assert capfd.readouterr().out == "large: 9.0\n" * 2


def test_a_divisor_that_a_size_makes_zero_is_guarded() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        return x.sum() + 7 % (len(x) - 2), len(x) // (len(x) - 2)

    for size in (3, 5, 2, 4, 2):
        if size == 2:
            with pytest.raises(ZeroDivisionError):
                f(np.ones(size))
        else:
            assert f(np.ones(size)) == (size + 7 % (size - 2), size // (size - 2))
    assert len(f.dispatcher.versions) <= 2


def test_what_cannot_be_traced_is_said_at_once() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        if x[0] > 5:
            return np.unique(x)[0]
        return x[0]

    with pytest.raises(tm.TracemillError, match="unique"):
        f(np.full(2, LOW))
