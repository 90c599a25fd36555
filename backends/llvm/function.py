"""A kernel as one LLVM function with the kernel ABI (ARCHITECTURE.md).

A kernel that is a matrix product, or packs an operand of one, is launched over tiles and has its
own lowering (gemm), and so have the steps of a sort (sorting) and calls of libraries (calling);
all others are their statements, and do not load those.

Not here: modules and object code (module.py).
"""

from __future__ import annotations

from llvmlite import ir

from ...compiler.dims import Dim, Size
from ...compiler.kernel.contraction import contraction_of
from ...compiler.kernel.kernel import Kernel, Parameter
from ...compiler.kernel.library import call_of
from ...compiler.kernel.packing import packing_of
from ...compiler.kernel.sorting import is_sorting
from .block import emit_block
from .control import emit_failures, leave_if_cancelled
from .frame import Buffer, Frame, Level, constant
from .machine import Machine
from .outlined import Routines
from .site import Site
from .types import I64, POINTER, VOID, intrinsic

KERNEL = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64])


def emit_kernel(
    module: ir.Module,
    machine: Machine,
    kernel: Kernel,
    symbol: str,
    routines: Routines | None = None,
) -> ir.Function:
    """Add ``void symbol(ctl, args, begin, end)`` for `kernel` to the module."""
    function = ir.Function(module, KERNEL, symbol)
    function.attributes.add("nounwind")
    for argument, name in zip(function.args, ("ctl", "args", "begin", "end")):
        argument.name = name
    entry = function.append_basic_block("entry")
    builder = ir.IRBuilder(entry)
    frame = Frame(Site(builder, machine, routines), kernel, function, emit_block)
    frame.words, frame.begin, frame.end = function.args[1:]
    frame.levels.append(Level(entry))
    _read_arguments(frame)
    start = frame.block("start")
    builder.branch(start)
    builder.position_at_end(start)
    leave_if_cancelled(frame)
    _leave_if_empty(frame)
    _emit_body(frame, symbol)
    builder.branch(frame.exit)
    emit_failures(frame)
    builder.position_at_end(frame.exit)
    if frame.streams:
        # Stores past the caches are weakly ordered: they come before whatever tells others.
        intrinsic(builder, "llvm.x86.sse.sfence", VOID, [])
    builder.ret_void()
    return function


def _emit_body(frame: Frame, symbol: str) -> None:
    kernel = frame.kernel
    product = packing_of(kernel) or contraction_of(kernel)
    if product is not None:
        from .gemm.kernels import emit_product

        emit_product(frame, product, symbol)
    elif is_sorting(kernel):
        from .sorting.kernels import emit_sort

        emit_sort(frame, symbol)
    elif (call := call_of(kernel)) is not None:
        from .calling import emit_call

        emit_call(frame, call)
    else:
        frame.emit(kernel.body)


def _leave_if_empty(frame: Frame) -> None:
    """A launch of no iterations does nothing, also where no loop is spread over the range."""
    work = frame.block("work")
    some = frame.builder.icmp_signed("<", frame.begin, frame.end)
    frame.builder.cbranch(some, work, frame.exit)
    frame.builder.position_at_end(work)


def _read_arguments(frame: Frame) -> None:
    """Addresses, strides and dims from the argument words."""
    builder = frame.builder
    position = 0

    def word(typ: ir.Type) -> ir.Value:
        nonlocal position
        place = builder.gep(frame.words, [constant(position)], source_etype=I64)
        position += 1
        return builder.load(place, typ=typ)

    for parameter in frame.kernel.params:
        pointer = word(POINTER)
        strides = contiguous_strides(parameter)
        if parameter.strided:
            names = [f"{parameter.name}.stride{axis}" for axis in range(len(parameter.shape))]
            frame.dims.update((name, word(I64)) for name in names)
            strides = tuple(Dim.symbol(name) for name in names)
        frame.buffers[parameter.name] = Buffer(parameter.name, parameter.dtype, pointer, strides)
    for name in frame.kernel.dims:
        frame.dims[name] = word(I64)


def contiguous_strides(parameter: Parameter) -> tuple[Size, ...]:
    """Byte strides of a C-contiguous parameter."""
    strides: list[Size] = []
    step: Size = parameter.dtype.itemsize
    for extent in reversed(parameter.shape):
        strides.insert(0, step)
        step = step * extent
    return tuple(strides)
