"""The two results of one ufunc where the arrays for them share memory: which is written last.

NumPy goes from element to element. Its loops for floats store the second result first, those for
integers the first. An output that overlaps what is read otherwise than element by element is made
in a copy, which is put there when all is done; behind a mask outputs are read, too.

Not here: outputs of another type than the result or of several axes. NumPy brings those there by
the buffer, so one after the other (but goes on as above where all axes can be run through as one).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import BOOL, F16, F32, F64, I64

from ..tracing.box import Box, SharedBase
from ..tracing.state import Trace
from ..tracing.tensor import TracedArray
from ..tracing.views import Base, Slice, Step, read_steps, write_steps
from .operands import value_of
from .words import broadcast_to, full, sequence

Values = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an array of one axis lies: every `step`-th element of a row of memory from `start`."""

    memory: Base | Box
    steps: tuple[Step, ...]
    start: Size
    step: int

    def differs(self, other: _Place | None) -> bool:
        """Whether the other array may overlap this one, and is not just the same elements."""
        if other is None or other.memory is not self.memory:
            return False
        return (self.start, self.step) != (other.start, other.step)

    @property
    def content(self) -> Value:
        """What the memory holds now."""
        memory = self.memory
        return memory.content if isinstance(memory, Box) else memory.value


def final_contents(
    trace: Trace, op: str, values: Values, outs: Sequence[Any], args: Sequence[Any], where: Any
) -> Values:
    """What the outputs hold in the end: writing these one after the other gives NumPy's result."""
    places = [_place(trace, out) for out in outs]
    first, second = places
    if first is None or second is None or first.memory is not second.memory:
        return values
    if any(value.tensor.dtype is not out.tensor_type.dtype for value, out in zip(values, outs)):
        return values
    operands = [place for place in (_place(trace, arg) for arg in args) if place]
    late = [any(place.differs(other) for other in operands) for place in (first, second)]
    if where is not True and not any(late):
        late[0] = first.differs(second)
    floats = (F32, F64, F16) if op == "divmod" else (F32, F64)
    order = (1, 0) if values[0].tensor.dtype in floats else (0, 1)
    before = content = first.content
    masked = [_masked(trace, where, value, out.value) for value, out in zip(values, outs)]
    if any(late) or not first.differs(second):
        for at in sorted(order, key=lambda at: (late[at], at if late[at] else 0)):
            content = write_steps(trace, content, (first, second)[at].steps, masked[at])
    else:
        content = _by_time(trace, before, masked, [first.steps, second.steps], order)
    return tuple(read_steps(trace, content, place.steps) for place in (first, second))


def _place(trace: Trace, array: Any) -> _Place | None:
    """Where it lies, if that is a part of a row, taken by slices."""
    if type(array) is not TracedArray:
        return None
    base = array.base_memory
    steps = array.steps
    memory: Base | Box = base
    if isinstance(base, SharedBase):
        memory, steps = base.box, (*base.steps, *steps)
    start: Size = 0
    pace = 1
    for step in steps:
        if not isinstance(step, Slice) or len(step.start) != 1:
            return None
        start, pace = start + step.start[0] * pace, pace * step.step[0]
    if array.tensor_type.rank != 1:
        return None
    return _Place(memory, steps, start if type(start) is int else trace.sizes.normal(start), pace)


def _by_time(
    trace: Trace,
    before: Value,
    values: Sequence[Value],
    steps: Sequence[tuple[Step, ...]],
    order: tuple[int, int],
) -> Value:
    """The memory's content when each of its elements keeps what is written to it last."""
    never = full(trace, before.tensor.shape, -1, I64)
    times = []
    for at in (0, 1):
        turns = sequence(trace, values[at].tensor.shape[0])
        rank = trace.literal(order.index(at), I64)
        time = trace.emit("add", trace.emit("add", turns, turns), rank)
        times.append(write_steps(trace, never, steps[at], time))
    first, second = (write_steps(trace, before, s, v) for s, v in zip(steps, values))
    later = trace.emit("greater", times[0], times[1])
    content: Value = trace.emit("select", later, first, second)
    return content


def _masked(trace: Trace, where: Any, value: Value, before: Value) -> Value:
    """`value` where the mask holds, else what was there."""
    value = broadcast_to(trace, value, before.tensor.shape, "output")
    if where is True:
        return value
    chosen: Value = trace.emit("select", trace.cast(value_of(where), BOOL), value, before)
    return chosen
