"""`checkpoint`, `custom_vjp` and `custom_jvp`: what derivatives make of them, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import GradientError

pytestmark = pytest.mark.cpu

X = np.linspace(0.1, 1.2, 4)


def block(x, w):
    for _ in range(4):
        x = np.tanh(x @ w)
    return x


def stacked(f):
    def loss(x, w):
        for _ in range(4):
            x = f(x, w)
        return (x**2).sum()

    return loss


# -- checkpoint


def test_a_checkpoint_changes_no_value(rng):
    x, w = rng.standard_normal((5, 3)), rng.standard_normal((3, 3))
    plain, kept = stacked(block), stacked(tm.checkpoint(block))
    np.testing.assert_allclose(kept(x, w), plain(x, w))
    np.testing.assert_allclose(tm.checkpoint(block)(x, w), block(x, w))
    for argnums in (0, 1):
        want = tm.grad(plain, argnums)(x, w)
        np.testing.assert_allclose(tm.grad(kept, argnums)(x, w), want, rtol=1e-12)
    small, wide = x[:1], w
    np.testing.assert_allclose(tm.hessian(kept)(small, wide), tm.hessian(plain)(small, wide))
    pushed = [tm.jvp(f, (x, w), (x, w))[1] for f in (plain, kept)]
    np.testing.assert_allclose(*pushed)
    rows = np.stack([x, 2 * x])
    mapped = [tm.vmap(tm.grad(f), (0, None))(rows, w) for f in (plain, kept)]
    np.testing.assert_allclose(*mapped)
    mapped = [
        tm.grad(lambda r, f=f: tm.vmap(f, (0, None))(r, w).sum())(rows) for f in (plain, kept)
    ]
    np.testing.assert_allclose(*mapped)


def test_a_checkpoint_keeps_less_for_the_gradient():
    x, w = np.ones((256, 64)), np.eye(64)
    plain, kept = (
        tm.jit(tm.grad(stacked(f))).lower(x, w).plan.peak_bytes(n=256, m=64)
        for f in (block, tm.checkpoint(block))
    )
    assert kept < 0.75 * plain


def test_what_a_checkpoint_uses_around_it_has_a_gradient():
    @tm.jit
    def slopes(x, w):
        def loss(x, w):
            return tm.checkpoint(lambda x: np.sin(x * w).sum())(x)

        return tm.grad(loss, (0, 1))(x, w)

    by_x, by_w = slopes(X, np.float64(2))
    np.testing.assert_allclose(by_x, 2 * np.cos(2 * X))
    np.testing.assert_allclose(by_w, (X * np.cos(2 * X)).sum())


def test_a_checkpoint_in_a_loop_and_a_loop_in_one():
    step = tm.checkpoint(lambda h, x: np.tanh(h * x + h))

    def inside(xs):
        return tm.scan(lambda h, x: (step(h, x), h), np.float64(0.5), xs)[0]

    plain = lambda xs: tm.scan(lambda h, x: (np.tanh(h * x + h), h), np.float64(0.5), xs)[0]
    want = tm.grad(plain)(X)
    np.testing.assert_allclose(tm.grad(inside)(X), want)
    np.testing.assert_allclose(tm.grad(tm.checkpoint(plain))(X), want)
    np.testing.assert_allclose(tm.grad(tm.checkpoint(inside))(X), want)


def test_effects_of_a_checkpoint_happen_once(capfd):
    count = tm.Variable(0)

    def f(x, i):
        count.assign_add(1)
        tm.print("{}", i)
        return np.sin(x)[i]

    slope = tm.grad(lambda x: tm.checkpoint(f)(x, 2))(X)
    np.testing.assert_allclose(slope, np.cos(X) * [0, 0, 1, 0])
    assert count.read() == 1
    assert capfd.readouterr().out == "2\n"
    keyword = tm.checkpoint(lambda x, *, scale: x * scale)
    np.testing.assert_array_equal(keyword(X, scale=2.0), X * 2)


# -- custom_vjp


@tm.custom_vjp
def scaled(x, y):
    return {"out": np.sin(x) * y, "n": 3}


scaled.defvjp(
    lambda x, y: (scaled(x, y), (x, y)),
    lambda kept, ct: (10 * ct["out"] * np.cos(kept[0]) * kept[1], (ct["out"] * 7).sum()),
)


def total(x, y=2.0):
    return scaled(x, y)["out"].sum()


def test_a_gradient_of_its_own_is_taken():
    np.testing.assert_allclose(scaled(X, 2.0)["out"], np.sin(X) * 2)
    assert scaled(X, 2.0)["n"] == 3
    np.testing.assert_allclose(tm.grad(total)(X), 20 * np.cos(X))
    np.testing.assert_allclose(tm.grad(lambda y: total(X, y))(2.0), 7 * X.size)
    np.testing.assert_allclose(tm.jit(tm.grad(lambda x: total(x * 2)))(X), 40 * np.cos(2 * X))


def test_second_order_goes_through_the_rule():
    twice = tm.grad(lambda x: tm.grad(total)(x).sum())
    np.testing.assert_allclose(twice(X), -20 * np.sin(X))


def test_a_rule_serves_lanes():
    each = lambda x: scaled(x, 2.0)["out"]
    np.testing.assert_allclose(tm.vmap(tm.grad(each))(X), 20 * np.cos(X))
    np.testing.assert_allclose(tm.grad(lambda x: tm.vmap(each)(x).sum())(X), 20 * np.cos(X))
    shared = lambda y: tm.vmap(lambda x, y: scaled(x, y)["out"], (0, None))(X, y).sum()
    np.testing.assert_allclose(tm.grad(shared)(2.0), 7 * X.size)
    np.testing.assert_allclose(tm.vmap(lambda x: scaled(x, 2.0)["out"])(X), 2 * np.sin(X))
    both = tm.vmap(lambda x: scaled(np.float64(0.5), x)["out"])
    np.testing.assert_allclose(tm.grad(lambda y: both(y).sum())(X), np.full(4, 7.0))


def test_a_rule_in_loops_and_branches():
    def looped(x):
        x = tm.fori_loop(0, 2, lambda i, x: scaled(x, 1.0)["out"], x)
        return tm.cond(x.sum() > 0, lambda x: scaled(x, 2.0)["out"], lambda x: x, x).sum()

    inner, outer = np.sin(X), np.sin(np.sin(X))
    want = 10 * np.cos(X) * 10 * np.cos(inner) * 20 * np.cos(outer)
    np.testing.assert_allclose(tm.grad(looped)(X), want)


def test_none_is_zero_and_integers_get_none():
    @tm.custom_vjp
    def f(x, n, y):
        return x[:n] * y

    f.defvjp(lambda x, n, y: (f(x, n, y), y), lambda y, ct: (np.concatenate([ct, ct]), None, None))
    _, pullback = tm.vjp(f, X, 2, 3.0)
    found = pullback(np.ones(2))
    np.testing.assert_array_equal(found[0], 1)
    assert found[1:] == (None, 0.0)


# -- custom_jvp


@tm.custom_jvp
def softplus(x):
    return np.log1p(np.exp(x))


softplus.defjvp(lambda x, dx: (softplus(*x), dx[0] * (1 - 1 / (1 + np.exp(x[0])))))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_a_derivative_of_its_own_serves_both_modes():
    value, tangent = tm.jvp(softplus, (X,), (2 * X,))
    np.testing.assert_allclose(value, np.log1p(np.exp(X)))
    np.testing.assert_allclose(tangent, 2 * X * sigmoid(X))
    loss = lambda x: softplus(x).sum()
    np.testing.assert_allclose(tm.grad(loss)(X), sigmoid(X))
    slope = sigmoid(X) * (1 - sigmoid(X))
    np.testing.assert_allclose(tm.hessian(loss)(X), np.diag(slope), atol=1e-15)
    np.testing.assert_allclose(tm.jacobian(softplus)(X), np.diag(sigmoid(X)))
    np.testing.assert_allclose(tm.vmap(tm.grad(softplus))(X), sigmoid(X))
    np.testing.assert_allclose(tm.grad(lambda x: tm.vmap(softplus)(x).sum())(X), sigmoid(X))
    np.testing.assert_allclose(tm.vmap(lambda x: tm.jvp(softplus, (x,), (1.0,))[1])(X), sigmoid(X))


def test_a_derivative_is_not_what_the_code_would_have():
    @tm.custom_jvp
    def rounded(x, y):
        return np.round(x) * y, x.size

    rounded.defjvp(lambda v, d: (rounded(*v), (d[0] * v[1] + np.round(v[0]) * d[1], None)))
    np.testing.assert_allclose(tm.grad(lambda x: rounded(x, 2.0)[0].sum())(X), 2)
    np.testing.assert_allclose(tm.grad(lambda y: rounded(X, y)[0].sum())(2.0), np.round(X).sum())
    _, (tangent, none) = tm.jvp(rounded, (X, 3.0), (X, 0.0))
    np.testing.assert_allclose(tangent, 3 * X)
    assert none is None


def test_a_derivative_through_a_while_loop_in_reverse():
    @tm.custom_jvp
    def root(a):
        x = a
        while np.abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x

    def rule(v, d):
        x = root(*v)
        return x, d[0] / (2 * x)

    root.defjvp(rule)
    np.testing.assert_allclose(tm.grad(root)(2.0), 0.5**1.5)
    np.testing.assert_allclose(tm.vmap(tm.grad(root))(X), 0.5 / np.sqrt(X))
    np.testing.assert_allclose(tm.grad(tm.grad(root))(2.0), -0.25 * 2**-1.5)
    np.testing.assert_allclose(tm.grad(tm.grad(tm.grad(root)))(2.0), 0.375 * 2**-2.5)


# -- refusals


def stated(kind, *rules):
    f = getattr(tm, kind)(lambda x: np.sin(x) * 1.0)
    getattr(f, f"def{kind.removeprefix('custom_')}")(*rules)
    return f


COUNT = tm.Variable(np.float64(0))
BAD = {
    "before it is stated": (lambda: tm.custom_vjp(np.sin)(X), r"TM120(.|\n)*defvjp\(forward"),
    "jvp before it is stated": (lambda: tm.custom_jvp(np.sin)(X), r"TM120(.|\n)*defjvp\(rule"),
    "no function": (lambda: stated("custom_jvp", 3), r"TM120(.|\n)*got 3"),
    "forwards": (
        lambda: tm.jvp(lambda x: scaled(x, 1.0)["out"], (X,), (X,)), r"TM120(.|\n)*custom_jvp"),
    "no pair": (
        lambda: stated("custom_vjp", lambda x: x, lambda k, c: (c,))(X), r"TM121(.|\n)*pair"),
    "jvp, no pair": (lambda: stated("custom_jvp", lambda x, d: d[0])(X), r"TM121(.|\n)*pair"),
    "another shape": (
        lambda: stated("custom_vjp", lambda x: (x, 0), lambda k, c: (c.sum(),))(X),
        r"TM121(.|\n)*a gradient has"),
    "no tuple": (
        lambda: stated("custom_vjp", lambda x: (x, 0), lambda k, c: c)(X),
        r"TM121(.|\n)*nested differently"),
    "another dtype": (
        lambda: stated("custom_jvp", lambda x, d: (x[0], d[0].astype(np.float32)))(X),
        r"TM121(.|\n)*a tangent has"),
    "another value": (
        lambda: stated("custom_jvp", lambda x, d: (x[0].sum(), d[0]))(X),
        r"TM121(.|\n)*its rule a"),
    "another nest": (
        lambda: stated("custom_jvp", lambda x, d: ((x[0],), d[0]))(X),
        r"TM121(.|\n)*nested differently"),
    "state": (
        lambda: stated("custom_vjp", lambda x: (COUNT.assign_add(1.0), (x, 0))[1],
                       lambda k, c: (c,))(X),
        r"TM120(.|\n)*the Variable"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused(name):
    run, text = BAD[name]
    with pytest.raises(GradientError, match=text):
        run()
