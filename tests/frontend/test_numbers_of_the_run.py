"""Numbers of the run that become integer elements: one that does not fit is refused as by NumPy.

Not here: numbers known while tracing (test_stored_numbers.py), and those that meet arrays in
arithmetic (test_promotion.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from python_flow import operations

pytestmark = pytest.mark.cpu


def set_one(x: Any, n: int) -> Any:
    x[0] = n
    return x


def set_all(x: Any, n: int) -> Any:
    x[:] = n
    return x


def set_by_a_mask(x: Any, n: int) -> Any:
    x[x > 0] = n
    return x


def set_in_a_loop(x: Any, n: int) -> Any:
    for i in range(3):
        x[i] = n + i
    return x


def set_to_a_size(x: Any, n: int) -> Any:
    x[0] = len(x) * n
    return x


def set_to_a_sum(x: Any, n: int) -> Any:
    total = 0
    for i in range(len(x) * 20):
        total += i % (abs(n) + 1)
    x[0] = total
    return x


def filled(x: Any, n: int) -> Any:
    x.fill(n)
    return x


def put(x: Any, n: int) -> Any:
    np.put(x, [0], n)
    return x


def copied_to(x: Any, n: int) -> Any:
    np.copyto(x, n)
    return x


def placed(x: Any, n: int) -> Any:
    np.putmask(x, x > 0, n)
    return x


FUNCTIONS: list[Callable[[Any, int], Any]] = [
    set_one, set_all, set_by_a_mask, set_in_a_loop, set_to_a_size, set_to_a_sum, filled, put,
    copied_to, placed,
    lambda x, n: np.full(3, n, x.dtype),
    lambda x, n: np.full_like(x, n),
    lambda x, n: np.array([n, 1], x.dtype),
    lambda x, n: np.array([[n, 1], [2, n]], x.dtype),
    lambda x, n: x.dtype.type(n),
    lambda x, n: np.clip(x, 0, n),
    lambda x, n: np.clip(x, n, 5),
    lambda x, n: np.where(x > 0, x, n),
    lambda x, n: np.add(x, n, dtype=x.dtype),
    lambda x, n: x * n,
]  # fmt: skip


def outcome(function: Callable[[Any, int], Any], x: Any, n: int) -> Any:
    try:
        return function(x.copy(), n)
    except OverflowError:
        return OverflowError


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i4", "i8", "u8"])
@pytest.mark.parametrize("at", range(len(FUNCTIONS)))
def test_an_int_of_the_run_fits_or_is_refused(at: int, dtype: str) -> None:
    function = FUNCTIONS[at]
    compiled = tm.jit(function)
    x = np.arange(6).astype(dtype)
    for n in (5, 127, 128, 300, -1, -129, 2**15, -(2**31) - 1, 2**31, 2**32, 7):
        want, got = outcome(function, x, n), outcome(compiled, x, n)
        if want is OverflowError or got is OverflowError:
            assert got is want, n
            continue
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    assert len(compiled.dispatcher.versions) == 1


def test_a_refused_call_writes_nothing_and_says_the_line() -> None:
    x = np.arange(4, dtype=np.int8)
    with pytest.raises(OverflowError, match=r"TM246(.|\n)*int8, which holds -128 to 127"):
        tm.jit(set_all)(x, 300)
    np.testing.assert_array_equal(x, [0, 1, 2, 3])


def test_what_is_known_to_fit_is_not_checked() -> None:
    @tm.jit
    def f(x: Any, n: int) -> Any:
        for i in range(100):
            x[i % 7] = i
        x[0] = n % 50
        return x

    text = f.lower(np.zeros(9, np.int8), 1234).text
    assert "check" not in operations(text)
    np.testing.assert_array_equal(f(np.zeros(9, np.int8), 1234)[:3], [34, 99, 93])


def from_an_array(x: Any, v: Any) -> Any:
    for i in range(len(v)):
        x[i] = v[i]
    return x


def the_first(x: Any, v: Any) -> Any:
    x[0] = v[0]
    return x


def the_first_everywhere(x: Any, v: Any) -> Any:
    x[1:] = v[0]
    return x


def the_first_at_some(x: Any, v: Any) -> Any:
    x[[0, 2]] = v[0]
    x[x > 3] = v[0]
    return x


def all_of_them(x: Any, v: Any) -> Any:
    x[: len(v)] = v
    return x


FLOATS: list[Callable[[Any, Any], Any]] = [
    from_an_array, the_first, the_first_everywhere, the_first_at_some, all_of_them,
    lambda x, v: np.array([v[0], 1], x.dtype),
    lambda x, v: np.full(3, v[0], x.dtype),
    lambda x, v: x.dtype.type(v[0]),
    lambda x, v: np.clip(x, 0, v[0]),
]  # fmt: skip


def outcome_of_floats(function: Callable[[Any, Any], Any], x: Any, v: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(x.copy(), v)
    except (OverflowError, ValueError) as problem:
        return OverflowError if isinstance(problem, OverflowError) else ValueError


@pytest.mark.parametrize("kind", ["f8", "f4", "python"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i4", "i8"])
@pytest.mark.parametrize("at", range(len(FLOATS)))
def test_a_float_of_the_run_is_an_integer_or_refused(at: int, dtype: str, kind: str) -> None:
    function = FLOATS[at]
    compiled = tm.jit(function)
    x = np.arange(6).astype(dtype)
    for number in (3.7, 300.7, -3.5, -0.5, np.nan, np.inf, -np.inf, 1e30, 127.9, 128.0, 7.0):
        v: Any = [number] if kind == "python" else np.array([number], kind)
        want, got = outcome_of_floats(function, x, v), outcome_of_floats(compiled, x, v)
        if isinstance(want, type) or isinstance(got, type):
            assert got is want, number
            continue
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    assert len(compiled.dispatcher.versions) == 1
