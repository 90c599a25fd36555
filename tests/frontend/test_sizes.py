"""Sizes stay symbolic; what Python code asks about them is decided by the example and guarded."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from traced import assert_equal, assert_same, trace_function
from tracemill.compiler.dims import Dim
from tracemill.tracing.shapes import choose_shapes


def guards(function: Any, *args: Any) -> list[str]:
    return [guard.text for guard in trace_function(function, *args).result.guards]


def test_size_one_and_small_inner_axes_are_numbers_all_others_symbols() -> None:
    chosen, hints, places = choose_shapes({0: (5, 3, 1), 2: (1, 8), 3: (0, 784)})
    n, m, k, p = map(Dim.symbol, "nmkp")
    assert chosen == {0: (n, 3, 1), 2: (1, m), 3: (k, p)}
    assert hints == {"n": 5, "m": 8, "k": 0, "p": 784}
    assert places == {"n": (0, 0), "m": (2, 1), "k": (3, 0), "p": (3, 1)}
    assert choose_shapes({0: (5, 3)}, pinned=[(0, 0)], freed=[(0, 1)])[0] == {0: (5, n)}


def test_sizes_that_must_be_equal_become_one_symbol() -> None:
    call = trace_function(lambda x, y: x + y, np.arange(5.0), np.ones(5))
    assert [guard.text for guard in call.result.guards] == ["n == m"]
    assert str(call.result.graph.params[1].type) == "f64[n]"
    assert call.broken_guard((np.ones(6), np.ones(7))) == "n == m"
    assert_equal(call(np.ones(9), np.ones(9)), np.full(9, 2.0))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x, y: x * 2 + x.sum(), []),
        (lambda x, y: np.zeros(len(x)) + np.arange(x.shape[0]), []),
        (lambda x, y: x.mean() + x.size / 2, []),
        (lambda x, y: x[1:-1], ["n >= 2"]),
        (lambda x, y: x[::-1] + x[::2].sum(), []),
        (lambda x, y: x[3], ["n >= 4"]),
        (lambda x, y: x[-1], ["n >= 1"]),
        (lambda x, y: x if len(x) > 3 else -x, ["n >= 4"]),
        (lambda x, y: x if x.shape == (6,) else -x, ["n == 6"]),
        (lambda x, y: x if x.shape[0] == y.shape[0] else -x, ["n != m"]),
        (lambda x, y: [x * i for i in range(len(y))], ["m == 2"]),
        (lambda x, y: sum(v for v in y), ["m == 2"]),
        (lambda x, y: x[: len(x) // 2], []),
        (lambda x, y: x.reshape(-1, 2), ["(n % 2) == 0"]),
        (lambda x, y: x.reshape(len(x), 1) * y, []),
        (lambda x, y: x[:-1] + y[0], ["m >= 1", "n >= 1"]),
        (lambda x, y: np.concatenate([x, y]).reshape(x.size + y.size), []),
        (lambda x, y: x.max(), ["n != 0"]),
        (lambda x, y: {f"{x.shape}": x}, ["n == 6"]),
    ],
)
def test_only_what_python_asks_is_guarded(function: Any, expected: list[str]) -> None:
    x, y = np.arange(6.0), np.arange(2.0)
    assert_same(function, x, y)
    found = guards(function, x, y)
    assert sorted(found) == sorted(expected), found


def test_a_guarded_relation_is_not_asked_twice() -> None:
    def function(x: Any) -> Any:
        total = 0.0
        for _ in range(5):
            total = total + x[1:-1].sum() + x[2:-2].sum() + x[0]
        return total

    assert guards(function, np.arange(9.0)) == ["n >= 4"]


def test_one_trace_serves_other_sizes() -> None:
    def function(x: Any, w: Any) -> Any:
        out = np.zeros((x.shape[0], w.shape[1]))
        out[:, 1:] = (x @ w)[:, 1:] / len(x)
        pad = np.pad(out, ((0, 0), (1, 0)))
        return np.concatenate([pad, np.full((1, pad.shape[1]), x.shape[0])]), out.var(axis=0)

    call = trace_function(function, np.ones((9, 10)), np.ones((10, 12)))
    for n, k, m in ((3, 8, 9), (50, 9, 20), (8, 30, 8)):
        x, w = np.random.default_rng(n).normal(size=(n, k)), np.ones((k, m))
        assert_equal(call(x, w), function(x, w))


def test_a_derived_size_of_one_broadcasts_with_a_guard() -> None:
    def function(x: Any, y: Any) -> Any:
        return x[1:] + y

    assert_same(function, np.arange(2.0), np.arange(5.0))
    assert_same(function, np.arange(6.0), np.arange(5.0))


def test_sizes_returned_are_computed_from_each_call() -> None:
    call = trace_function(lambda x: (x.shape, x.size * 2 + 1, len(x[1:])), np.ones((4, 9)))
    assert call(np.ones((7, 30))) == ((7, 30), 421, 6)


def test_integer_arithmetic_on_sizes_is_python_s() -> None:
    def function(x: Any) -> Any:
        n, m = x.shape
        values = (n + m, n - m, 2 * n, n // 3, n % 3, -n, abs(n - m), divmod(n, 4), n**2, 3 - n)
        tests = (n > m, n == 9, n >= 2 * m, bool(n), n != m, min(n, m), max(n, 3))
        return values, tests, n / 2, x * n, np.sqrt(n), [0] * n, isinstance(n, int), f"{n}"

    got = trace_function(function, np.ones((9, 10)))(np.ones((9, 10)))
    wanted = function(np.ones((9, 10)))
    assert_equal(got[:5], wanted[:5])
    assert got[5:7] == wanted[5:7]


def test_captured_and_shaped_sizes_make_arrays() -> None:
    assert_same(
        lambda x: (
            np.eye(len(x)),
            np.tri(x.shape[0], x.shape[1]),
            np.linspace(0, 1, x.shape[0]),
            np.arange(2, x.shape[0] + 2, 3),
            np.ones((2, *x.shape)),
            np.full_like(x, 2, shape=(x.shape[1], 2)),
            np.tile(x, (1, 2)),
            np.repeat(x, x.shape[1], axis=0),
            np.indices(x.shape[:1]),
            np.diag(x[0], 1),
            np.roll(x[0], x.shape[0]),
        ),
        np.arange(90.0).reshape(9, 10),
    )


def test_what_no_size_reaches_is_decided_without_a_guard() -> None:
    def asked(x: Any) -> Any:
        n = len(x)
        return n < 2**63, n <= 2**63, n < 2**64, n == 2**63, n != 2**70, n > -(2**63), n >= 2**64

    assert_same(asked, np.ones(9))
    assert guards(asked, np.ones(9)) == []


def test_a_size_follows_those_it_was_said_to_be() -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        if len(z) != 2 * len(y):
            return z
        return (x + y, z.reshape(2, -1) * x, np.zeros(len(z)))

    args = np.arange(4.0), np.ones(4), np.arange(8.0)
    call = trace_function(f, *args)
    assert [str(p.type) for p in call.result.graph.params] == ["f64[n]", "f64[n]", "f64[2*n]"]
    assert call.result.replaced == {"k": 2 * Dim.symbol("n"), "m": Dim.symbol("n")}
    larger = np.arange(7.0), np.ones(7), np.arange(14.0)
    assert_equal(call(*larger), f(*larger))
    assert call.broken_guard((np.ones(7), np.ones(7), np.ones(13)))


def test_tracing_many_arrays_grows_with_their_number() -> None:
    def f(x: Any, *layers: Any) -> Any:
        for w, s in zip(layers[::2], layers[1::2]):
            x = x + np.tanh(x @ w - s)
        return x

    def work(count: int) -> int:
        events = 0

        def see(frame: object, event: str, arg: object) -> None:
            nonlocal events
            events += event in ("call", "c_call")

        args = [np.ones((15, 16)), *[np.ones((16, 16)), np.ones(16)] * count]
        sys.setprofile(see)
        try:
            trace_function(f, *[arg.copy() for arg in args])
        finally:
            sys.setprofile(None)
        return events

    work(2)
    assert work(160) <= 8.5 * work(20)
