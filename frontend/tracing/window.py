"""The step of a view to places of an axis that begin where the run says.

Not here: slices of which that is made (numpy/run_time_slices.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import I64

from .views import Strides

if TYPE_CHECKING:
    from .state import Trace


@dataclass(frozen=True, slots=True)
class Window:
    """`size` places of one axis, `step` apart, from a run-time place on; they lie inside it."""

    axis: int
    start: Value
    size: Size
    step: int = 1
    writeable: bool = True

    def read(self, trace: Trace, parent: Value) -> Value:
        value: Value = trace.emit("gather", parent, self.places(trace), axes=(self.axis,))[0]
        return value

    def write(self, trace: Trace, parent: Value, part: Value) -> Value:
        places = self.places(trace)
        value: Value = trace.emit("scatter", parent, part, places, axes=(self.axis,))[0]
        return value

    def places(self, trace: Trace) -> Value:
        """Its places on the axis."""
        counted = trace.emit("iota", size=trace.sizes.normal(self.size))
        if self.step != 1:
            counted = trace.emit("mul", counted, trace.literal(self.step, I64))
        value: Value = trace.emit("add", self.start, counted)
        return value

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return tuple(s * self.step if axis == self.axis else s for axis, s in enumerate(strides))
