"""Result dtypes are NumPy's for every ufunc, dtype pair and kind of Python number."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from traced import assert_leaf_equal, assert_same, outcome, trace_function

DTYPES = "? b B h H i I l L e f d F D".split()
UFUNCS = sorted(
    {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc)}.values(),
    key=lambda f: f.__name__,
)
PLAIN = [f for f in UFUNCS if f.signature is None and f.__name__ != "isnat"]


def operand(code: str) -> Any:
    return np.array([1, 0, 3, 2]).astype(code)


@pytest.mark.parametrize("ufunc", PLAIN, ids=lambda f: f.__name__)
def test_a_ufunc_gives_numpy_s_dtypes_and_refuses_what_numpy_refuses(ufunc: np.ufunc) -> None:
    for codes in itertools.product(DTYPES, repeat=ufunc.nin):
        same_dtypes(ufunc, *map(operand, codes))
    if ufunc.nin == 2:
        for code, number in itertools.product(DTYPES, [2, 2.0, 2j, True]):
            same_dtypes(ufunc, operand(code), number)
            same_dtypes(ufunc, number, operand(code))


def same_dtypes(ufunc: np.ufunc, *args: Any) -> None:
    wanted, _ = outcome(ufunc, args)
    got, _ = outcome(lambda *own: trace_function(ufunc, *own).result.graph, args)
    if isinstance(wanted, Exception):
        assert isinstance(got, type(wanted) | TypeError), (args, wanted, got)
        return
    assert not isinstance(got, Exception), (args, wanted, got)
    results = wanted if isinstance(wanted, tuple) else (wanted,)
    dtypes = [value.tensor.dtype.numpy for value in got.results if hasattr(value.type, "dtype")]
    assert set(dtypes) == {r.dtype for r in results}, args


@pytest.mark.parametrize("number", [3, -3, 2.5, True, 1 + 2j, 300, -1])
def test_a_python_number_is_weak_written_out_or_passed(number: Any) -> None:
    for code in DTYPES:
        for ufunc in (np.add, np.multiply, np.true_divide, np.less, np.equal, np.maximum):
            written, _ = outcome(lambda x, u=ufunc: u(x, number), [operand(code)])
            if isinstance(written, np.ndarray):
                assert_same(lambda x, n, u=ufunc: u(x, n), operand(code), number)
            assert_same(lambda x, u=ufunc: u(x, number), operand(code))


def test_arithmetic_between_python_numbers_stays_weak() -> None:
    x = np.array([1.0, 2.0], np.float32)
    assert_same(lambda x, h, k: (x - h) * (0.5 + h) + k / 2 + k**2, x, 1.0, 3)
    assert_same(lambda x, h, k: (h + k, h * 2, k // 2, k % 2, -h, k > 2, h / k, 2**k), x, 1.5, 3)
    assert_same(lambda h, k: (np.sin(h), np.add(h, k), np.float32(h) * k), 1.5, 3)
    assert_same(lambda x, f: (x * f, f + 1, f & True), x, True)


def test_bf16_goes_with_its_own_rules() -> None:
    x = np.array([1, 2, 3], ml_dtypes.bfloat16)
    for function in (lambda x: x + 1.5, lambda x: x * x, lambda x: x + np.float32(1), np.negative):
        wanted = function(x)
        got = trace_function(function, x)(x)
        assert got.dtype == wanted.dtype
        assert_leaf_equal(got.astype(np.float32), wanted.astype(np.float32))


def test_an_integer_that_does_not_fit_raises_as_in_numpy() -> None:
    u = np.arange(3, dtype=np.uint8)
    for function in (lambda u: u + 300, lambda u: u * -1, lambda u: np.full(3, 300, np.uint8) + u):
        with pytest.raises(OverflowError):
            trace_function(function, u)
    assert_same(lambda u: (u < 300, u == -1, u < 300, u >= -1, u != 300), u)
    assert_same(lambda u: (np.clip(u, -5, 1000), u.clip(1, 999), u / 256), u)


def test_a_passed_integer_that_does_not_fit_fails_the_call() -> None:
    call = trace_function(lambda u, k: u + k, np.arange(3, dtype=np.uint8), 7)
    assert_leaf_equal(call(np.arange(3, dtype=np.uint8), 9), np.arange(3, dtype=np.uint8) + 9)
    with pytest.raises(OverflowError):
        call(np.arange(3, dtype=np.uint8), 300)


def test_reductions_accumulate_in_numpy_s_dtypes() -> None:
    for code in DTYPES:
        x = operand(code)
        for name in ("sum", "prod", "mean", "var", "std", "max", "min", "cumsum", "cumprod", "any"):
            assert_same(lambda x, n=name: getattr(np, n)(x), x)
