"""From a graph to an execution plan.

Passes, then fusion, then one step per fused region or lone node: its kernel comes from
`Kernels`, its order and memory from passes/schedule.py, and here it becomes rows over buffers.

Invariants: pure; after every pass the graph is verified and the pass named if it broke it.
Not here: guards, Python structures of arguments and results (frontend), machine code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .assemble import Assembly
from .ir.graph import Graph
from .kernel.target import Target
from .passes.fuse import Fuse
from .passes.inline import Inline
from .plan import ExecutionPlan, Origin
from .records import dataclass
from .uncollected import uncollected


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
    shared: Sequence[Collection[int]] = (),
    fuse: bool = True,
) -> ExecutionPlan:
    """The plan of an optimised graph (see `optimize`).

    strided: positions of parameters whose guard allows any strides; all others are contiguous.
    params: where each parameter comes from; arguments in order by default.
    writes: parameter position -> position in ``graph.results`` of the final content of its
    memory. returns: positions of results that the call returns, in order; -1 - p returns
    parameter p itself; by default all tensors that `writes` does not name. shared: groups of
    parameters whose memory is the same, of which some are written.
    """
    with uncollected():
        graph = Inline().run(graph)  # what is transparent has no kernel, whichever passes ran
        graph = Fuse().run(graph) if fuse else graph
        parameters = params or [Parameter(Origin.ARGUMENT, at) for at in range(len(graph.params))]
        assembly = Assembly(
            graph,
            target or Target(),
            [(p.origin, p.index) for p in parameters],
            strided,
            dict(writes or {}),
            shared,
        )
        return assembly.plan(returns)
