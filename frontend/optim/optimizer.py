"""What all optimisers share: the Variables, the learning rate, slots.

Invariants: slots have their Variable's dtype, shape, device and store.
Not here: the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.errors import error
from ..lifted import lifted
from ..variable import Variable


class Optimizer:
    """Updates `variables`. A subclass says how one is updated (`update`).

    lr: the learning rate, kept in a float64 Variable. name: the first part of the slots' names;
    numbered where the store has it already.
    """

    def __init__(self, variables: Sequence[Variable], lr: float, name: str) -> None:
        self.variables = list(variables)
        if not self.variables:
            raise error("TM203", "an optimiser needs at least one variable")
        for variable in self.variables:
            if not variable.type.dtype.is_float:
                raise error("TM202", f"{variable!r} is not floating and cannot be optimised")
        self.store = self.variables[0].store
        self.name = self._free(name)
        self.lr = self.scalar("lr", np.float64(lr))

    def apply(self, gradients: Sequence[Any]) -> None:
        """Update every Variable by its gradient; compiled outside a trace, too."""
        if len(gradients) != len(self.variables):
            counts = f"{len(self.variables)} variables, {len(gradients)} gradients"
            raise error("TM203", f"an optimiser needs one gradient for each variable, got {counts}")
        self._apply_all(list(gradients))

    def update(self, variable: Variable, gradient: Any, rate: Any) -> None:
        """Update one Variable; `rate` is the learning rate in its dtype."""
        raise NotImplementedError

    def advance(self) -> None:
        """Called once for each `apply`, after the updates."""

    def slot(self, name: str, variable: Variable, value: float = 0.0) -> Variable:
        """A new Variable like `variable`, filled with `value`."""
        content = np.full(variable.shape, value, variable.dtype)
        full = f"{self.name}/{variable.name}/{name}"
        return Variable(content, full, device=variable.device, store=variable.store)

    def scalar(self, name: str, value: Any) -> Variable:
        """A new Variable of rank 0."""
        return Variable(np.asarray(value), f"{self.name}/{name}", store=self.store)

    @property
    def slots(self) -> list[Variable]:
        """All Variables the optimiser made, for saving and counting."""
        found: list[Variable] = []
        for item in vars(self).values():
            parts = item if isinstance(item, list) else [item]
            if isinstance(item, dict):
                parts = list(item.values())
            found += [
                p
                for p in parts
                if isinstance(p, Variable) and all(p is not v for v in self.variables)
            ]
        return found

    def _apply_all(self, gradients: list[Any]) -> None:
        lifted(self._updates)(gradients)

    def _updates(self, gradients: list[Any]) -> None:
        rate = self.lr.read()
        for variable, gradient in zip(self.variables, gradients):
            if gradient is not None:
                self.update(variable, gradient, rate.astype(variable.dtype))
        self.advance()

    def _free(self, name: str) -> str:
        number = 0
        found = name
        while f"{found}/lr" in self.store:
            number += 1
            found = f"{name}_{number}"
        return found
