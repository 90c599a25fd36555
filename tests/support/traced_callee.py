"""Functions that tests of interception call: helpers as users write them, in their own module."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import arange, zeros

SCALE = 3.0
TABLE = np.array([10.0, 20.0, 30.0, 40.0])
LAYERS = [{"w": np.eye(4), "b": np.arange(4.0)}, {"w": 2 * np.eye(4), "b": np.ones(4)}]


def shifted(x: Any) -> Any:
    """Differences of neighbours, weighted by position."""
    out = zeros(x.shape)
    out[1:-1] = x[2:] - x[:-2]
    return out * arange(x.shape[0])


def scaled(x: Any) -> Any:
    """Reads a global number and a global array of this module."""
    return x * SCALE + TABLE


def network(x: Any) -> Any:
    """Runs over a container of arrays."""
    for layer in LAYERS:
        x = np.tanh(x @ layer["w"] + layer["b"])
    return x


def broken(x: Any) -> Any:
    """Raises in the middle."""
    y = x + 1
    raise RuntimeError(f"no use for {y.ndim} axes")


class Model:
    """An object with arrays, numbers, a property and a method."""

    def __init__(self, size: int) -> None:
        self.w = np.full(size, 2.0)
        self.bias = 3

    @property
    def total(self) -> Any:
        """Computed from an attribute."""
        return np.zeros(self.w.shape) + self.w.sum()

    def __call__(self, x: Any) -> Any:
        return x * self.w + self.bias + self.total

    def forward(self, x: Any) -> Any:
        """A bound method."""
        return self.helper(x) * np.ones(len(x))

    @staticmethod
    def helper(x: Any) -> Any:
        """A static method."""
        out = np.empty(x.shape)
        out[:] = x
        return out


def combined(first: Any, *others: Any, factor: Any = 2, **named: Any) -> dict[str, Any]:
    """Takes its arguments in every way, and gives a dict."""
    out = zeros(first.shape)
    out += first * factor
    for other in others:
        out = out + other
    return {"out": out, **{name: value * SCALE for name, value in named.items()}}


def raised(view: Any, by: Any = 1) -> Any:
    """Writes to what it is given."""
    view += by
    return view


class Box:
    """An array behind operators of its own."""

    def __init__(self, held: Any) -> None:
        self.held = held
        self.updates = 0

    def __iadd__(self, other: Any) -> Box:
        self.held += other
        self.updates += 1
        return self

    def __getitem__(self, key: Any) -> Any:
        return self.held[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.held[key] = value

    def __matmul__(self, other: Any) -> Any:
        return self.held @ other
