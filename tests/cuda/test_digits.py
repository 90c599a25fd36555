"""The digits model on the grid: every kernel of a training step and of a prediction."""

from __future__ import annotations

import numpy as np
import pytest

from digits_model import DigitsModel, batch
from grid_kernels import GridRun
from tracemill.backends.cuda.ptx import compile_ptx

pytestmark = pytest.mark.cpu


@pytest.fixture
def model(seed):
    return DigitsModel(seed)


def test_a_training_step_in_the_emulator_is_the_compiled_step(model, rng):
    images, labels = batch(rng)
    plan = model.step.lower(images, labels).plan.data
    mine = model.state()
    run = GridRun(plan, [images, labels], mine, 0)
    (loss,) = run.run()
    assert len(run.compared) >= 15
    np.testing.assert_allclose(loss, model.step(images, labels), rtol=1e-5)
    for name, value in model.state().items():
        np.testing.assert_allclose(mine[name], value, rtol=1e-3, atol=1e-5, err_msg=name)


def test_a_prediction_in_the_emulator_is_the_compiled_one(model, rng):
    images, _ = batch(rng, 50)
    plan = model.predict.lower(images).plan.data
    run = GridRun(plan, [images], model.state(), 0)
    (mine,) = run.run()
    np.testing.assert_allclose(mine, model.predict(images), rtol=1e-4, atol=1e-6)


def test_a_label_out_of_range_fails_on_the_grid_as_it_does_on_the_host(model, rng):
    images, labels = batch(rng)
    labels[3] = 10
    plan = model.step.lower(images, labels).plan.data
    checks = [k for k in plan.kernels if k.name == "check"]
    assert checks
    with pytest.raises(Exception, match="check"):
        GridRun(plan, [images, labels], model.state(), 0).run()


def test_every_kernel_of_the_model_becomes_an_entry(model, rng):
    images, labels = batch(rng)
    kernels = [
        *model.step.lower(images, labels).plan.data.kernels,
        *model.predict.lower(images).plan.data.kernels,
    ]
    code = compile_ptx(kernels)
    assert code.text.count(".visible .entry") == len(code.entries) == len(kernels)
