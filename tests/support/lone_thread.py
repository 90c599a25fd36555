"""The LLVM code made for a GPU, run on the host by one thread of one block.

Bound loops are strided, so one thread does all work, phase after phase: the lowering itself is
executed, all but the split among threads.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from tracemill.backends.llvm.frame import Frame, constant
from tracemill.backends.llvm.machine import host_machine, target_machine
from tracemill.backends.llvm.nvptx.module import build_module, device_machine
from tracemill.backends.llvm.nvptx.threads import Threads
from tracemill.compiler.kernel.grid import GridKernel

NO_FAILURE = 2**64 - 1


class LoneThread(Threads):
    """Thread 0 of 1, in block 0 of 1, which nobody has to wait for."""

    convention = ""

    def __init__(self, threads: int) -> None:
        super().__init__(1)

    def read_position(self, builder: ir.IRBuilder) -> None:
        self.thread, self.block, self.blocks = constant(0), constant(0), constant(1)

    def barrier(self, frame: Frame) -> None:
        pass


def run_alone(
    mapped: GridKernel, arrays: Sequence[np.ndarray[Any, Any]], dims: Mapping[str, int]
) -> int | None:
    """Run a kernel in place; the least number of a failure, or None."""
    machine = host_machine()
    module = build_module([mapped], device_machine("sm_90"), LoneThread)
    module.triple = machine.triple
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(str(module)), target_machine.__wrapped__(machine)
    )
    engine.finalize_object()
    failed = ctypes.c_uint64(NO_FAILURE)
    words = [ctypes.addressof(failed)]
    for p, array in zip(mapped.kernel.params, arrays, strict=True):
        words += [array.ctypes.data, *(array.strides if p.strided else ())]
    words += [dims[name] for name in mapped.kernel.dims]
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(words))
    entry(engine.get_function_address("k0"))(*words)
    return None if failed.value == NO_FAILURE else failed.value
