"""What would run: a function's graph, kernels, LLVM, assembly and plan, for people.

Invariants: looking changes nothing: nothing is installed, no call runs.
Not here: the printers themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import engine
from .calls.build import plan_of
from .compiler.ir.printer import print_graph
from .compiler.kernel.printer import kernel_text
from .compiler.plan import BufferSpec, ExecutionPlan, Row
from .compiler.plan_text import plan_text
from .compiler.records import dataclass
from .pictures import graph_page
from .profile import OPERATIONS

if TYPE_CHECKING:
    from .calls.dispatch import Dispatcher
    from .calls.specialise import Traced


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan to look at: `data` is the plan itself."""

    data: ExecutionPlan

    @property
    def rows(self) -> Sequence[Row]:
        """What a call does, in order."""
        return self.data.rows

    @property
    def buffers(self) -> Sequence[BufferSpec]:
        """The memory it touches."""
        return self.data.buffers

    def peak_bytes(self, **sizes: int) -> int:
        """Bytes of temporary memory a call needs, for the sizes of the plan's symbols."""
        slots: list[int] = []
        names = {slot: name for name, slot in self.data.size_symbols.items()}
        for at, row in enumerate(self.data.sizes):
            if row.op in ("const", "extent"):
                slots.append(row.a if row.op == "const" else sizes[names[at]])
            else:
                slots.append(OPERATIONS[row.op](slots[row.a], slots[row.b]))
        return slots[self.data.arena_bytes]

    def __str__(self) -> str:
        return plan_text(self.data)

    __repr__ = __str__


class Lowered:
    """One traced version of a function, to be looked at."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced

    @property
    def graph(self) -> Any:
        """The traced graph, before any pass."""
        return self._traced.trace.graph

    @property
    def text(self) -> str:
        """The graph with the user's line behind each node."""
        return print_graph(self.graph, locations=True)

    @functools.cached_property
    def plan(self) -> PlanView:
        """Rows, buffers and sizes; prints as a table."""
        return PlanView(plan_of(self._traced)[0])

    @property
    def kernels(self) -> str:
        """The scheduled loop nests."""
        return "\n\n".join(kernel_text(kernel) for kernel in self.plan.data.kernels)

    @property
    def llvm(self) -> str:
        """LLVM IR of all kernels."""
        return engine.backend().texts(self.plan.data.kernels)["llvm"]

    @property
    def asm(self) -> str:
        """Machine code of all kernels as assembly."""
        return engine.backend().texts(self.plan.data.kernels)["asm"]

    @property
    def guards(self) -> Sequence[str]:
        """What must hold for the version to be used again."""
        return [f"{guard.text}: {guard.reason}" for guard in self._traced.trace.guards]

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return graph_page(self.graph)


def lower(dispatcher: Dispatcher, args: Sequence[Any], keywords: dict[str, Any]) -> Lowered:
    """Trace for these arguments, without running or installing anything."""
    return Lowered(dispatcher.trace_only(args, keywords))
