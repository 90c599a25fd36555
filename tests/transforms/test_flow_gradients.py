"""Gradients through branches and loops, against the same program with Python's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

Array = Any
R = np.random.default_rng(3)
ROWS = R.standard_normal((6, 3))
W = R.standard_normal((3, 3)) / 2
B = R.standard_normal(3)


def plain_scan(body: Any, carry: Any, xs: Any, reverse: bool = False) -> Any:
    """tm.scan of arrays, unrolled."""
    made = []
    for row in xs[::-1] if reverse else xs:
        carry, y = body(carry, row)
        made.append(y)
    return carry, np.stack(made[::-1] if reverse else made)


def plain_fori(lower: int, upper: int, body: Any, value: Any) -> Any:
    for i in range(lower, upper):
        value = body(i, value)
    return value


def plain_cond(test: bool, if_true: Any, if_false: Any, *operands: Any) -> Any:
    return np.where(test, if_true(*operands), if_false(*operands))


class Own:
    """The four as the graph has them."""

    scan, fori_loop, cond = tm.scan, tm.fori_loop, tm.cond


class Plain:
    """The four as Python has them: straight lines while a function is traced."""

    scan, fori_loop, cond = plain_scan, plain_fori, plain_cond


def recurrent(flow: Any, x: Array, w: Array, b: Array) -> Array:
    def step(h: Array, row: Array) -> tuple[Array, Array]:
        h = np.tanh(h @ w + row * b)
        return h, h * row

    h, ys = flow.scan(step, b * 0.5, x)
    return (ys**2).sum() + h.sum()


def backwards(flow: Any, x: Array, w: Array, b: Array) -> Array:
    def step(h: Array, row: Array) -> tuple[Array, Array]:
        return np.sin(h) * row + b, h @ w

    h, ys = flow.scan(step, b, x, reverse=True)
    return ys.sum() * h[0]


def only_carried(flow: Any, x: Array, w: Array, b: Array) -> Array:
    return flow.scan(lambda h, row: (h * row + x[0] @ w, row), b, x)[0].sum()


def only_stacked(flow: Any, x: Array, w: Array, b: Array) -> Array:
    return np.exp(flow.scan(lambda h, row: (h + 1, row @ w * h), 1.0, x)[1]).sum() + b[0]


def linear(flow: Any, x: Array, w: Array, b: Array) -> Array:
    return (flow.scan(lambda h, row: (h + row, h), b, x)[1] @ w).sum()


def powers(flow: Any, x: Array, w: Array, b: Array) -> Array:
    return flow.fori_loop(0, 4, lambda i, v: np.tanh(v @ w) + b * i, x).sum()


def by_size(flow: Any, x: Array, w: Array, b: Array) -> Array:
    return flow.fori_loop(1, len(x), lambda i, v: np.cos(v) * x[i] + v @ w, b).sum()


def counted_down(flow: Any, x: Array, w: Array, b: Array) -> Array:
    return (flow.fori_loop(5, 2, lambda i, v: v * w.sum(), x) * b).sum()


def nested_loops(flow: Any, x: Array, w: Array, b: Array) -> Array:
    def outer(h: Array, row: Array) -> tuple[Array, Array]:
        h = flow.fori_loop(0, 3, lambda i, v: np.sin(v * row) @ w + i, h)
        return h, h.sum()

    return flow.scan(outer, b, x)[1].sum()


def branch_in_loop(flow: Any, x: Array, w: Array, b: Array) -> Array:
    def step(h: Array, row: Array) -> tuple[Array, Array]:
        h = flow.cond(h.sum() > 0, lambda v: v * row - b, lambda v: np.exp(v) @ w, h)
        return h, h

    return flow.scan(step, b, x)[1].sum()


def loop_in_branch(flow: Any, x: Array, w: Array, b: Array) -> Array:
    def slow(v: Array) -> Array:
        return flow.scan(lambda h, row: (h * row + b, h), v, x)[1].sum()

    return flow.cond(w[0, 0] > 0, slow, lambda v: (v**3).sum(), b) + flow.cond(
        w[0, 0] <= 0, slow, lambda v: (v**3).sum(), b
    )


def guarded(flow: Any, x: Array, w: Array, b: Array) -> Array:
    def step(h: Array, row: Array) -> tuple[Array, Array]:
        safe = np.where(row > 0, np.sqrt(row * 1.0), 0.0)
        return h + safe, safe

    return flow.scan(step, b, np.where(x > 0, x, 0.0))[0].sum() + w.sum()


PROGRAMS: list[Callable[..., Array]] = [
    recurrent, backwards, only_carried, only_stacked, linear, powers, by_size, counted_down,
    nested_loops, branch_in_loop, loop_in_branch, guarded,
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_gradient_is_that_of_the_unrolled_program(program: Any, dtype: str) -> None:
    both = [
        tm.jit(tm.value_and_grad(lambda x, w, b, flow=flow: program(flow, x, w, b), (0, 1, 2)))
        for flow in (Own, Plain)
    ]
    for rows in (6, 4):
        given = [item.astype(dtype) for item in (ROWS[:rows], W, B)]
        (value, slopes), (expected, wanted) = (f(*given) for f in both)
        tolerance = 1e-10 if dtype == "f8" else 2e-3
        np.testing.assert_allclose(value, expected, rtol=tolerance)
        for slope, want in zip(slopes, wanted):
            assert slope.dtype == want.dtype
            np.testing.assert_allclose(slope, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("program", [recurrent, backwards, nested_loops, branch_in_loop])
def test_a_gradient_is_the_slope(program: Any) -> None:
    slope = tm.grad(lambda b: program(Own, ROWS, W, b))(B)
    for at in range(3):
        step = np.eye(3)[at] * 1e-6
        up, down = (program(Plain, ROWS, W, B + sign * step) for sign in (1, -1))
        np.testing.assert_allclose(slope[at], (up - down) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", [recurrent, powers, branch_in_loop, nested_loops])
def test_a_gradient_has_a_gradient(program: Any) -> None:
    def norm(flow: Any) -> Any:
        inner = tm.grad(lambda b: program(flow, ROWS, W, b))
        return tm.jit(tm.grad(lambda b: (inner(b) ** 2).sum()))(B)

    np.testing.assert_allclose(norm(Own), norm(Plain), rtol=1e-8, atol=1e-10)


def test_a_complex_carry() -> None:
    z = ROWS[0] + 1j * ROWS[1]

    def loss(flow: Any, z: Array) -> Array:
        h = flow.scan(lambda h, row: (h * row + z, h), z, ROWS)[0]
        return (h.real**2 + h.imag).sum()

    own, plain = (tm.grad(lambda z, flow=flow: loss(flow, z))(z) for flow in (Own, Plain))
    np.testing.assert_allclose(own, plain, rtol=1e-10)


def test_sizes_stay_open() -> None:
    slope = tm.jit(tm.grad(lambda x: recurrent(Own, x, W, B)))
    for rows in (1, 2, 5, 9, 30):
        x = R.standard_normal((rows, 3))
        want = tm.grad(lambda x: recurrent(Plain, x, W, B))(x)
        np.testing.assert_allclose(slope(x), want, rtol=1e-9, atol=1e-12)
    assert slope(np.ones((0, 3))).shape == (0, 3)


def test_prints_and_checks_happen_once(capfd: pytest.CaptureFixture[str]) -> None:
    def step(h: Array, row: Array) -> tuple[Array, Array]:
        tm.print("trip {}", row)
        return np.sin(h) * row, h

    tm.jit(tm.grad(lambda b: tm.scan(step, b, ROWS[:, 0])[0]))(1.0)
    assert capfd.readouterr().out.count("trip") == len(ROWS)


def test_a_training_loop_over_a_variable() -> None:
    def losses(flow: Any, name: str) -> list[float]:
        w = tm.Variable(W.copy(), name=name)

        @tm.jit
        def train(x: Array, target: Array) -> Array:
            def step(h: Array, row: Array) -> tuple[Array, Array]:
                h = np.tanh(h @ w.read() + row)
                return h, h

            loss = ((flow.scan(step, np.zeros(3), x)[1] - target) ** 2).mean()
            (slope,) = tm.gradients(loss, [w])
            w.assign_sub(0.3 * slope)
            return loss

        return [float(train(ROWS, np.tanh(ROWS[::-1]))) for _ in range(20)]

    own = losses(Own, "w_through_time")
    assert own[-1] < 0.9 * own[0]
    np.testing.assert_allclose(own, losses(Plain, "w_unrolled"), rtol=1e-9)


def doubled(x: Any) -> Any:
    """Something that has no gradient."""
    return tm.host_call(lambda v: v * 2 + 1, x, result=x)


def of_constants(b: Array, c: Array) -> Array:
    return (b * doubled(c.sum() ** 2)).sum()


def constants_in_trips(b: Array, c: Array) -> Array:
    def step(h: Array, row: Array) -> tuple[Array, Array]:
        nothing = 0 * tm.stop_gradient(h.sum())
        h = h * row / doubled(c[0] ** 2 + nothing)
        return h, h * b

    return tm.scan(step, b, ROWS)[1].sum()


def carried_constants(b: Array, c: Array) -> Array:
    def step(carry: Any, row: Array) -> Any:
        scale, time, h = carry
        return (time, doubled(time), h * row / scale), h

    return tm.scan(step, (1.0, 1.0, b), ROWS)[1].sum()


def carried_for_others(b: Array, c: Array) -> Array:
    def step(carry: Any, row: Array) -> Any:
        _, latest, h = carry
        return (doubled(latest), h.sum() ** 2, h * row), h

    return tm.scan(step, (1.0, 1.0, b), ROWS)[1].sum()


def constants_of_loops(b: Array, c: Array) -> Array:
    def step(carry: Any, row: Array) -> Any:
        total, h = carry
        return (total + tm.stop_gradient(c.sum() ** 2), h * row), h

    (total, _), ys = tm.scan(step, (1.0, b), ROWS)
    return ys.sum() * doubled(total)


def constants_of_branches(b: Array, c: Array) -> Array:
    chosen = tm.cond(c[0] > 0, lambda v: tm.stop_gradient(v), lambda v: v * 2, c)
    return (b * doubled((chosen**2).sum())).sum()


@pytest.mark.parametrize(
    "program", [of_constants, constants_in_trips, carried_constants, carried_for_others,
                constants_of_loops, constants_of_branches],
)  # fmt: skip
def test_no_gradient_is_asked_for_where_none_flows(program: Any) -> None:
    slope = tm.jit(tm.grad(lambda b: program(b, tm.stop_gradient(b))))(B)
    compiled = tm.jit(program)
    for at in range(3):
        step = np.eye(3)[at] * 1e-6
        up, down = (compiled(B + sign * step, B) for sign in (1, -1))
        np.testing.assert_allclose(slope[at], (up - down) / 2e-6, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kept", [(0,), (0, 1), (1, 2), (0, 1, 2), (2,)])
def test_carried_values_change_places(kept: tuple[int, ...]) -> None:
    def loss(flow: Any, b: Array) -> Array:
        def step(carry: Any, row: Array) -> Any:
            if flow is Own:
                p, q, s = carry["p"], carry["q"], carry["s"]
                return {"p": q, "q": s * row, "s": p + q}, p * row
            p, q, s = carry
            return (q, s * row, p + q), p * row

        start = (b, b * 2, np.ones(3))
        given = dict(zip("pqs", start)) if flow is Own else start
        carry, ys = flow.scan(step, given, ROWS)
        ends = [carry[name] for name in "pqs"] if flow is Own else carry
        return sum(((ends[at] ** 2).sum() for at in kept), ys.sum())

    own, plain = (tm.jit(tm.grad(lambda b, f=f: loss(f, b)))(B) for f in (Own, Plain))
    np.testing.assert_allclose(own, plain, rtol=1e-10)
