"""Calls of library routines: the inner loops of NumPy's generalized ufuncs.

A routine takes ``(addresses, sizes, steps, data)``: how many problems, then the sizes of the core
axes; the step from problem to problem of each argument, then the strides of its core axes.

Invariants: a few problems at a time, so that a call can be cancelled between; the floating-point
flags are clear before each, so that what they say afterwards is the routine's.
Not here: which kernels call (compiler/kernel/library.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...compiler.dims import Size, product
from ...compiler.kernel.kernel import Call
from ...compiler.kernel.library import core_sizes
from ...compiler.ops.library import ROWS
from .control import call_address, fail_where, poll
from .frame import Frame, constant
from .gemm.code import loop
from .indices import scalar_size
from .types import I8, I32, I64, POINTER, VOID, intrinsic

_ROUTINE = ir.FunctionType(VOID, [POINTER] * 4)
_AT_ONCE = 16  # problems
_INVALID, _FLAGS = 1, 0x3F  # bits of MXCSR
_WORK = 1 << 13  # for the poll: of one problem


def emit_call(frame: Frame, s: Call) -> None:
    """The body of a kernel that calls a routine."""
    _Calling(frame, s).emit()


class _Calling:
    def __init__(self, frame: Frame, s: Call) -> None:
        self.frame, self.s = frame, s
        self.builder = frame.builder
        sizes = core_sizes(s, frame.parameters)
        self.outer = [self._outer(name, len(core)) for name, core in zip(s.arguments, s.core)]
        inner = [step for name, core in zip(s.arguments, s.core)
                 for step in self._inner(name, len(core))]  # fmt: skip
        self.addresses = frame.stack_slot(I64, len(s.arguments))
        self.sizes = frame.stack_slot(I64, 1 + len(sizes))
        self.steps = frame.stack_slot(I64, len(self.outer) + len(inner))
        self._fill(self.sizes, [0, *sizes.values()])
        self._fill(self.steps, [*self.outer, *inner])
        table = frame.buffers[s.table].pointer
        row = ROWS[s.op, frame.parameters[s.arguments[0]].dtype]
        self.code, self.data = (
            self.builder.load(self._word(table, 2 * row + at), typ=POINTER) for at in range(2)
        )

    def emit(self) -> None:
        """All problems of the range, some at a time."""
        frame, b = self.frame, self.builder

        def some(at: ir.Value, _: Sequence[ir.Value]) -> None:
            poll(frame, constant(_AT_ONCE * _WORK))
            left = b.sub(frame.end, at)
            count = intrinsic(b, "llvm.smin", I64, [left, constant(_AT_ONCE)], I64)
            self._call(at, count)

        loop(b, frame.begin, frame.end, _AT_ONCE, some)

    def _call(self, at: ir.Value, count: ir.Value) -> None:
        frame, b, s = self.frame, self.builder, self.s
        b.store(count, self.sizes)
        for place, name in enumerate(s.arguments):
            offset = b.mul(at, scalar_size(frame, self.outer[place]))
            pointer = b.gep(frame.buffers[name].pointer, [offset], source_etype=I8)
            b.store(pointer, self._word(self.addresses, place))
        if not s.fails:
            call_address(frame, self.code, _ROUTINE, self._given())
            return
        flags = frame.stack_slot(I32)
        intrinsic(b, "llvm.x86.sse.stmxcsr", VOID, [flags])
        clear = b.and_(b.load(flags, typ=I32), ir.Constant(I32, ~_FLAGS))
        b.store(clear, flags)
        intrinsic(b, "llvm.x86.sse.ldmxcsr", VOID, [flags])
        call_address(frame, self.code, _ROUTINE, self._given())
        intrinsic(b, "llvm.x86.sse.stmxcsr", VOID, [flags])
        seen = b.and_(b.load(flags, typ=I32), ir.Constant(I32, _INVALID))
        bad = b.icmp_unsigned("!=", seen, ir.Constant(I32, 0))
        fail_where(frame, bad, frame.codes[id(s)], None, None)

    def _given(self) -> list[ir.Value]:
        return [self.addresses, self.sizes, self.steps, self.data]

    def _outer(self, name: str, rank: int) -> Size:
        """Bytes from problem to problem; none where all share the argument."""
        parameter = self.frame.parameters[name]
        shape = parameter.shape
        if len(shape) == rank:
            return 0
        return product(shape[len(shape) - rank :]) * parameter.dtype.itemsize

    def _inner(self, name: str, rank: int) -> list[Size]:
        """The strides of the core axes."""
        parameter = self.frame.parameters[name]
        shape = parameter.shape
        return [
            product(shape[axis + 1 :]) * parameter.dtype.itemsize
            for axis in range(len(shape) - rank, len(shape))
        ]

    def _fill(self, slot: ir.Value, sizes: Sequence[Size]) -> None:
        for at, size in enumerate(sizes):
            self.builder.store(scalar_size(self.frame, size), self._word(slot, at))

    def _word(self, slot: ir.Value, at: int) -> ir.Value:
        return self.builder.gep(slot, [constant(at)], source_etype=I64)
