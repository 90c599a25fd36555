"""Host calls: a Python function of arrays, called by native code with addresses and sizes.

Invariants: the arrays a function gets are views of the call's buffers and must not outlive the
call.
Not here: when the GIL is taken (`walker`).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class ArrayCall(NamedTuple):
    """Calls `function` with an array for each (dtype, rank) of `forms`."""

    function: Callable[..., object]
    forms: tuple[tuple[np.dtype[Any], int], ...]

    def __call__(self, *words: int) -> None:
        """Words: for each array its address and its extents."""
        arrays, at = [], 0
        for dtype, rank in self.forms:
            shape = words[at + 1 : at + 1 + rank]
            arrays.append(array_at(words[at], dtype, shape))
            at += 1 + rank
        self.function(*arrays)


def array_at(address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A C-contiguous array over memory somebody else keeps."""
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(address)
    array: np.ndarray[Any, Any] = np.frombuffer(memoryview(memory), dtype).reshape(shape)
    return array
