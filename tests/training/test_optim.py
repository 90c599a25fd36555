"""Optimisers against their formulas in plain NumPy, compiled, in both float types."""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm
from tracemill import gradients
from tracemill.compiler.errors import ArgError, DTypeError
from tracemill.runtime.checkpoint import restore, save
from tracemill.runtime.store import VariableStore

STEPS = 6


def sgd(w, grads, lr=0.1):
    for g in grads:
        w = w - lr * g
    return w


def momentum(w, grads, lr=0.1, m=0.9, nesterov=False):
    v = np.zeros_like(w)
    for g in grads:
        v = m * v + g
        w = w - lr * (g + m * v if nesterov else v)
    return w


def adagrad(w, grads, lr=0.1):
    s = np.zeros_like(w)
    for g in grads:
        s = s + g * g
        w = w - lr * g / (np.sqrt(s) + 1e-10)
    return w


def rmsprop(w, grads, lr=0.1, decay=0.99, m=0.0):
    s, v = np.zeros_like(w), np.zeros_like(w)
    for g in grads:
        s = decay * s + (1 - decay) * g * g
        v = m * v + g / (np.sqrt(s) + 1e-8)
        w = w - lr * v
    return w


def adam(w, grads, lr=0.1, b1=0.9, b2=0.999):
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t, g in enumerate(grads, 1):
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        w = w - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + 1e-8)
    return w


RULES = {
    "SGD": (tm.optim.SGD, {}, sgd),
    "Momentum": (tm.optim.Momentum, {}, momentum),
    "Nesterov": (tm.optim.Momentum, {"nesterov": True},
                 lambda w, g: momentum(w, g, nesterov=True)),
    "Adagrad": (tm.optim.Adagrad, {}, adagrad),
    "RMSProp": (tm.optim.RMSProp, {}, rmsprop),
    "RMSProp with momentum": (tm.optim.RMSProp, {"momentum": 0.5},
                              lambda w, g: rmsprop(w, g, m=0.5)),
    "Adam": (tm.optim.Adam, {}, adam),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("make", "options", "formula"), RULES.values(), ids=RULES.keys())
def test_the_formula(make, options, formula, dtype, rng):
    start = rng.normal(size=(4, 3)).astype(dtype)
    grads = [rng.normal(size=(4, 3)).astype(dtype) for _ in range(STEPS)]
    w = tm.Variable(start)
    opt = make([w], lr=0.1, **options)
    step = tm.jit(lambda g: opt.apply([g]))
    for g in grads:
        step(g)
    assert len(step.dispatcher.history) == 1
    wanted = formula(start.astype(np.float64), [g.astype(np.float64) for g in grads])
    assert w.read().dtype == dtype
    tolerance = 2e-6 if dtype is np.float32 else 1e-13
    np.testing.assert_allclose(w.read(), wanted, rtol=tolerance * 10, atol=tolerance)


@pytest.mark.parametrize(("make", "options", "formula"), RULES.values(), ids=RULES.keys())
def test_it_goes_downhill(make, options, formula):
    w, b = tm.Variable(np.zeros(3)), tm.Variable(np.float64(0.0))
    opt = make([w, b], lr=0.05, **options)
    x = np.array([[1.0, 0, 2], [0, 1, 1], [1, 1, 0], [2, 0, 1]])
    y = x @ np.array([1.0, -1.0, 0.5]) + 0.3

    @tm.jit
    def step(x, y):
        error = x @ w + b - y
        loss = (error * error).mean()
        opt.apply(gradients(loss, [w, b]))
        return loss

    losses = [float(step(x, y)) for _ in range(60)]
    assert losses[-1] < 0.6 * losses[0]


def test_outside_a_compiled_function_it_runs_compiled():
    w = tm.Variable(np.ones(3))
    opt = tm.optim.Adam([w], lr=0.1)
    g = np.array([1.0, -2.0, 0.5])
    opt.apply([g])
    np.testing.assert_allclose(w.read(), adam(np.ones(3), [g]))


def test_the_rate_may_change_without_compiling_again():
    w = tm.Variable(np.ones(2))
    opt = tm.optim.SGD([w], lr=0.5)
    step = tm.jit(lambda g: opt.apply([g]))
    step(np.ones(2))
    opt.lr.assign(0.25)
    step(np.ones(2))
    np.testing.assert_allclose(w.read(), [0.25, 0.25])
    assert len(step.dispatcher.history) == 1


def test_none_leaves_a_variable_alone():
    w, b = tm.Variable(np.ones(2)), tm.Variable(np.ones(2))
    opt = tm.optim.Momentum([w, b], lr=1.0)
    tm.jit(lambda g: opt.apply([g, None]))(np.ones(2))
    np.testing.assert_array_equal(w.read(), [0, 0])
    np.testing.assert_array_equal(b.read(), [1, 1])


def test_slots_are_variables_with_names_of_their_own():
    w = tm.Variable(np.ones(2, np.float32), name="layer/w", store=VariableStore())
    first, second = tm.optim.Adam([w]), tm.optim.Adam([w])
    names = {v.name for v in first.slots}
    assert names == {"adam/lr", "adam/step", "adam/layer/w/first", "adam/layer/w/second"}
    assert not names & {v.name for v in second.slots}
    assert all(v.name in w.store for v in first.slots)


def test_what_cannot_be_optimised():
    with pytest.raises(DTypeError):
        tm.optim.SGD([tm.Variable(np.ones(2, int))])
    with pytest.raises(ArgError):
        tm.optim.SGD([])
    with pytest.raises(ArgError, match="2 gradients"):
        tm.optim.SGD([tm.Variable(np.ones(2))]).apply([np.ones(2), np.ones(2)])


def test_training_goes_on_from_a_checkpoint(tmp_path, rng):
    """Saved after three steps and restored: the next three steps have the same bits."""
    w = tm.Variable(rng.normal(size=5), name="resumed/w")
    opt = tm.optim.Adam([w], lr=0.1, name="resumed/adam")
    step = tm.jit(lambda g: opt.apply([g]))
    grads = rng.normal(size=(6, 5))
    for g in grads[:3]:
        step(g)
    held = [w, *opt.slots]
    save(str(tmp_path), w.store.snapshot([v.name for v in held]).values)
    for g in grads[3:]:
        step(g)
    after = w.read()
    w.store.commit(restore(str(tmp_path), {v.name: v.type for v in held}))
    for g in grads[3:]:
        step(g)
    assert w.read().tobytes() == after.tobytes()
