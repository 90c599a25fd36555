"""`tm.switch` and `tm.map`: compiled, plain, differentiated, for many lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu
X = np.linspace(0.1, 2.0, 7)
MATRICES = np.random.default_rng(0).standard_normal((5, 3, 4))


def scaled(x: Any) -> Any:
    return x * 2.5 - np.abs(x - 1)


BRANCHES = [np.sin, np.cos, scaled, np.exp, lambda x: x**3]
SLOPES = [np.cos, lambda x: -np.sin(x), lambda x: 2.5 - np.sign(x - 1), np.exp, lambda x: 3 * x**2]


def switched(k: Any, x: Any) -> Any:
    return tm.switch(k, BRANCHES, x)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_the_branch_of_the_index_runs(count: int) -> None:
    ran: list[int] = []

    def branch(at: int) -> Callable[..., Any]:
        def run(x: Any) -> Any:
            tm.print("{}", at)
            ran.append(at)
            return BRANCHES[at](x)

        return run

    branches = [branch(at) for at in range(count)]
    compiled = tm.jit(lambda k, x: tm.switch(k, branches, x))
    for k in [*range(-count, count)]:
        np.testing.assert_allclose(compiled(k, X), BRANCHES[:count][k](X), rtol=1e-15)
        ran.clear()
        np.testing.assert_array_equal(tm.switch(k, branches, X), BRANCHES[:count][k](X))
        assert ran == [k % count], "the others are not run"
    assert len(compiled.dispatcher.versions) == 1
    for k in (count, -count - 1):
        for function in (compiled, lambda k, x: tm.switch(k, branches, x)):
            with pytest.raises(IndexError):
                function(k, X)


def test_only_the_branch_that_is_taken_writes_and_fails() -> None:
    total = tm.Variable(np.zeros(()))

    def add(x: Any) -> Any:
        total.assign_add(x)
        return x

    def fail(x: Any) -> Any:
        return np.arange(3.0)[np.int64(x) + 3] + x

    compiled = tm.jit(lambda k, x: tm.switch(k, [add, fail, np.negative], x))
    assert compiled(2, 4.0) == -4.0
    assert compiled(0, 4.0) == 4.0
    with pytest.raises(IndexError):
        compiled(1, 4.0)
    assert total.read() == 4.0


def test_switch_has_gradients_tangents_and_lanes() -> None:
    for k, slope in enumerate(SLOPES):
        loss = lambda x, k=k: switched(tm.stop_gradient(np.int64(k)) + 0, x).sum()
        np.testing.assert_allclose(tm.grad(loss)(X), slope(X), rtol=1e-14)
        _, tangent = tm.jvp(lambda x, k=k: switched(k, x), (X,), (np.ones_like(X),))
        np.testing.assert_allclose(tangent, slope(X), rtol=1e-14)
    by_argument = tm.jit(tm.grad(lambda x, k: switched(k, x).sum()))
    for k, slope in enumerate(SLOPES):
        np.testing.assert_allclose(by_argument(X, k), slope(X), rtol=1e-14)
    ks = np.arange(7) % 5
    want = [BRANCHES[k](x) for k, x in zip(ks, X)]
    np.testing.assert_allclose(tm.vmap(switched)(ks, X), want, rtol=1e-14)


@pytest.mark.parametrize("k", [1.5, np.array([1, 2]), "1", None])
def test_an_index_is_one_integer(k: Any) -> None:
    with pytest.raises((tm.TracemillError, TypeError)):
        tm.switch(k, BRANCHES, X)
    with pytest.raises((tm.TracemillError, TypeError)):
        tm.jit(switched)(k, X)


def test_switch_says_what_does_not_fit() -> None:
    with pytest.raises(tm.TracemillError, match="needs a branch"):
        tm.switch(0, [], X)
    with pytest.raises(tm.TracemillError, match=r"TM260.*\n.*f64\[\].*f64\[n\]"):
        tm.jit(lambda k, x: tm.switch(k, [np.sum, np.sin], x))(0, X)


def of_a_matrix(m: Any) -> Any:
    return {"norm": np.linalg.norm(m), "row": m.sum(axis=0), "many": (m > 0).sum()}


@pytest.mark.parametrize("compiled", [True, False])
def test_map_stacks_what_each_row_gives(compiled: bool) -> None:
    mapped = (tm.jit if compiled else lambda f: f)(lambda ms: tm.map(of_a_matrix, ms))
    for count in (5, 1, 3):
        got = mapped(MATRICES[:count])
        want = [of_a_matrix(m) for m in MATRICES[:count]]
        for key, stack in got.items():
            np.testing.assert_allclose(stack, [each[key] for each in want], rtol=1e-14)
    empty = mapped(MATRICES[:0])
    assert {k: v.shape for k, v in empty.items()} == {"norm": (0,), "row": (0, 4), "many": (0,)}
    if compiled:
        assert len(mapped.dispatcher.versions) == 1


def test_map_goes_over_a_nest_and_has_gradients_and_lanes() -> None:
    def f(pair: Any) -> Any:
        return tm.map(lambda at: np.sin(at["a"]) @ at["b"].T, pair)

    pair = {"a": MATRICES, "b": MATRICES + 1}
    want = np.stack([np.sin(a) @ b.T for a, b in zip(pair["a"], pair["b"])])
    np.testing.assert_allclose(tm.jit(f)(pair), want, rtol=1e-13)
    slope = tm.grad(lambda ms: tm.map(lambda m: np.sin(m).sum(), ms).sum())(MATRICES)
    np.testing.assert_allclose(slope, np.cos(MATRICES), rtol=1e-14)
    sums = tm.vmap(lambda ms: tm.map(np.sum, ms))(MATRICES)
    np.testing.assert_allclose(sums, MATRICES.sum(-1), rtol=1e-14)


def test_map_refuses_what_has_no_rows() -> None:
    for run in (tm.map, tm.jit(lambda f, x: tm.map(np.sin, x))):
        with pytest.raises(tm.TracemillError, match="first axis"):
            run(np.sin, 1.0)
    with pytest.raises(tm.TracemillError, match="rows together"):
        tm.map(lambda pair: pair[0] + pair[1], (np.ones(3), np.ones(4)))
