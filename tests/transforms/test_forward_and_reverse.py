"""`jvp`, `vjp` and `linearize`: values, composition, control flow, and what they refuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import GradientError

pytestmark = pytest.mark.cpu
STEP = 1e-6


def f(x, y):
    return np.sin(x) * y + (x * y).sum(), {"total": x.sum() * y}


def along(function, args, directions):
    """Central differences along directions, result by result."""
    up = function(*[a + STEP * d for a, d in zip(args, directions, strict=True)])
    down = function(*[a - STEP * d for a, d in zip(args, directions, strict=True)])
    return (np.asarray(up) - np.asarray(down)) / (2 * STEP)


def test_jvp_is_the_change_along_the_tangents(rng):
    x, y, dx, dy = rng.standard_normal(3), np.float64(1.3), rng.standard_normal(3), np.float64(0.7)
    value, tangent = tm.jvp(f, (x, y), (dx, dy))
    np.testing.assert_allclose(value[0], f(x, y)[0])
    first = along(lambda *a: f(*a)[0], (x, y), (dx, dy))
    np.testing.assert_allclose(tangent[0], first, rtol=1e-6)
    total = along(lambda *a: f(*a)[1]["total"], (x, y), (dx, dy))
    np.testing.assert_allclose(tangent[1]["total"], total, rtol=1e-6)


def test_vjp_is_the_transpose_of_jvp(rng):
    x, y, dx, dy = rng.standard_normal(3), np.float64(1.3), rng.standard_normal(3), np.float64(0.7)
    weights = (rng.standard_normal(3), {"total": np.float64(0.4)})
    value, pullback = tm.vjp(f, x, y)
    np.testing.assert_allclose(value[1]["total"], f(x, y)[1]["total"])
    gx, gy = pullback(weights)
    _, tangent = tm.jvp(f, (x, y), (dx, dy))
    forward = (weights[0] * tangent[0]).sum() + 0.4 * tangent[1]["total"]
    np.testing.assert_allclose((gx * dx).sum() + gy * dy, forward, rtol=1e-12)


def test_linearize_is_jvp_for_tangents_that_come_later(rng):
    x, y = rng.standard_normal(3), np.float64(0.4)
    value, change = tm.linearize(f, x, y)
    for _ in range(3):
        dx, dy = rng.standard_normal(3), np.float64(rng.standard_normal())
        want = tm.jvp(f, (x, y), (dx, dy))
        np.testing.assert_allclose(value[0], want[0][0])
        np.testing.assert_allclose(change(dx, dy)[0], want[1][0])

    @tm.jit
    def inside(x, y, dx):
        value, change = tm.linearize(f, x, y)
        return value, change(dx, 0.0), change(2 * dx, 0.0)

    value, once, twice = inside(x, y, dx)
    np.testing.assert_allclose(2 * once[0], twice[0])
    np.testing.assert_allclose(once[0], tm.jvp(f, (x, y), (dx, np.float64(0)))[1][0])


def test_a_derivative_asked_for_later_is_taken_at_the_arguments_of_then():
    x = np.ones(3)
    _, pullback = tm.vjp(lambda x: (x**3).sum(), x)
    x[:] = 7
    np.testing.assert_allclose(pullback(np.float64(1))[0], 3.0)


def test_a_function_that_writes_to_its_arguments_writes_to_its_own():
    def f(a, b):
        a *= b
        return a

    a, b = np.array([1.0, 2]), np.array([3.0, 5])
    assert np.array_equal(tm.jvp(f, (a, b), (b, a))[1], a * a + b * b)
    value, pullback = tm.vjp(f, a, b)
    np.testing.assert_array_equal(value, [3, 10])
    for found in (pullback(np.ones(2)), pullback(np.ones(2))):
        np.testing.assert_array_equal(found, [[3, 5], [1, 2]])
    assert np.array_equal(tm.linearize(f, a, b)[1](b, a), a * a + b * b)
    np.testing.assert_array_equal(a, [1, 2])


def test_modes_nest_in_each_other(rng):
    x = rng.uniform(0.5, 2, 4)
    cube = lambda x: (x**3).sum()
    ones = np.ones(4)
    np.testing.assert_allclose(tm.jvp(tm.grad(cube), (x,), (ones,))[1], 6 * x)
    directional = lambda x: tm.jvp(cube, (x,), (ones,))[1]
    np.testing.assert_allclose(tm.grad(directional)(x), 6 * x)
    np.testing.assert_allclose(tm.jvp(directional, (x,), (ones,))[1], 6 * x.sum())
    np.testing.assert_allclose(tm.jvp(tm.jit(tm.grad(cube)), (x,), (ones,))[1], 6 * x)
    twice = lambda x: tm.vjp(tm.grad(cube), x)[1](np.ones_like(x))[0]
    np.testing.assert_allclose(tm.jit(twice)(x), 6 * x)


def test_what_a_function_uses_besides_its_arguments_is_constant():
    @tm.jit
    def both(x):
        _, tangent = tm.jvp(lambda z: z * x, (x,), (np.ones_like(x),))
        return tangent, tm.vjp(lambda z: z * x, x)[1](np.ones_like(x))[0]

    for found in both(np.arange(1.0, 4.0)):
        np.testing.assert_array_equal(found, [1, 2, 3])


def newton(a):
    x = a
    while np.abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


def loops(a, xs):
    h, ys = tm.scan(lambda h, x: (np.tanh(h + x), h * x), a, xs)
    h = tm.fori_loop(0, 4, lambda i, h: h * a + i, h)
    return tm.cond(h > 100, lambda h: h * 2, lambda h: np.sin(h), h) + ys.sum()


def test_a_while_loop_has_a_forward_derivative():
    for function in (
        newton,
        lambda a: tm.while_loop(
            lambda c: np.abs(c[0] ** 2 - a) > 1e-12, lambda c: (0.5 * (c[0] + a / c[0]), c[1] + 1),
            (a, 0),
        )[0],
    ):  # fmt: skip
        value, tangent = tm.jvp(function, (np.float64(2),), (np.float64(1),))
        np.testing.assert_allclose([value, tangent], [2**0.5, 0.5**1.5])


def test_forward_mode_goes_through_control_flow(rng):
    a, xs = np.float64(0.8), rng.standard_normal(5)
    da, dxs = np.float64(0.3), rng.standard_normal(5)
    value, tangent = tm.jvp(loops, (a, xs), (da, dxs))
    np.testing.assert_allclose(value, loops(a, xs))
    np.testing.assert_allclose(tangent, along(loops, (a, xs), (da, dxs)), rtol=1e-6)
    slopes = tm.vjp(loops, a, xs)[1](np.float64(1))
    np.testing.assert_allclose(tangent, slopes[0] * da + (slopes[1] * dxs).sum())
    again = along(lambda *x: tm.jvp(loops, x, (da, dxs))[1], (a, xs), (da, dxs))
    twice = tm.jvp(lambda *x: tm.jvp(loops, x, (da, dxs))[1], (a, xs), (da, dxs))[1]
    np.testing.assert_allclose(twice, again, rtol=1e-5)


def test_a_value_that_a_loop_makes_depend_on_the_inputs_gets_a_tangent():
    def late(x):
        def body(i, carry):
            first, second, _ = carry
            return first + x, first * 1.0, second * 1.0

        return tm.fori_loop(0, 3, body, (np.zeros(2), np.zeros(2), np.zeros(2)))

    _, tangents = tm.jvp(late, (np.ones(2),), (np.ones(2),))
    np.testing.assert_array_equal(tangents, [[3, 3], [2, 2], [1, 1]])


def test_functions_that_write_and_keep_state():
    count = tm.Variable(np.float64(0))

    def f(x, out):
        out[0] = x[0] * 2
        count.assign_add(x.sum())
        y = x.copy()
        y[1:] *= x[:-1]
        return y, out

    x, out = np.array([1.0, 2, 3]), np.zeros(2)
    _, tangent = tm.jvp(f, (x, out), (np.ones(3), np.zeros(2)))
    np.testing.assert_array_equal(tangent[0], [1, 3, 5])
    np.testing.assert_array_equal(tangent[1], [2, 0])
    np.testing.assert_array_equal(out, 0)
    assert count.read() == 6


def test_sizes_that_turn_out_known_while_state_is_found():
    buffer = np.zeros(4)

    @tm.jit
    def along(x):
        def f(x):
            buffer[...] = x * 2
            return x.sum()

        return tm.jvp(f, (x,), (x,))[1], tm.vmap(lambda y: y * x)(x)

    found = along(np.arange(4.0))
    assert found[0] == 6
    np.testing.assert_array_equal(buffer, [0, 2, 4, 6])


def test_devices_in_a_transformed_function():
    def f(x):
        with tm.device("cpu:1"):
            y = np.sin(x)
        return y * x

    x = np.arange(1.0, 4)
    np.testing.assert_allclose(tm.jvp(f, (x,), (x,))[1], x * (np.cos(x) * x + np.sin(x)))
    np.testing.assert_allclose(tm.vjp(f, x)[1](x)[0], x * (np.cos(x) * x + np.sin(x)))
    np.testing.assert_allclose(tm.vmap(f)(x), np.sin(x) * x)
    text = tm.jit(lambda x: tm.vmap(tm.grad(f))(x)).lower(x).text
    assert text.count("on cpu:1") > 1


def test_integers_have_no_tangent():
    def f(x, n, name):
        return x[:n] * n, n, x.argmax()

    _, tangent = tm.jvp(lambda x, n: f(x, n, "name"), (np.arange(4.0), 2), (np.ones(4), None))
    np.testing.assert_array_equal(tangent[0], [2, 2])
    assert tangent[1:] == (None, None)
    _, pullback = tm.vjp(lambda x, n: f(x, n, "name"), np.arange(4.0), 2)
    found = pullback((np.ones(2), None, None))
    np.testing.assert_array_equal(found[0], [2, 2, 0, 0])
    assert found[1] is None


def test_complex_numbers():
    z, dz = np.array([1 + 2j, 0.5 - 1j]), np.array([0.3 - 0.1j, 1j])
    np.testing.assert_allclose(tm.jvp(lambda z: z**2 + 1 / z, (z,), (dz,))[1], (2 * z - z**-2) * dz)
    np.testing.assert_allclose(
        tm.jvp(lambda z: np.abs(z) * z.imag + np.conj(z).real, (z,), (dz,))[1],
        along(lambda z: np.abs(z) * z.imag + z.real, (z,), (dz,)), rtol=1e-6,
    )  # fmt: skip


@dataclass
class Weights:
    w: np.ndarray
    b: np.ndarray


def test_arguments_are_nested():
    weights = Weights(np.ones((2, 3)), np.zeros(3))
    loss = lambda p, x: np.tanh(x["x"] @ p.w + p.b)
    x = {"x": np.arange(4.0).reshape(2, 2)}
    value, pullback = tm.vjp(loss, weights, x)
    by_weights, by_x = pullback(np.ones_like(value))
    assert isinstance(by_weights, Weights)
    assert by_x["x"].shape == (2, 2)
    _, tangent = tm.jvp(loss, (weights, x), (by_weights, by_x))
    square = (by_weights.w**2).sum() + (by_weights.b**2).sum() + (by_x["x"] ** 2).sum()
    np.testing.assert_allclose(tangent.sum(), square)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_sizes_stay_open(n):
    f = lambda x: np.cumsum(x**2)[::-1]
    _, tangent = tm.jvp(f, (np.arange(n * 1.0),), (np.ones(n),))
    np.testing.assert_array_equal(tangent, np.cumsum(2 * np.arange(n * 1.0))[::-1])


def test_one_version_serves_all_sizes():
    push = tm.jit(lambda x, t: tm.jvp(lambda x: np.cumsum(x**2), (x,), (t,)))
    pull = tm.jit(lambda x, t: tm.vjp(lambda x: np.cumsum(x**2), x)[1](t))
    for n in (0, 1, 2, 7):
        push(np.ones(n), np.ones(n))
        pull(np.ones(n), np.ones(n))
    assert len(push.explain_recompiles()) == len(pull.explain_recompiles()) == 1


def test_a_pullback_serves_inside_a_loop():
    @tm.jit
    def f(x):
        _, pullback = tm.vjp(lambda x: x**2, x)
        return tm.fori_loop(0, 3, lambda i, total: total + pullback(x * 0 + i)[0], x * 0)

    np.testing.assert_allclose(f(np.array([1.0, 2])), [6, 12])


X = np.ones(3)
BAD = {
    "shape": (lambda: tm.jvp(np.sin, (X,), (np.ones(4),)), r"f64\[m\] for the primals at \[0\]"),
    "dtype": (lambda: tm.jvp(np.sin, (X,), (np.ones(3, np.float32),)), r"f32(.|\n)*astype"),
    "integers": (lambda: tm.jvp(np.sin, (X,), (np.ones(3, int),)), "i64"),
    "rank": (lambda: tm.jvp(np.sin, (X,), (np.ones((1, 3)),)), "dtype and shape"),
    "too many": (lambda: tm.jvp(np.sin, (X,), (X, X)), "nested differently"),
    "none": (lambda: tm.jvp(np.sin, (X,), (None,)), "no tangent"),
    "no tuple": (lambda: tm.jvp(np.sin, X, X), "tuples"),
    "cotangent": (lambda: tm.vjp(np.sin, X)[1](np.ones(2)), "the results"),
    "cotangents": (lambda: tm.vjp(lambda x: (x, x), X)[1](X), "nested differently"),
    "later": (lambda: tm.linearize(np.sin, X)[1](np.float64(1)), "dtype and shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_refused(name):
    run, text = BAD[name]
    with pytest.raises(GradientError, match=rf"TM121(.|\n)*{text}"):
        run()


def test_a_derivative_does_not_leave_its_trace():
    kept = []

    @tm.jit
    def f(x):
        kept.append(tm.vjp(np.sin, x)[1])
        return x

    f(X)
    with pytest.raises(TypeError, match="TM103"):
        kept[0](X)
    with pytest.raises(TypeError, match="TM103"):
        tm.jit(lambda x: kept[0](x))(X)
