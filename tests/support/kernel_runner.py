"""Run one kernel's machine code on NumPy arrays, with a control block made of ctypes callbacks."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tracemill.backends.llvm.machine import Machine, host_machine
from tracemill.backends.llvm.module import compile_module
from tracemill.backends.llvm.native.loader import Loaded, load
from tracemill.backends.llvm.native.objects import link
from tracemill.compiler.dims import Dim

_POLL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
_FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 5)
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Control(ctypes.Structure):
    """The head of the native control block."""

    _fields_ = (("cancel", ctypes.c_int64), ("poll", _POLL), ("fail", _FAIL))


@dataclass
class Outcome:
    """What a run reported."""

    failures: list[tuple[int, int, int]] = field(default_factory=list)
    polls: int = 0


@lru_cache(maxsize=256)
def compiled(kernel, machine: Machine) -> Loaded:
    """The kernel's code, mapped."""
    return load(link(compile_module([kernel], machine).code))


class Compiled:
    """One kernel, ready to run."""

    def __init__(self, kernel, machine: Machine | None = None) -> None:
        self.kernel = kernel
        self.loaded = self.load(machine or host_machine())
        self.function = _KERNEL(self.loaded.address_of("k0"))

    def load(self, machine: Machine) -> Loaded:
        """The code, mapped."""
        return load(link(compile_module([self.kernel], machine).code))

    def words(self, arrays, dims):
        """Argument words for arrays and sizes."""
        found = []
        for parameter, array in zip(self.kernel.params, arrays, strict=True):
            found.append(array.ctypes.data)
            if parameter.strided:
                found.extend(array.strides)
            else:
                assert array.flags.c_contiguous
        found.extend(dims[name] for name in self.kernel.dims)
        return (ctypes.c_int64 * max(1, len(found)))(*found)

    def __call__(self, *arrays, chunks=((0, 1),), cancel_at=None, **dims) -> Outcome:
        outcome = Outcome()

        def poll(_):
            outcome.polls += 1
            return int(cancel_at is not None and outcome.polls >= cancel_at)

        def fail(_, code, node, word0, word1, word2):
            outcome.failures.append((code, word0, word1))

        control = Control(0, _POLL(poll), _FAIL(fail))
        words = self.words(arrays, dims)
        for begin, end in chunks:
            self.function(ctypes.addressof(control), ctypes.addressof(words), begin, end)
        return outcome


def sym(name):
    """A size symbol."""
    return Dim.symbol(name)


def aligned(shape, dtype, fill=None, offset=0):
    """An array whose first element lies `offset` bytes after a multiple of 64."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    raw = np.zeros(count + 192, np.uint8)
    start = (-raw.ctypes.data) % 64 + offset
    array = raw[start : start + count].view(dtype).reshape(shape)
    if fill is not None:
        array[...] = fill
    return array
