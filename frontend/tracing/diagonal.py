"""The view of a diagonal: two axes become one, along which both places move together.

Invariants: the axes are the last two of the parent, the view's is its last; `size` places fit.
Not here: other steps of views (views.py), NumPy's functions (numpy/diagonals.py, numpy/einsum.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass

from .gathered import Gathered, Places
from .views import Strides

if TYPE_CHECKING:
    from .state import Trace


@dataclass(frozen=True, slots=True)
class Diagonal(Gathered):
    """`size` elements from row `first` and column `second` on."""

    size: Size
    first: Size
    second: Size
    writeable: bool = True

    def strides(self, trace: Trace, shape: tuple[Size, ...], strides: Strides) -> Strides | None:
        return (*strides[:-2], strides[-2] + strides[-1])

    def places(self, trace: Trace, parent: Value) -> Places:
        index = trace.emit("iota", size=trace.sizes.normal(self.size))
        starts = [trace.sizes.normal(start) for start in (self.first, self.second)]
        places = [
            trace.emit("add", index, trace.size_value(start)) if start != 0 else index
            for start in starts
        ]
        rank = parent.tensor.rank
        return places, (rank - 2, rank - 1)
