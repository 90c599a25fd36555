"""Memory that several arrays of a call share, as the trace sees it.

Each array is a `Base` of its own, with its own strides and input, whose content is a region of
one box. Until something is written the content is what the call brings; a write makes a new
version of the box, and so of every array in it.

Invariants: the box is only made when something is written; of it only places that are some
array's are read.
Not here: how the arrays lie to each other (sharing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass

from .sharing import Region, Sharing, count
from .views import (
    Base,
    Broadcast,
    Reshape,
    Slice,
    Step,
    Strides,
    Transpose,
    read_steps,
    write_steps,
)

if TYPE_CHECKING:
    from .state import Trace
    from .tensor import TracedArray


class Box:
    """The memory itself. extents: sizes of its axes. complete: adds what parts are missing."""

    def __init__(
        self, trace: Trace, extents: tuple[Size, ...], complete: Callable[[], None]
    ) -> None:
        self.trace = trace
        self.extents = extents
        self._complete = complete
        self.version = 0
        self.parts: list[SharedBase] = []
        self._content: Value | None = None

    @property
    def content(self) -> Value:
        """What the box holds now."""
        if self._content is None:
            self._complete()
            self._content = self._initial()
        return self._content

    @content.setter
    def content(self, value: Value) -> None:
        self._content = value

    @property
    def whole(self) -> SharedBase | None:
        """An array that is all of the box, if there is one: preferably one that may be written."""
        found = [part for part in self.parts if part.is_whole]
        return next((part for part in found if part.writeable), found[0] if found else None)

    def _initial(self) -> Value:
        content = self._empty(self.parts[0].initial)
        whole = self.whole
        for part in self.parts if whole is None else (whole,):
            content = part.put(content, part.initial)
        return content

    def _empty(self, like: Value) -> Value:
        zero = self.trace.builder.constant(np.zeros((), like.tensor.dtype.numpy))
        extents = tuple([self.trace.sizes.normal(size) for size in self.extents])
        value: Value = self.trace.emit("broadcast_to", zero, shape=extents)
        return value


class SharedBase(Base):
    """Memory of one array that lies in a box. initial: what it holds at the call, read from the
    first of several arrays that are the same elements."""

    __slots__ = ("_content", "_seen", "box", "initial", "is_whole", "is_written", "region", "steps")

    def __init__(
        self, box: Box, base: Base, region: Region, steps: tuple[Step, ...], is_whole: bool
    ) -> None:
        self.box = box
        self.trace = box.trace
        self.region = region
        self.steps = steps
        self.is_whole = is_whole
        self.is_written = False
        same = [part for part in box.parts if is_whole and part.is_whole and part.region == region]
        self.initial: Value = same[0].initial if same else base.value
        self._content = self.initial
        self._seen = 0
        self.strides = base.strides
        self.input = base.input
        self.writeable = base.writeable
        self.layout_of = base.layout_of
        self.order_of = base.order_of

    def put(self, content: Value, part: Value) -> Value:
        """The content of the box with this array's replaced."""
        return write_steps(self.box.trace, content, self.steps, part) if self.steps else part

    @property
    def value(self) -> Value:
        """The content of this array."""
        if self._seen != self.box.version:
            self._content = read_steps(self.box.trace, self.box.content, self.steps)
            self._seen = self.box.version
        return self._content

    @value.setter
    def value(self, value: Value) -> None:
        self.box.content = self.put(self.box.content, value)
        self._content = value

    @property
    def version(self) -> int:
        """Counts what is written to the box."""
        return self.box.version

    @version.setter
    def version(self, version: int) -> None:
        self.box.version = self._seen = version
        self.is_written = True


@dataclass(frozen=True, slots=True)
class Places:
    """Elements at places of a row that no slice and no reshape describe. steps: of each axis."""

    start: int
    shape: tuple[Size, ...]
    steps: tuple[int, ...]
    writeable: bool = True

    def read(self, trace: Trace, parent: Value) -> Value:
        value: Value = trace.emit("gather", parent, self._indices(trace), axes=(0,))[0]
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        value: Value = trace.emit("scatter", parent, part, self._indices(trace), axes=(0,))[0]
        return value

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return None

    def _indices(self, trace: Trace) -> Value:
        shape = tuple([trace.sizes.normal(size) for size in self.shape])
        total = trace.builder.constant(np.int64(self.start))
        for axis, step in enumerate(self.steps):
            if step:
                row = trace.emit("iota", size=shape[axis])
                row = trace.emit("mul", row, trace.builder.constant(np.int64(step)))
                spread = tuple([n if d == axis else 1 for d, n in enumerate(shape)])
                total = trace.emit("add", total, trace.emit("reshape", row, shape=spread))
        value: Value = trace.emit("broadcast_to", total, shape=shape)
        return value


