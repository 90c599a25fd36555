"""`Spec`: an array that is described, not there.

Invariants: a Spec is a leaf of nested values, never a container of its fields.
Not here: what is done with the description.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Spec:
    """Stands for an array by its dtype and shape.

    dtype: anything NumPy takes for one. shape: a tuple of ints, of None where a size stays open
    (arguments of a `Program`), and of sizes of traced arrays (results of `host_call`).
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, dtype: Any, shape: tuple[int | None, ...] = ()) -> None:
        self.dtype = dtype
        self.shape = shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __repr__(self) -> str:
        return f"Spec(dtype={self.dtype!r}, shape={self.shape!r})"

    def example(self) -> np.ndarray[Any, Any]:
        """An array of this type; open sizes get an example of 64."""
        return np.zeros([64 if size is None else size for size in self.shape], self.dtype)
