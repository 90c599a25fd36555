"""Steps of views to places that are values: an element, or a part that begins where the run says.

Not here: diagonals, whose places are sizes (diagonal.py); slices of the run
(numpy/run_time_slices.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import I64

from .views import Strides

if TYPE_CHECKING:
    from .state import Trace

Places = tuple[Sequence[Value], tuple[int, ...]]  # values, and the neighbouring axes they are along


class Gathered(ABC):
    """A step that is read by a gather and written by a scatter."""

    __slots__ = ()

    @abstractmethod
    def places(self, trace: Trace, parent: Value) -> Places:
        """Where its elements are in the parent."""

    def read(self, trace: Trace, parent: Value) -> Value:
        places, axes = self.places(trace, parent)
        value: Value = trace.emit("gather", parent, *places, axes=axes)[0]
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        places, axes = self.places(trace, parent)
        value: Value = trace.emit("scatter", parent, part, *places, axes=axes)[0]
        return value


@dataclass(frozen=True, slots=True)
class Element(Gathered):
    """Some axes taken at run-time positions, given as integers of rank 0."""

    axes: tuple[int, ...]
    positions: tuple[Value, ...]
    writeable: bool = True

    def places(self, trace: Trace, parent: Value) -> Places:
        return self.positions, self.axes

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return tuple(s for axis, s in enumerate(strides) if axis not in self.axes)


@dataclass(frozen=True, slots=True)
class Window(Gathered):
    """`size` places of one axis, `step` apart, from a run-time place on; they lie inside it."""

    axis: int
    start: Value
    size: Size
    step: int = 1
    writeable: bool = True

    def places(self, trace: Trace, parent: Value) -> Places:
        counted = trace.emit("iota", size=trace.sizes.normal(self.size))
        if self.step != 1:
            counted = trace.emit("mul", counted, trace.literal(self.step, I64))
        return [trace.emit("add", self.start, counted)], (self.axis,)

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return tuple(s * self.step if axis == self.axis else s for axis, s in enumerate(strides))
