"""Gradient descent, plain and with momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..variable import Variable
from .optimizer import Optimizer


class SGD(Optimizer):
    """w -= lr * g"""

    def __init__(
        self, variables: Sequence[Variable], lr: float = 0.01, *, name: str = "sgd"
    ) -> None:
        super().__init__(variables, lr, name)

    def update(self, variable: Variable, gradient: Any, rate: Any) -> None:
        """See `Optimizer`."""
        variable.assign(variable.read() - rate * gradient)


class Momentum(Optimizer):
    """m = momentum * m + g;  w -= lr * m, with `nesterov` w -= lr * (g + momentum * m)"""

    def __init__(
        self,
        variables: Sequence[Variable],
        lr: float = 0.01,
        momentum: float = 0.9,
        *,
        nesterov: bool = False,
        name: str = "momentum",
    ) -> None:
        super().__init__(variables, lr, name)
        self.momentum = momentum
        self.nesterov = nesterov
        self.velocity = {v.name: self.slot("velocity", v) for v in self.variables}

    def update(self, variable: Variable, gradient: Any, rate: Any) -> None:
        """See `Optimizer`."""
        slot = self.velocity[variable.name]
        velocity = self.momentum * slot.read() + gradient
        slot.assign(velocity)
        step = gradient + self.momentum * velocity if self.nesterov else velocity
        variable.assign(variable.read() - rate * step)
