"""`grad`, `value_and_grad` and `gradients` as users call them, compiled."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm
from tracemill import grad, gradients, stop_gradient, value_and_grad
from tracemill.compiler.errors import ArgError, GradientError

X = np.array([0.5, -1.0, 2.0])


def cube(x):
    return (x * x * x).sum()


def test_grad_of_a_plain_function():
    np.testing.assert_allclose(grad(cube)(X), 3 * X * X)


def test_grad_inside_a_compiled_function_and_of_a_compiled_function():
    np.testing.assert_allclose(tm.jit(lambda x: grad(cube)(x) + 1)(X), 3 * X * X + 1)
    np.testing.assert_allclose(grad(tm.jit(cube))(X), 3 * X * X)


def test_third_order():
    def second(x):
        return grad(lambda x: grad(cube)(x).sum())(x).sum()

    np.testing.assert_allclose(grad(second)(X), np.full(3, 6.0))


def test_values_of_the_enclosing_function_are_constants():
    def outer(x):
        return grad(lambda y: (x * y).sum())(x)

    np.testing.assert_allclose(tm.jit(outer)(X), X)


def test_numbers_in_numbers_out():
    found = grad(lambda x: x * x * 3.0)(2.0)
    assert found == 12.0
    value, slope = value_and_grad(lambda x, n: x * n)(2.0, 5)
    assert (value, slope) == (10.0, 5.0)


def test_several_and_nested_arguments():
    def loss(model, x, scale):
        return ((x * model["w"] + model["b"][0]) * scale).sum()

    model = {"w": np.ones(3), "b": [np.zeros(3)]}
    value, (by_model, by_scale) = value_and_grad(loss, (0, 2))(model, X, 2.0)
    assert value == 3.0
    np.testing.assert_allclose(by_model["w"], 2 * X)
    np.testing.assert_allclose(by_model["b"][0], [2, 2, 2])
    assert by_scale == 1.5


def test_aux():
    def loss(x):
        return (x * x).sum(), {"twice": x + x}

    slope, aux = grad(loss, has_aux=True)(X)
    np.testing.assert_allclose(slope, 2 * X)
    np.testing.assert_allclose(aux["twice"], 2 * X)


def test_no_path_is_zeros_and_integers_are_none():
    def loss(x, n, y):
        return (x * n).sum()

    by_x, by_n, by_y = grad(loss, (0, 1, 2))(X, np.array([1, 2, 3]), X)
    np.testing.assert_allclose(by_x, [1, 2, 3])
    assert by_n is None
    np.testing.assert_array_equal(by_y, np.zeros(3))


def test_an_argument_written_to_is_differentiated_as_it_came():
    def loss(x):
        y = x * 1.0
        y[0] = 0.0
        y[1:] *= 2.0
        return (y * y).sum()

    np.testing.assert_allclose(grad(loss)(X), [0, 8 * X[1], 8 * X[2]])


def test_stop_gradient():
    np.testing.assert_allclose(grad(lambda x: (x * stop_gradient(x)).sum())(X), X)
    np.testing.assert_array_equal(stop_gradient(X), X)


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x.astype(int).sum()])
def test_a_loss_is_one_real_number(function):
    with pytest.raises(GradientError, match="real number"):
        grad(function)(X)


def test_an_argument_that_is_not_there():
    with pytest.raises(ArgError, match="argnums=1"):
        grad(cube, 1)(X)


def test_gradients_by_variables_nested_as_asked():
    w, b = tm.Variable(np.ones(3)), tm.Variable(np.float64(2.0))
    unused = tm.Variable(np.ones(2, np.float32))

    @tm.jit
    def slopes(x):
        hidden = x * w
        loss = (hidden * hidden).sum() + b * b * b
        return gradients(loss, {"w": w, "rest": [b, unused]}), gradients(loss, hidden)

    by_variables, by_hidden = slopes(X)
    np.testing.assert_allclose(by_variables["w"], 2 * X * X)
    np.testing.assert_allclose(by_variables["rest"][0], 12.0)
    np.testing.assert_array_equal(by_variables["rest"][1], np.zeros(2, np.float32))
    assert by_variables["rest"][1].dtype == np.float32
    np.testing.assert_allclose(by_hidden, 2 * X)


def test_the_trap_of_the_branch_not_taken():
    found = grad(lambda x: np.where(x > 0, np.sqrt(x), 0).sum())(np.array([0.0, 4.0]))
    np.testing.assert_array_equal(found, [0, 0.25])


def test_integer_state_has_no_gradient_and_no_error():
    def loss(x):
        i, s = 0, x * 0.0
        for _ in range(3):
            i, s = i + 1, s + x * i
        return s.sum()

    np.testing.assert_allclose(grad(loss)(np.ones(1)), [3.0])


def test_other_sizes_do_not_compile_again():
    slope = grad(cube)
    compiled = tm.jit(slope)
    for n in (3, 5, 9):
        x = np.arange(n) + 0.5
        np.testing.assert_allclose(compiled(x), 3 * x * x)
    assert len(compiled.dispatcher.history) == 1
