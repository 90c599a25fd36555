"""What would run: a function's graph, kernels, LLVM, assembly and plan, for people.

Invariants: looking changes nothing: nothing is installed, no call runs.
Not here: the printers themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import engine
from .build import plan_of
from .compiler.ir.printer import print_graph
from .compiler.kernel.printer import kernel_text
from .compiler.plan import ExecutionPlan
from .pictures import graph_page

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .specialise import Traced


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
    def plan(self) -> ExecutionPlan:
        """Rows, buffers and sizes; prints as a table."""
        return plan_of(self._traced)[0]

    @property
    def kernels(self) -> str:
        """The scheduled loop nests."""
        return "\n\n".join(kernel_text(kernel) for kernel in self.plan.kernels)

    @property
    def llvm(self) -> str:
        """LLVM IR of all kernels."""
        return engine.backend().texts(self.plan.kernels)["llvm"]

    @property
    def asm(self) -> str:
        """Machine code of all kernels as assembly."""
        return engine.backend().texts(self.plan.kernels)["asm"]

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
