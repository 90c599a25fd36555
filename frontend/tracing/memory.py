"""Memory of a trace as bodies of control flow inside it read and write it.

An array that lies around a body is the same memory inside it: what the body writes is seen by its
other views there, is carried by the node like a Variable, and is written to the memory around it
when the node is made.

    x, v = x[1:]       around: one Base        in a body: one RegionBase, whose content is
    while t: v[0] += 1                         states[memory] once the body has written it

Invariants: memory has one `Memory`, whichever bodies meet it; a body that writes nothing of it
carries nothing of it.
Not here: Variables, which are carried in the same way (variable.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import replace
from tracemill.compiler.types import TensorType

from .box import Box, SharedBase
from .gathered import Element, Window
from .state import Trace
from .views import Base, Step, read_steps, write_steps


class Memory:
    """Memory that `owner` made: of one array, or the box that several share."""

    def __init__(self, owner: Trace, root: Base | Box) -> None:
        self.owner = owner
        self.root = root
        self.name = f"memory {id(self)}"  # no Variable has it: text does not show it

    @property
    def type(self) -> TensorType:
        """Of all of it."""
        return self._content().tensor

    def get(self, trace: Trace) -> Value:
        """What it holds for `trace`, which is the owner's or that of a body inside it."""
        if trace is self.owner:
            return self._content()
        assert trace.states is not None
        assert trace.outer is not None
        held = trace.states.get(self.name)
        return trace.lifted(self.get(trace.outer)) if held is None else held

    def put(self, trace: Trace, value: Value) -> None:
        """Let `trace` see `value` from now on; control flow carries it out of its body."""
        if trace is not self.owner:
            assert trace.states is not None
            trace.states[self.name] = value
            trace.assigned[self.name] = self
        elif isinstance(self.root, Box):
            self.root.content = value
            self.root.version += 1
        else:
            self.root.value = value
            self.root.version += 1

    def is_written(self, trace: Trace) -> bool:
        """Whether it is no longer what the call brought."""
        at: Trace | None = trace
        while at is not None and at is not self.owner:
            if at.states is not None and self.name in at.states:
                return True
            at = at.outer
        return self.root.version > 0

    def _content(self) -> Value:
        return self.root.content if isinstance(self.root, Box) else self.root.value


class RegionBase(Base):
    """Memory of one array around a body, inside it."""

    __slots__ = ("memory", "part")

    def __init__(self, trace: Trace, base: Base, owner: Trace) -> None:
        self.trace = trace
        self.memory: Memory
        self.part: SharedBase | None
        if isinstance(base, RegionBase):
            self.memory, self.part = base.memory, base.part
        else:
            self.memory = _memory_of(owner, base)
            self.part = base if isinstance(base, SharedBase) else None
        self.strides = base.strides
        self.input = None
        self.writeable = base.writeable
        self.layout_of = base.layout_of
        self.order_of = base.order_of

    @property
    def value(self) -> Value:
        """The content of this array."""
        if self.part is None:
            return self.memory.get(self.trace)
        if not self.memory.is_written(self.trace):
            return lifted_value(self.trace, self.part.initial, self.memory.owner)
        return read_steps(self.trace, self.memory.get(self.trace), self.part.steps)

    @value.setter
    def value(self, value: Value) -> None:
        if self.part is not None:
            self.part.is_written = True
            if self.part.steps:
                held = self.memory.get(self.trace)
                value = write_steps(self.trace, held, self.part.steps, value)
        self.memory.put(self.trace, value)

    @property
    def version(self) -> int:
        """Tells contents apart."""
        assert self.trace.states is not None
        held = self.trace.states.get(self.memory.name)
        return 0 if held is None else id(held)

    @version.setter
    def version(self, version: int) -> None:
        pass  # it is the content's


def region_base(trace: Trace, base: Base, owner: Trace) -> Base:
    """The memory `base` of `owner` inside a body."""
    found: tuple[Base, RegionBase] | None = trace.regional.get(id(base))
    if found is None:
        found = trace.regional[id(base)] = base, RegionBase(trace, base, owner)
    return found[1]


def region_step(trace: Trace, step: Step, owner: Trace) -> Step:
    """A step of a view that was made around a body, inside it."""
    if isinstance(step, Element):
        return replace(
            step, positions=tuple([lifted_value(trace, p, owner) for p in step.positions])
        )
    if isinstance(step, Window):
        return replace(step, start=lifted_value(trace, step.start, owner))
    return step


def lifted_value(trace: Trace, value: Value, owner: Trace) -> Value:
    """A value of `owner`, which lies around the body that `trace` is of, inside it."""
    if trace is owner:
        return value
    assert trace.outer is not None
    return trace.lifted(lifted_value(trace.outer, value, owner))


def _memory_of(owner: Trace, base: Base) -> Memory:
    root = root_of(base)
    found: Memory | None = owner.memory.get(id(root))
    if found is None:
        found = owner.memory[id(root)] = Memory(owner, root)
    return found


def root_of(base: Base) -> Base | Box:
    """What all arrays in this memory have in common, whichever bodies meet them."""
    if isinstance(base, RegionBase):
        return base.memory.root
    return base.box if isinstance(base, SharedBase) else base


def around(trace: Trace) -> Iterator[Trace]:
    """A trace, and those of the bodies it is in."""
    at: Trace | None = trace
    while at is not None:
        yield at
        at = at.outer if at.states is not None else None
