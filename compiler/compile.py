"""From a graph to an execution plan.

Passes, then fusion, then one step per fused region or lone node: its kernel comes from
`Kernels`, its order and memory from passes/schedule.py, and here it becomes rows over buffers.

Invariants: pure; after every pass the graph is verified and the pass named if it broke it.
Not here: guards, Python structures of arguments and results (frontend), machine code.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from .assemble import Assembly
from .ir.graph import Graph
from .kernel.schedule import Target
from .passes.fuse import Fuse
from .plan import ExecutionPlan, Origin


@dataclass(frozen=True, slots=True)
class Parameter:
    """Where a graph parameter comes from: origin and position among that origin's."""

    origin: Origin
    index: int


def compile_graph(
    graph: Graph,
    *,
    strided: frozenset[int] = frozenset(),
    target: Target | None = None,
    params: Sequence[Parameter] | None = None,
    writes: Mapping[int, int] | None = None,
    returns: Sequence[int] | None = None,
    fuse: bool = True,
) -> ExecutionPlan:
    """The plan of an optimised graph (see `optimize`).

    strided: positions of parameters whose guard allows any strides; all others are contiguous.
    params: where each parameter comes from; arguments in order by default.
    writes: parameter position -> position in ``graph.results`` of the final content of its
    memory. returns: positions of results that the call returns, in order; -1 - p returns
    parameter p itself; by default all tensors that `writes` does not name.
    """
    with uncollected():
        return _plan(graph, strided, target, params, writes, returns, fuse)


@contextmanager
def uncollected() -> Iterator[None]:
    """Without garbage collection: compilation makes many objects that stay, and no cycles that
    matter; looking through all of them again and again would cost more than the work."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _plan(
    graph: Graph,
    strided: frozenset[int],
    target: Target | None,
    params: Sequence[Parameter] | None,
    writes: Mapping[int, int] | None,
    returns: Sequence[int] | None,
    fuse: bool,
) -> ExecutionPlan:
    if fuse:
        graph = Fuse().run(graph)
    assembly = Assembly(
        graph,
        target or Target(),
        [
            (p.origin, p.index)
            for p in params or [Parameter(Origin.ARGUMENT, at) for at in range(len(graph.params))]
        ],
        strided,
        dict(writes or {}),
    )
    return assembly.plan(returns)
