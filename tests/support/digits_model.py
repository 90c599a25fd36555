"""The model of `make demo`, small enough to trace in a test: two dense layers and Adam."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import tracemill as tm

Array = np.ndarray[Any, Any]
_models = itertools.count()


class DigitsModel:
    """Variables of its own, a training step, a prediction."""

    def __init__(self, seed: int, hidden: int = 128) -> None:
        rng = np.random.default_rng(seed)
        number = next(_models)

        def variable(value: Array, name: str) -> tm.Variable:
            return tm.Variable(value.astype(np.float32), f"model{number}_{name}")

        self.w1 = variable(rng.standard_normal((64, hidden)) * 0.17, "w1")
        self.b1 = variable(np.zeros(hidden), "b1")
        self.w2 = variable(rng.standard_normal((hidden, 10)) * 0.12, "w2")
        self.b2 = variable(np.zeros(10), "b2")
        self.parameters = [self.w1, self.b1, self.w2, self.b2]
        self.optimizer = tm.optim.Adam(self.parameters, lr=2e-3)
        self.step = tm.jit(self._step)
        self.predict = tm.jit(self._predict)

    def _logits(self, images: Array) -> Array:
        hidden: Array = np.maximum(images @ self.w1 + self.b1, 0)
        return hidden @ self.w2 + self.b2

    def _step(self, images: Array, labels: Array) -> Any:
        loss = tm.nn.cross_entropy(self._logits(images), labels)
        self.optimizer.apply(tm.gradients(loss, self.parameters))
        return loss

    def _predict(self, images: Array) -> Any:
        return tm.nn.softmax(self._logits(images))

    def state(self) -> dict[str, Array]:
        """A copy of all variables, by name."""
        variables = [*self.parameters, *self.optimizer.slots]
        return {v.name: np.array(v) for v in variables}


def batch(rng: np.random.Generator, size: int = 64) -> tuple[Array, Array]:
    """Random images and labels."""
    return rng.random((size, 64)).astype(np.float32), rng.integers(0, 10, size)
