"""Programs: feeding and fetching named values, pruned to what is asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tracemill as tm

_fresh = itertools.count()


@pytest.fixture
def program():
    w = tm.Variable(np.full((4, 2), 0.5, np.float32), name=f"program w {next(_fresh)}")

    @tm.jit
    def train(x, y):
        hidden = x @ w
        error = hidden - y
        loss = (error * error).mean()
        w.assign(w - 0.1 * tm.gradients(loss, [w])[0])
        return loss

    @tm.jit
    def predict(x):
        scores = x @ w
        return scores.argmax(axis=1)

    made = tm.Program(train=train, predict=predict)
    made.w = w
    return made


X = np.arange(12, dtype=np.float32).reshape(3, 4)
Y = np.ones((3, 2), np.float32)


def test_an_entry_fetches_what_the_function_returns_and_acts(program):
    before = np.asarray(program.w)
    loss = program.run("train", {"x": X, "y": Y})
    np.testing.assert_allclose(loss, ((X @ before - Y) ** 2).mean(), rtol=1e-6)
    assert not np.array_equal(before, np.asarray(program.w))


def test_values_are_fetched_by_name_without_effects(program):
    before = np.asarray(program.w)
    hidden, loss = program.run(["train/hidden", "train/loss"], {"x": X, "y": Y})
    np.testing.assert_allclose(hidden, X @ before, rtol=1e-6)
    np.testing.assert_allclose(loss, ((X @ before - Y) ** 2).mean(), rtol=1e-6)
    np.testing.assert_array_equal(before, np.asarray(program.w))


def test_a_fed_value_replaces_what_computes_it(program):
    program.describe("train", x=tm.Spec("f4", (None, 4)), y=tm.Spec("f4", (None, 2)))
    hidden = np.full((5, 2), 3.0, np.float32)
    loss = program.run("train/loss", {"hidden": hidden, "y": np.ones((5, 2), np.float32)})
    assert loss == np.float32(4.0)
    assert program.run("train/hidden", {"hidden": hidden}) is not None


def test_pruned_parameters_need_no_feed_and_needed_ones_do(program):
    program.describe("train", x=tm.Spec("f4", (None, 4)), y=tm.Spec("f4", (None, 2)))
    program.run("train/hidden", {"x": X})
    with pytest.raises(ValueError, match="'y' must be fed"):
        program.run("train/loss", {"x": X})


def test_fetching_predict_compiles_no_training_kernel(program):
    program.describe("train", x=tm.Spec("f4", (None, 4)), y=tm.Spec("f4", (None, 2)))
    program.run("predict", {"x": X})
    steps = program._entries["predict"]._steps.values()
    written = [
        b
        for s in steps
        for b in s._function._built.plan.buffers
        if b.origin.name == "VARIABLE" and b.written
    ]
    assert not written
    assert not program._entries["train"]._steps


def test_steps_are_cached_by_what_is_fed_and_fetched(program):
    for n in (3, 5, 7):
        x = np.ones((n, 4), np.float32)
        program.run("predict/scores", {"x": x})
    assert len(program._entries["predict"]._steps) == 1
    program.run("predict", {"x": X})
    assert len(program._entries["predict"]._steps) == 2


def test_unknown_names_are_answered_with_near_ones(program):
    with pytest.raises(LookupError, match="did you mean hidden"):
        program.run("train/hiden", {"x": X, "y": Y})
    with pytest.raises(LookupError, match="did you mean train"):
        program.run("trian/loss", {"x": X, "y": Y})
    with pytest.raises(LookupError, match="no value named"):
        program.run("train/loss", {"x": X, "z": Y, "y": Y})


def test_a_feed_of_another_type_is_refused(program):
    program.run("train/hidden", {"x": X, "y": Y})
    with pytest.raises(TypeError, match=r"'hidden' is f32\[n, 2\], got float64"):
        program.run("train/loss", {"hidden": np.ones((3, 2)), "y": Y})
