"""Functions of another module that choose and repeat on what they are handed."""

from __future__ import annotations

from typing import Any

import numpy as np


def clipped(x: Any) -> Any:
    """At most 4 as the largest element."""
    if x.max() > 4:
        return x * (4 / x.max())
    return x + 0


def depth(x: Any) -> Any:
    """How often x can be halved."""
    count = 0
    largest = np.abs(x).max()
    while largest > 0.25:
        largest = largest / 2
        count += 1
    return count


class Leaky:
    """A layer with a slope."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def __call__(self, x: Any) -> Any:
        return x + 0 if x.sum() > 0 else self._negative(x)

    def _negative(self, x: Any) -> Any:
        if x[0] < -1:
            return x * self.slope
        return x - self.slope
