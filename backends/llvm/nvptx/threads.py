"""Blocks and threads as code: bound loops, barriers, shared memory.

A bound axis is a loop that starts at the own block's or thread's number and steps by how many
there are. Where threads meet is `segments`' to say.

Invariants: a barrier is emitted in the common code of a block only.
Not here: statements of one thread (the llvm core emits them, one lane wide).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from llvmlite import ir

from ....compiler.dims import Size
from ....compiler.kernel.grid import BLOCK, segments
from ....compiler.kernel.kernel import Local, Parallel, Statement
from ..block import EMITTERS
from ..frame import Buffer, Frame, constant
from ..indices import scalar_size
from ..loops import emit_parallel
from ..statements import emit_local
from ..types import I32, I64, POINTER, VOID, intrinsic, memory_element, part_count

SHARED = 3
_REGISTER = "llvm.nvvm.read.ptx.sreg"


class Threads:
    """The `emit` of a frame: common code of a block, then code of one thread inside a nest.

    convention: how the entry is called.
    """

    convention = "ptx_kernel"

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.in_thread = False
        self.in_order = False
        self.thread: ir.Value
        self.block: ir.Value
        self.blocks: ir.Value
        self.table: Mapping[type[Any], Callable[..., None]] = {
            **EMITTERS, Parallel: self._parallel, Local: self._local
        }  # fmt: skip

    def read_position(self, builder: ir.IRBuilder) -> None:
        """The own thread's and block's number, and how many blocks there are."""
        names = ("tid.x", "ctaid.x", "nctaid.x")
        words = [intrinsic(builder, f"{_REGISTER}.{name}", I32, []) for name in names]
        self.thread, self.block, self.blocks = (builder.zext(word, I64) for word in words)

    def barrier(self, frame: Frame) -> None:
        """All threads of the block have come here, and see what was stored before."""
        name = "llvm.nvvm.barrier.cta.sync.aligned.all"
        intrinsic(frame.builder, name, VOID, [ir.Constant(I32, 0)])

    def __call__(self, frame: Frame, statements: Iterable[Statement]) -> None:
        """Emit statements in order, with the barriers between them."""
        body = tuple(statements)
        if self.in_thread:
            self._plain(frame, body)
            return
        repeated, self.in_order = self.in_order, True
        for piece, barrier in segments(body, repeated):
            self._plain(frame, piece)
            if barrier:
                self.barrier(frame)
        self.in_order = repeated

    def _plain(self, frame: Frame, statements: Iterable[Statement]) -> None:
        for s in statements:
            self.table[type(s)](frame, s)

    def _parallel(self, frame: Frame, s: Parallel) -> None:
        if s.bind is None:
            emit_parallel(frame, s)
            return
        before = self.in_thread, self.in_order
        self.in_thread, self.in_order = s.bind == BLOCK, False
        if s.bind == BLOCK and _at_most(s.extent, self.threads):
            _once(frame, s, self.thread)
        elif s.bind == BLOCK:
            _strided(frame, s, self.thread, constant(self.threads))
        else:
            _strided(frame, s, self.block, self.blocks)
        self.in_thread, self.in_order = before

    def _local(self, frame: Frame, s: Local) -> None:
        if s.memory != "shared":
            emit_local(frame, s)
            return
        count = part_count(s.dtype)
        strides: list[Size] = []
        size: Size = s.dtype.itemsize
        for extent in reversed(s.shape):
            if not isinstance(extent, int):
                raise NotImplementedError(f"local {s.name}: a tile needs a fixed shape")
            count *= extent
            strides.insert(0, size)
            size = size * extent
        typ = ir.ArrayType(memory_element(s.dtype), count)
        memory = ir.GlobalVariable(
            frame.builder.module, typ, f"{frame.function.name}.{s.name}", addrspace=SHARED
        )
        memory.linkage, memory.align = "internal", 16
        memory.initializer = ir.Constant(typ, ir.Undefined)
        with frame.at_level(0):
            pointer = frame.builder.addrspacecast(memory, POINTER)
        frame.buffers[s.name] = Buffer(s.name, s.dtype, pointer, tuple(strides))


def _at_most(size: Size, limit: int) -> bool:
    """Whether a size is seen to be `limit` or less."""
    if isinstance(size, int):
        return size <= limit
    ((factors, coefficient), *rest) = size.terms
    if rest or coefficient != 1 or len(factors) != 1 or isinstance(factors[0], str):
        return False
    operation, a, b = cast(tuple[str, Size, Size], factors[0])
    sides = (_at_most(a, limit), _at_most(b, limit))
    return any(sides) if operation == "min" else operation == "max" and all(sides)


def _once(frame: Frame, s: Parallel, index: ir.Value) -> None:
    """``if index < extent``, where no thread has a second iteration."""
    builder = frame.builder
    end = scalar_size(frame, s.extent)
    top, done = frame.block("top"), frame.block("done")
    builder.cbranch(builder.icmp_signed("<", index, end), top, done)
    builder.position_at_end(top)
    with frame.iteration(s.axis, index):
        frame.emit(s.body)
    builder.branch(done)
    builder.position_at_end(done)


def _strided(frame: Frame, s: Parallel, first: ir.Value, step: ir.Value) -> None:
    """``for axis = first; axis < extent; axis += step``."""
    builder = frame.builder
    end = scalar_size(frame, s.extent)
    before, top, done = builder.block, frame.block("top"), frame.block("done")
    builder.cbranch(builder.icmp_signed("<", first, end), top, done)
    builder.position_at_end(top)
    index = builder.phi(I64)
    index.add_incoming(first, before)
    with frame.iteration(s.axis, index):
        frame.emit(s.body)
    following = builder.add(index, step, flags=["nsw"])
    index.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, end), top, done)
    builder.position_at_end(done)
