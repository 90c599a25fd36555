"""Gradients through loops of which only the run knows how many trips they make.

Loops are compared with finite differences of themselves, for few trips and for more than are kept
at once (`KEPT`), and with what is known of them.

Not here: loops over sizes (test_python_loop_gradients.py), derivatives forwards (test_catalogue).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.transforms.unknown_trips import KEPT

pytestmark = pytest.mark.cpu
X = np.array([1.7, 0.9, 2.1])


def in_each_other(x: Any, n: Any) -> Any:
    s = x * 0.1
    for i in range(n):
        for _ in range(i % 5 * 2):
            s = s + np.sin(s) * 0.01 * x
    return (s * s).sum()


def left_by_a_break(x: Any, n: Any) -> Any:
    s, k = x, 0
    while k < n:
        s = s * 1.01 + np.cos(x)
        k += 1
        if s.sum() > 30:
            break
    return (s**2).sum()


def left_by_a_return(x: Any, n: Any) -> Any:
    s = x
    for _ in range(n):
        s = np.tanh(s) + x
        if s[0] > 2.6:
            return (s * s).sum()
    return s.sum()


def written(x: Any, n: Any) -> Any:
    a = np.zeros(40)
    for i in range(n):
        a[i % 40] = a[(i + 3) % 40] * 0.5 + x[i % 3]
    return (a * np.arange(40)).sum()


def a_matrix_again_and_again(x: Any, n: Any) -> Any:
    m = np.eye(3) * x
    v = np.ones(3)
    for _ in range(n):
        v = np.tanh(m @ v + x)
    return v @ v


def begun_later(x: Any, n: Any) -> Any:
    s, k = x, 1
    for i in range(5, n):
        s = s + x * k * 0.001
        k = k + i
    return s.sum()


def a_while_in_a_while(x: Any, n: Any) -> Any:
    s, t = x.sum(), 0
    while t < n:
        u = s
        while u > 1:
            u = u / 2
        s = s + u * 0.3
        t += 1
    return s * s


def until_it_converges(x: Any, n: Any) -> Any:
    y = np.ones(3)
    while np.abs(y * y - x).max() > 1e-10:
        y = (y + x / y) / 2
    return (y * np.arange(1, 4)).sum() + n


def checked(x: Any, n: Any) -> Any:
    s = x
    for i in range(n):
        if s.sum() < -1e9:
            raise ValueError("no")
        s = s * 0.99 + x[i % 3]
    return s.sum()


LOOPS = [in_each_other, left_by_a_break, left_by_a_return, written, a_matrix_again_and_again,
         begun_later, a_while_in_a_while, until_it_converges, checked]  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS, ids=lambda f: f.__name__)
def test_against_finite_differences(loop: Callable[..., Any]) -> None:
    compiled, slope = tm.jit(loop), tm.jit(tm.grad(loop))
    for n in (0, 1, 3, KEPT, KEPT + 1, 2 * KEPT + 5):
        want = [
            (float(compiled(X + step, n)) - float(compiled(X - step, n))) / 2e-6
            for step in np.eye(3) * 1e-6
        ]
        np.testing.assert_allclose(slope(X, n), want, rtol=2e-5, atol=1e-6)
    assert len(slope.explain_recompiles()) == 1


def power(x: Any, n: Any) -> Any:
    y = x * 1.0
    for _ in range(n):
        y = y * x
    return y


def test_more_trips_than_can_be_kept() -> None:
    n = KEPT**2 * 3 + 7
    np.testing.assert_allclose(tm.grad(power)(1.0001, n), (n + 1) * 1.0001**n, rtol=1e-11)


def test_memory_does_not_grow_with_the_trips() -> None:
    def steps(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = np.sin(x) * 0.9
        return x.sum()

    lowered = tm.jit(tm.grad(steps)).lower(np.ones(1000), 3)
    assert lowered.plan.peak_bytes(n=1000) < (2 * KEPT + 20) * 8000


@pytest.mark.parametrize("n", [1, 5, 40])
def test_derivatives_of_second_order(n: int) -> None:
    want = (n + 1) * n * 1.1 ** (n - 1)
    np.testing.assert_allclose(tm.grad(tm.grad(power))(1.1, n), want, rtol=1e-12)
    forwards = tm.jvp(lambda x: tm.grad(power)(x, n), (1.1,), (1.0,))[1]
    np.testing.assert_allclose(forwards, want, rtol=1e-12)


def test_lanes_make_trips_of_their_own() -> None:
    x, n = np.array([1.1, 1.2, 2.0]), np.array([1, 3, 5])
    slopes = tm.vmap(tm.grad(power), in_axes=(0, 0))(x, n)
    np.testing.assert_allclose(slopes, (n + 1) * x**n, rtol=1e-12)

    def root(a: Any) -> Any:
        x = a
        while np.abs(x * x - a) > 1e-12:
            x = (x + a / x) / 2
        return x

    a = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(tm.vmap(tm.grad(root))(a), [1, 1 / 4, 1 / 6], rtol=1e-10)


def test_complex_and_narrow_numbers() -> None:
    def turned(x: Any, n: Any) -> Any:
        w = x * (1 + 0.1j)
        for _ in range(n):
            w = w * (0.9 + 0.2j) + x
        return np.abs(w).sum()

    up, down = (turned(X[0] + step, 9) for step in (1e-6, -1e-6))
    np.testing.assert_allclose(tm.grad(turned)(X, 9)[0], (up - down) / 2e-6, rtol=1e-6)
    narrow = tm.grad(a_matrix_again_and_again)(X.astype(np.float32), 50)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, tm.grad(a_matrix_again_and_again)(X, 50), rtol=1e-4)


def test_training_through_a_number_of_steps_that_changes() -> None:
    w = tm.Variable(np.ones(3), name="w_of_unknown_trips")

    @tm.jit
    def step(x: Any, n: Any) -> Any:
        h = x
        for _ in range(n):
            h = np.tanh(h * w + x)
        loss = ((h - 0.9) ** 2).sum()
        (slope,) = tm.gradients(loss, [w])
        w.assign_sub(0.1 * slope)
        return loss

    losses = [float(step(X - 1.5, n)) for n in (3, 5) * 20]
    assert losses[-1] < 0.8 * losses[1]
    assert len(step.explain_recompiles()) == 1


def test_a_gradient_has_the_parameters_of_its_function() -> None:
    def scaled(x: Any, n: Any = 2, *, scale: Any = 3.0) -> Any:
        return scale * power(x, n)

    slope = tm.jit(tm.grad(scaled), static_argnames="n")
    assert slope(2.0) == 3 * 3 * 2.0**2
    assert slope(2.0, n=3) == slope(x=2.0, n=3) == 3 * 4 * 2.0**3
    assert tm.value_and_grad(scaled)(2.0, scale=1.0) == (8.0, 12.0)
    with pytest.raises(TypeError, match="has no parameter named 'm'"):
        tm.jit(tm.grad(scaled), static_argnames="m")
