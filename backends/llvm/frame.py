"""The state of generating one kernel's function: values, axes, levels of loops, buffers.

A `Level` is an enclosing loop. Its `top` block runs once per iteration before everything else,
so an index expression is computed in the top of the innermost level whose axis it names, once,
and found again by all later uses: strides and row addresses leave the inner loops.

Invariants: `levels[0]` is the function's entry; an axis belongs to one level; the builder stands
in a block without terminator. The vector axis is the one whose consecutive values are lanes.
Not here: statements (statements.py), index expressions (indices.py), memory (memory.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import cached_property

from llvmlite import ir

from ...compiler.dims import Size
from ...compiler.kernel.kernel import (
    Call,
    Check,
    Checked,
    Kernel,
    Load,
    Parallel,
    Statement,
    Store,
    Update,
    value_dtypes,
    walk,
)  # fmt: skip
from ...compiler.records import dataclass
from ...compiler.types import DType
from .machine import Machine
from .site import Site
from .types import I1, I64, POINTER, Lane, constant_of, vector_of


@dataclass(slots=True)
class Level:
    """One enclosing loop: where to put what is constant in an iteration, and what is there."""

    top: ir.Block
    memo: dict[object, ir.Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AxisValue:
    """The current index of an axis: `base` plus a constant, known at a level."""

    base: ir.Value
    offset: int
    level: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of a parameter or local: address and a byte stride per axis."""

    name: str
    dtype: DType
    pointer: ir.Value
    strides: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The vector context: which axis runs across lanes, how many, which are active."""

    axis: str | None = None
    width: int = 1
    mask: ir.Value | None = None


@dataclass(frozen=True, slots=True)
class Streaming:
    """Stores to these buffers go past the caches: where `when` (None: always) holds."""

    buffers: frozenset[str]
    when: ir.Value | None


class Frame:
    """Everything that is known at the current place of a kernel's function."""

    def __init__(
        self,
        site: Site,
        kernel: Kernel,
        function: ir.Function,
        emit: Callable[[Frame, Iterable[Statement]], None],
    ) -> None:
        self.site = site
        self._emit = emit
        self.kernel = kernel
        self.function = function
        self.control: ir.Value = function.args[0]
        # Where the host's kernel finds its arguments, and the range it is launched over.
        self.words: ir.Value
        self.begin: ir.Value
        self.end: ir.Value
        self.values: dict[str, Lane] = {}
        self.axes: dict[str, AxisValue] = {}
        self.dims: dict[str, ir.Value] = {}
        self.buffers: dict[str, Buffer] = {}
        self.levels: list[Level] = []
        self.lanes = Lanes()
        self.exit: ir.Block = function.append_basic_block("exit")
        self.codes = _failure_codes(kernel)
        self.thread_axis = next(
            (s.axis for s in walk(kernel.body) if isinstance(s, Parallel) and s.threads), None
        )
        self.parameters = {p.name: p for p in kernel.params}
        self.stores: Streaming | None = None
        self.streams = False
        self.dtypes = value_dtypes(kernel.body)
        self.ahead: tuple[str, int] | None = None
        self.work: ir.Value | None = None
        # Where a failure ends the kernel, and from where: its number, the value, the extent.
        self.failed: ir.Block | None = None
        self.failures: list[tuple[ir.Block, tuple[ir.Value, ir.Value, ir.Value]]] = []
        self.scrap: ir.Value | None = None

    @property
    def builder(self) -> ir.IRBuilder:
        """The builder of the function."""
        return self.site.builder

    @cached_property
    def loaded(self) -> frozenset[str]:
        """Buffers that the kernel reads: what it stores there is in the caches already."""
        return frozenset(s.buffer for s in walk(self.kernel.body) if isinstance(s, Load))

    @property
    def machine(self) -> Machine:
        """The machine code is generated for."""
        return self.site.machine

    def emit(self, statements: Iterable[Statement]) -> None:
        """Emit statements in the current context."""
        self._emit(self, statements)

    def block(self, name: str) -> ir.Block:
        """A new block of the function."""
        return self.function.append_basic_block(name)

    def piece(
        self,
        key: Hashable,
        args: Sequence[ir.Value],
        emit: Callable[[Frame, Sequence[ir.Value]], Sequence[ir.Value]],
    ) -> list[ir.Value]:
        """`emit(frame, args)`: here, or called where long pieces are routines (outlined.py).

        `key` and the machine say all that is emitted; it uses nothing of the frame but `args`.
        """
        if self.site.routines is None:
            return list(emit(self, args))
        return self.site.routines.call(self.site, key, args, emit)

    @contextmanager
    def at_level(self, level: int) -> Iterator[None]:
        """Emit in the top of a level."""
        block = self.builder.block
        self.builder.position_before(self.levels[level].top.terminator)
        yield
        self._return_to(block)

    @contextmanager
    def vectorised(self, lanes: Lanes) -> Iterator[None]:
        """Emit with another vector context."""
        before = self.lanes
        self.lanes = lanes
        yield
        self.lanes = before

    @contextmanager
    def streaming(self, stores: Streaming | None) -> Iterator[None]:
        """Emit with stores of some buffers going past the caches."""
        before = self.stores
        self.stores = stores
        yield
        self.stores = before

    @contextmanager
    def iteration(self, axis: str, base: ir.Value, offset: int = 0) -> Iterator[None]:
        """Emit the body of a loop over `axis`, whose top is the current block so far."""
        top = self.builder.block
        inside = self.block(axis)
        self.builder.branch(inside)
        self.builder.position_at_end(inside)
        self.levels.append(Level(top))
        around = self.axes.get(axis)
        self.axes[axis] = AxisValue(base, offset, len(self.levels) - 1)
        yield
        del self.axes[axis]
        if around is not None:
            self.axes[axis] = around
        self.levels.pop()

    def stack_slot(self, typ: ir.Type, count: int = 1) -> ir.Value:
        """Aligned memory in the function's frame."""
        builder = self.builder
        block = builder.block
        builder.position_before(self.levels[0].top.instructions[0])
        slot = builder.alloca(ir.ArrayType(typ, count))
        slot.align, slot.type = 64, POINTER
        self._return_to(block)
        return slot

    def _return_to(self, block: ir.Block) -> None:
        """Go on at the end of `block`, before its terminator if it has one."""
        if block.terminator is None:
            self.builder.position_at_end(block)
        else:
            self.builder.position_before(block.terminator)

    def active(self) -> ir.Value:
        """The mask of active lanes, all set where there is none."""
        if self.lanes.mask is not None:
            return self.lanes.mask
        return constant_of(vector_of(I1, self.lanes.width), 1)


def constant(value: int) -> ir.Constant:
    """An i64."""
    return ir.Constant(I64, value)


def offset_bytes(frame: Frame, pointer: ir.Value, offset: ir.Value | int) -> ir.Value:
    """pointer + offset bytes."""
    if isinstance(offset, int):
        if offset == 0:
            return pointer
        offset = constant(offset)
    result = frame.builder.gep(pointer, [offset], source_etype=ir.IntType(8))
    if isinstance(offset.type, ir.VectorType):
        result.type = ir.VectorType(POINTER, offset.type.count)
    return result


def _failure_codes(kernel: Kernel) -> dict[int, int]:
    """Statement identity -> the number of its failure (`kernel.failures`)."""
    failing = [s for s in walk(kernel.body) if _can_fail(s)]
    return {id(s): number for number, s in enumerate(failing)}


def _can_fail(statement: Statement) -> bool:
    if isinstance(statement, Load | Store | Update):
        return any(isinstance(index, Checked) for index in statement.index)
    return isinstance(statement, Check) or (isinstance(statement, Call) and statement.fails)


__all__ = ["AxisValue", "Buffer", "Frame", "Lanes", "Level", "constant", "offset_bytes"]
