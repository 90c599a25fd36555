"""Under `disable_jit` compiled functions are the plain Python they were, whatever was compiled.

Not here: what control flow and devices do in it (with their tests).
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu
X = np.arange(9.0).reshape(3, 3)


class Model:
    """A method to compile."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    @tm.jit
    def doubled(self, x: Any) -> Any:
        self.seen.append(1)
        return x * 2


def test_a_function_that_was_compiled_runs_as_python() -> None:
    ran = []

    @tm.jit
    def f(x: Any, *, by: float = 2.0) -> Any:
        ran.append(float(x[0, 0]) if jit_is_off[0] else None)
        return x * by

    jit_is_off = [False]
    for keywords in ({}, {"by": 3.0}):
        want = X * keywords.get("by", 2.0)
        np.testing.assert_array_equal(f(X, **keywords), want)
        ran.clear()
        jit_is_off[0] = True
        with tm.disable_jit(), tm.disable_jit():
            np.testing.assert_array_equal(f(X, **keywords), want)
        assert ran == [0.0]
        jit_is_off[0] = False
        ran.clear()
        np.testing.assert_array_equal(f(X, **keywords), want)
        assert ran != [0.0]


def test_methods_and_functions_of_any_number_of_arguments_too() -> None:
    kinds = []

    @tm.jit
    def total(*parts: Any) -> Any:
        kinds.append(np.sum)
        return sum(part.sum() for part in parts)

    assert total(X, X) == 72
    kinds.clear()
    with tm.disable_jit():
        assert total(X, X) == 72
    assert kinds
    model = Model([])
    np.testing.assert_array_equal(model.doubled(X), X * 2)
    model.seen.clear()
    with tm.disable_jit():
        np.testing.assert_array_equal(model.doubled(X), X * 2)
    assert len(model.seen) == 1


def test_other_threads_go_on_with_compiled_code() -> None:
    ran = []

    @tm.jit
    def f(x: Any) -> Any:
        ran.append(1)
        return x + 1

    f(X)
    ran.clear()
    results: list[Any] = []

    def work() -> None:
        for _ in range(50):
            results.append(f(X))

    with tm.disable_jit():
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not ran
        f(X)
        assert ran == [1]
    assert len(f.explain_recompiles()) == 1
    for result in results:
        np.testing.assert_array_equal(result, X + 1)


@pytest.mark.parametrize(
    "function",
    [
        tm.nn.softmax,
        tm.special.erf,
        lambda x: tm.nn.conv(x[None, None], x[None, None, :2, :2]),
        lambda x: tm.top_k(x, 2)[0],
        lambda x: tm.vmap(lambda row: row * row.sum())(x),
        lambda x: tm.grad(lambda v: (v * v).sum())(x),
        lambda x: tm.hessian(lambda v: (v * v * v).sum())(x[0]),
        lambda x: tm.scan(lambda c, v: (c + v, c), x[0], x)[0],
        lambda x: tm.random.Generator(3).normal((4,)) + x[0, 0],
    ],
    ids=["softmax", "erf", "conv", "top_k", "vmap", "grad", "hessian", "scan", "random"],
)
def test_functions_of_the_library_work_in_it(function: Any) -> None:
    compiled = tm.jit(lambda x: function(x))
    want = function(X)
    np.testing.assert_allclose(compiled(X), want, rtol=1e-12)
    with tm.disable_jit():
        np.testing.assert_allclose(compiled(X), want, rtol=1e-12)


def test_gradients_of_values_need_a_graph_and_say_so() -> None:
    @tm.jit
    def slope(x: Any) -> Any:
        return tm.gradients((x * x).sum(), x)

    np.testing.assert_array_equal(slope(X), 2 * X)
    with tm.disable_jit(), pytest.raises(tm.TracemillError, match=r"tm\.value_and_grad"):
        slope(X)
