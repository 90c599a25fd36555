"""Optimisers that scale each element's step by the size of its past gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..variable import Variable
from .optimizer import Optimizer


class Adagrad(Optimizer):
    """s += g * g;  w -= lr * g / (sqrt(s) + eps)

    initial: the first value of s.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        lr: float = 0.01,
        *,
        initial: float = 0.0,
        eps: float = 1e-10,
        name: str = "adagrad",
    ) -> None:
        super().__init__(variables, lr, name)
        self.eps = eps
        self.squares = {v.name: self.slot("squares", v, initial) for v in self.variables}

    def update(self, variable: Variable, gradient: Any, rate: Any) -> None:
        """See `Optimizer`."""
        slot = self.squares[variable.name]
        squares = slot.read() + gradient * gradient
        slot.assign(squares)
        variable.assign(variable.read() - rate * gradient / (np.sqrt(squares) + self.eps))


class RMSProp(Optimizer):
    """s = decay * s + (1 - decay) * g * g;  w -= lr * g / (sqrt(s) + eps)

    momentum: other than 0, the steps are summed with this decay, as in `Momentum`.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        lr: float = 0.01,
        *,
        decay: float = 0.99,
        momentum: float = 0.0,
        eps: float = 1e-8,
        name: str = "rmsprop",
    ) -> None:
        super().__init__(variables, lr, name)
        self.decay, self.momentum, self.eps = decay, momentum, eps
        self.squares = {v.name: self.slot("squares", v) for v in self.variables}
        moving = self.variables if momentum else []
        self.velocity = {v.name: self.slot("velocity", v) for v in moving}

    def update(self, variable: Variable, gradient: Any, rate: Any) -> None:
        """See `Optimizer`."""
        slot = self.squares[variable.name]
        squares = self.decay * slot.read() + (1 - self.decay) * gradient * gradient
        slot.assign(squares)
        step = gradient / (np.sqrt(squares) + self.eps)
        if self.velocity:
            moving = self.velocity[variable.name]
            step = self.momentum * moving.read() + step
            moving.assign(step)
        variable.assign(variable.read() - rate * step)


class Adam(Optimizer):
    """m = b1 * m + (1 - b1) * g;  v = b2 * v + (1 - b2) * g * g
    w -= lr * (m / (1 - b1**t)) / (sqrt(v / (1 - b2**t)) + eps), t = 1, 2, ...
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        lr: float = 1e-3,
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        name: str = "adam",
    ) -> None:
        super().__init__(variables, lr, name)
        self.betas, self.eps = betas, eps
        self.step = self.scalar("step", np.int64(0))
        self.first = {v.name: self.slot("first", v) for v in self.variables}
        self.second = {v.name: self.slot("second", v) for v in self.variables}

    def advance(self) -> None:
        """See `Optimizer`."""
        self.step.assign(self.step.read() + 1)

    def update(self, variable: Variable, gradient: Any, rate: Any) -> None:
        """See `Optimizer`."""
        b1, b2 = self.betas
        slots = self.first[variable.name], self.second[variable.name]
        first = b1 * slots[0].read() + (1 - b1) * gradient
        second = b2 * slots[1].read() + (1 - b2) * gradient * gradient
        slots[0].assign(first)
        slots[1].assign(second)
        t = (self.step.read() + 1).astype(np.float64)
        scale = (rate / (1 - b1**t)).astype(variable.dtype)
        spread = (1 / np.sqrt(1 - b2**t)).astype(variable.dtype)
        step = scale * first / (np.sqrt(second) * spread + self.eps)
        variable.assign(variable.read() - step)
