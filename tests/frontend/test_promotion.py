"""Result dtypes are NumPy's for every ufunc, dtype pair and kind of Python number."""

from __future__ import annotations

import itertools
from collections.abc import Callable
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


# What NumPy computes by np.asarray first, where a Python number or list brings its own dtype.
BY_ARRAYS: list[Callable[[Any, Any], Any]] = [
    lambda x, k: np.dot(x, k), lambda x, k: np.dot(k, x), lambda x, k: x.dot(k),
    lambda x, k: np.inner(k, x), lambda x, k: np.vdot(x[:1], k), lambda x, k: np.kron(x, k),
    lambda x, k: np.outer(k, x), lambda x, k: np.tensordot(x, k, 0),
    lambda x, k: np.linalg.multi_dot([x, k]), lambda x, k: np.einsum("i,->i", x, k),
    lambda x, k: np.multiply.outer(x, k), lambda x, k: np.true_divide.outer(k, x),
    lambda x, k: np.append(x, k), lambda x, k: np.append(k, x), lambda x, k: np.append(x, [k]),
    lambda x, k: np.geomspace(x, k, 3), lambda x, k: np.geomspace(k, x, 3, dtype=np.float32),
    lambda x, k: np.geomspace(x, x, 3), lambda x, k: np.linspace(x, k, 3),
    lambda x, k: np.polyval([1, k], x), lambda x, k: np.polyval(x, k),
    lambda x, k: np.polyval(x, x),
    lambda x, k: np.polynomial.polynomial.polyval(k, x), lambda x, k: np.cov(x, [1, k, 3]),
    lambda x, k: np.polynomial.polynomial.polyval([k], x), lambda x, k: np.cross([k, 2, 3], x),
    lambda x, k: np.concatenate((x, k), axis=None), lambda x, k: np.hstack((x, k)),
    lambda x, k: np.where(x > 1, x, k), lambda x, k: np.isclose(x, k),
    lambda x, k: np.isclose(k, x),
    lambda x, k: np.angle(x, True), lambda x, k: np.angle([x[0], k]),
    lambda x, k: np.percentile(x, k), lambda x, k: np.nanpercentile(x, k),
    lambda x, k: np.percentile(x, [k]), lambda x, k: np.quantile(x, k - k),
    lambda x, k: np.nanmax([x[0], k]), lambda x, k: np.linalg.matrix_rank(x),
    lambda x, k: np.histogram(x, weights=[k, k, k]), lambda x, k: np.polyadd(x, k),
    lambda x, k: np.isneginf(x, np.empty_like(x)), lambda x, k: np.isposinf(x),
]  # fmt: skip


@pytest.mark.parametrize("code", "? b B e f".split())
@pytest.mark.parametrize("number", [2.5, 2, True])
def test_a_number_beside_an_array_is_weak_only_where_numpy_computes_with_it_as_it_is(
    number: Any, code: str
) -> None:
    x = np.array([1, 2, 3]).astype(code)
    for function in BY_ARRAYS:
        for args, call in (((x, number), function), ((x,), lambda x, f=function: f(x, number))):
            if not isinstance(outcome(call, args)[0], Exception):
                assert_same(call, *args)


def test_a_list_beside_an_array_brings_its_own_dtype() -> None:
    for code in "befF":
        x = np.array([1, 2, 3]).astype(code)
        for row in ([1, 2, 3], [1.5, 2, 3], [True, False, True]):
            for function in (np.dot, np.inner, np.vdot, np.kron, np.outer, np.append, np.polyval):
                assert_same(lambda x, f=function, row=row: (f(x, row), f(row, x)), x)
