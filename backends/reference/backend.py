"""The reference back end: kernels run by the interpreter, behind the same kernel ABI.

A kernel's address is a callback into Python. The chunk of a launch that begins at 0 runs the
whole kernel and the others do nothing, so a launch must not be read before all of it returned,
which holds for every caller of the ABI.

Invariants: obvious and slow; what the cpu and cuda back ends must agree with.
Not here: graphs (compiler/ir/evaluator.py runs those).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...compiler.dims import Dim, Size
from ...compiler.kernel.fingerprint import fingerprint
from ...compiler.kernel.interpreter import interpret
from ...compiler.kernel.kernel import Kernel, Parameter
from ...compiler.kernel.printer import kernel_text
from ...runtime.backend import CodeStore, LoadedKernels

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 5)
_FAIL_WORD = 2  # of the control block: cancel, poll, fail


class ReferenceBackend:
    """Kernels as Python callbacks."""

    name = "reference"
    key = "reference"

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def compile_kernels(
        self,
        kernels: Sequence[Kernel],
        store: CodeStore | None = None,
        times: Sequence[int | None] | None = None,
    ) -> LoadedKernels:
        """Callbacks that interpret the kernels; nothing is ever stored."""
        before = len(self._made)
        callbacks = [self._callback(kernel) for kernel in kernels]
        addresses = (ctypes.cast(c, ctypes.c_void_p).value or 0 for c in callbacks)
        return LoadedKernels(tuple(addresses), tuple(callbacks), len(self._made) - before)

    def texts(self, kernels: Sequence[Kernel]) -> Mapping[str, str]:
        """The kernels' own text."""
        return {"kernel": "\n".join(map(kernel_text, kernels))}

    def _callback(self, kernel: Kernel) -> Any:
        key = f"{kernel.dims}{fingerprint(kernel)}"
        if key not in self._made:
            self._made[key] = _KERNEL(_interpreting(kernel))
        return self._made[key]


def _interpreting(kernel: Kernel) -> Any:
    def run(control: int, words: int, begin: int, end: int) -> None:
        if begin != 0 or end <= 0:
            return
        arrays, dims = _arguments(kernel, words)
        failed = interpret(kernel, arrays, dims)
        if failed is not None:
            table = ctypes.cast(control, ctypes.POINTER(ctypes.c_void_p))
            _FAIL(table[_FAIL_WORD] or 0)(control, failed + 1, -1, 0, 0, 0)

    return run


def _arguments(kernel: Kernel, words: int) -> tuple[list[np.ndarray[Any, Any]], dict[str, int]]:
    """Arrays over the memory that the argument words point to, and the values of the dims."""
    table = ctypes.cast(words, ctypes.POINTER(ctypes.c_int64))
    places: list[tuple[Parameter, int, list[int] | None]] = []
    at = 0
    for parameter in kernel.params:
        rank = len(parameter.shape)
        strides = [table[at + 1 + axis] for axis in range(rank)] if parameter.strided else None
        places.append((parameter, table[at], strides))
        at += 1 + (rank if parameter.strided else 0)
    dims = {name: table[at + number] for number, name in enumerate(kernel.dims)}
    return [_array(p, address, strides, dims) for p, address, strides in places], dims


def _array(
    parameter: Parameter, address: int, strides: list[int] | None, dims: Mapping[str, int]
) -> np.ndarray[Any, Any]:
    shape = tuple(_value(size, dims) for size in parameter.shape)
    dtype = parameter.dtype.numpy
    if 0 in shape:
        return np.empty(shape, dtype)
    steps = _contiguous(shape, dtype.itemsize) if strides is None else strides
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, steps))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, steps))
    memory = (ctypes.c_char * (high - low + dtype.itemsize)).from_address(address + low)
    return np.ndarray(shape, dtype, memoryview(memory), -low, tuple(steps))


def _contiguous(shape: tuple[int, ...], step: int) -> list[int]:
    steps: list[int] = []
    for extent in reversed(shape):
        steps.insert(0, step)
        step *= extent
    return steps


def _value(size: Size, dims: Mapping[str, int]) -> int:
    return size.evaluate(dims) if isinstance(size, Dim) else size
