"""Kernels on a grid to LLVM modules for nvptx64, and to PTX.

The entry of a kernel is ``symbol(failed, parameters..., dims...)``: the address of a word that
holds the least number of a failure; for each parameter its address, followed, if it is strided,
by one byte stride per axis; the value of each dim. All in device memory, naturally aligned.

Not here: which axes are bound to what (compiler/kernel/grid.py), assembling and launching.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

from ....compiler.dims import Dim
from ....compiler.kernel.grid import GridKernel, verify_binds
from ....compiler.kernel.kernel import Kernel
from ..frame import Buffer, Frame, Level
from ..function import contiguous_strides
from ..machine import Machine, target_machine
from ..site import Site
from ..types import I32, I64, POINTER, VOID
from ..uninterrupted import uninterrupted
from .threads import Threads

TRIPLE = "nvptx64-nvidia-cuda"
ARCHITECTURES = ("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100")


@cache
def device_machine(architecture: str) -> Machine:
    """The machine of a GPU architecture. Raises ValueError for one we do not generate for."""
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ValueError(f"no code for {architecture!r}: it is none of {known}")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return Machine(TRIPLE, architecture, frozenset())


def build_module(
    kernels: Sequence[GridKernel], machine: Machine, threads: Callable[[int], Threads] = Threads
) -> ir.Module:
    """One module with the entries ``k0``, ``k1``, ... in order. threads: what a thread knows of
    itself, for blocks of so many; tests run the module on the host as its only thread."""
    module = ir.Module(name="kernels")
    module.triple = machine.triple
    for position, kernel in enumerate(kernels):
        _emit(module, machine, kernel, f"k{position}", threads(kernel.threads))
    return module


def ptx_text(kernels: Sequence[GridKernel], architecture: str) -> str:
    """The module as PTX."""
    machine = device_machine(architecture)
    return _ptx(build_module(kernels, machine), machine)


@uninterrupted()
def _ptx(module: ir.Module, machine: Machine) -> str:
    emitter = target_machine(machine, 3)
    reference = llvm.parse_assembly(str(module))
    reference.data_layout = str(emitter.target_data)
    text: str = emitter.emit_assembly(reference)
    return text


def _emit(
    module: ir.Module, machine: Machine, mapped: GridKernel, symbol: str, threads: Threads
) -> None:
    kernel = mapped.kernel
    verify_binds(kernel)
    types, names = _signature(kernel)
    function = ir.Function(module, ir.FunctionType(VOID, types), symbol)
    function.calling_convention = threads.convention
    function.attributes.add("nounwind")
    for argument, name in zip(function.args, names):
        argument.name = name
    entry = function.append_basic_block("entry")
    builder = ir.IRBuilder(entry)
    frame = Frame(Site(builder, machine), kernel, function, threads)
    frame.levels.append(Level(entry))
    _bind_arguments(frame)
    threads.read_position(builder)
    start = frame.block("start")
    builder.branch(start)
    builder.position_at_end(start)
    frame.emit(kernel.body)
    builder.branch(frame.exit)
    builder.position_at_end(frame.exit)
    builder.ret_void()
    count = module.add_metadata([function, "reqntidx", ir.Constant(I32, mapped.threads)])
    module.add_named_metadata("nvvm.annotations", count)


def _signature(kernel: Kernel) -> tuple[list[ir.Type], list[str]]:
    types, names = [POINTER], ["failed"]
    for p in kernel.params:
        types.append(POINTER)
        names.append(p.name)
        if p.strided:
            types += [I64] * len(p.shape)
            names += [_stride(p.name, axis) for axis in range(len(p.shape))]
    return types + [I64] * len(kernel.dims), names + list(kernel.dims)


def _stride(name: str, axis: int) -> str:
    return f"{name}.stride{axis}"


def _bind_arguments(frame: Frame) -> None:
    arguments = {a.name: a for a in frame.function.args}
    for p in frame.kernel.params:
        strides = contiguous_strides(p)
        if p.strided:
            words = [_stride(p.name, axis) for axis in range(len(p.shape))]
            frame.dims.update((word, arguments[word]) for word in words)
            strides = tuple(Dim.symbol(word) for word in words)
        frame.buffers[p.name] = Buffer(p.name, p.dtype, arguments[p.name], strides)
    for name in frame.kernel.dims:
        frame.dims[name] = arguments[name]