class Boxes:
    """The boxes of a trace, and which arrays lie in them."""

    def __init__(
        self, trace: Trace, sharings: Sequence[Sharing], meet: Callable[[Any], TracedArray]
    ) -> None:
        """meet: the traced array for a captured one."""
        self._trace = trace
        self._sharings = sharings
        self._meet = meet
        self._boxes: dict[tuple[int, int], Box] = {}

    def add_arguments(self, made: Sequence[Any]) -> None:
        """The traced values of all leaves, before the function sees them."""
        for at, sharing in enumerate(self._sharings):
            shapes = [
                key.shape if isinstance(key, np.ndarray) else made[key].tensor_type.shape
                for key in sharing.keys
            ]
            for number, group in enumerate(sharing.groups):
                if len(group) == 1:
                    continue
                extents = [
                    sharing.regions[m].ends(shapes[m])[d] for d, m in enumerate(sharing.longest)
                ]
                box = self._boxes[at, number] = Box(self._trace, tuple(extents), self.add_missing)
                for member in group:
                    if isinstance(key := sharing.keys[member], int):
                        self._put(made[key], box, sharing.regions[member])

    def add_captured(self, array: Any, made: TracedArray) -> None:
        """A captured array that the trace has just met."""
        for (at, number), box in self._boxes.items():
            sharing = self._sharings[at]
            for member in sharing.groups[number]:
                if sharing.keys[member] is array:
                    self._put(made, box, sharing.regions[member])

    def add_missing(self) -> None:
        """All captured arrays that the trace has not met yet."""
        for sharing in self._sharings:
            for key in sharing.keys:
                if isinstance(key, np.ndarray):
                    self._meet(key)

    def _put(self, made: TracedArray, box: Box, region: Region) -> None:
        shape = made.tensor_type.shape
        whole = _is_whole(self._trace, box, region, shape)
        steps = _steps(region, shape, len(box.extents))
        part = SharedBase(box, made.base_memory, region, steps, whole)
        box.parts.append(part)
        made.lie_in(part)


def _is_whole(trace: Trace, box: Box, region: Region, shape: Sequence[Size]) -> bool:
    """Whether an array is all of its box; the sizes that say so are made one."""
    sizes: list[Size] = [1] * len(box.extents)
    for run in region.runs:
        sizes[run.box] = count(shape, run)
    hints = [trace.sizes.hint(size) for size in sizes]
    if (
        any(region.start)
        or not region.is_box
        or any(abs(run.step) != 1 for run in region.runs)
        or hints != [trace.sizes.hint(extent) for extent in box.extents]
    ):
        return False
    for size, extent in zip(sizes, box.extents, strict=True):
        trace.sizes.equal(size, extent, "arrays that share memory are the same elements")
    return True


def _steps(region: Region, shape: tuple[Size, ...], rank: int) -> tuple[Step, ...]:
    """From the box to an array."""
    if not region.is_box:
        running = {run.axes[0]: run.step for run in region.runs}
        steps = tuple([running.get(axis, 0) for axis in range(len(shape))])
        return (Places(region.start[0], shape, steps),)
    runs = sorted(region.runs, key=lambda run: run.box)
    axes = [axis for run in runs for axis in run.axes]
    found: list[Step] = [_slice(region, shape, rank)]
    split = tuple([shape[axis] for axis in axes])
    if len(axes) != rank or any(len(run.axes) > 1 for run in runs):
        found.append(Reshape(split))
    if axes != sorted(axes):
        perm = tuple(sorted(range(len(axes)), key=axes.__getitem__))
        found.append(Transpose(perm))
    if len(axes) != len(shape):
        thin = tuple([size if axis in axes else 1 for axis, size in enumerate(shape)])
        found.append(Reshape(thin))
        if thin != shape:
            found.append(Broadcast(shape))
    return tuple(found)


def _slice(region: Region, shape: Sequence[Size], rank: int) -> Slice:
    start: list[Size] = list(region.start)
    size: list[Size] = [1] * rank
    step = [1] * rank
    for run in region.runs:
        length = count(shape, run)
        if run.step < 0:
            start[run.box] = start[run.box] + (length - 1) * -run.step
        size[run.box], step[run.box] = length, run.step
    return Slice(tuple(start), tuple(size), tuple(step))
