"""From a traced version to a plan and loaded kernels, by compiling.

Not here: tracing, plans that are kept (kept_plans.py), native tables (bind.py). Loaded through
doors.py, when a plan has to be made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import engine
from ..compiler.compile import Parameter, compile_graph
from ..compiler.kernel.target import Target
from ..compiler.passes import PASSES, PIPELINE
from ..compiler.passes.base import Pass, run_passes
from ..compiler.plan import ExecutionPlan, Origin
from ..compiler.plan_times import kernel_times
from ..compiler.records import dataclass
from ..compiler.uncollected import uncollected
from ..progress import phase
from ..reports import PassReport, ReportingStore, report_kernels
from ..runtime.backend import LoadedKernels
from ..settings import logs
from .kept_plans import keep
from .outputs import returned, shared, strided
from .specialise import Traced

_ORIGINS = {
    "argument": Origin.ARGUMENT,
    "scalar": Origin.SCALAR,
    "captured": Origin.CAPTURED,
}


@dataclass(frozen=True, slots=True)
class Optimisation:
    """The passes that run before planning, in order; fuse: whether nodes share kernels."""

    passes: Sequence[Pass] = PIPELINE
    fuse: bool = True


DEFAULT = Optimisation()


def compiled(
    traced: Traced, optimisation: Optimisation | None
) -> tuple[ExecutionPlan, Mapping[int, int], LoadedKernels]:
    """Optimise, plan, and compile what the cache has no code for. optimisation: the usual one,
    whose plans are kept, where there is none."""
    with uncollected():
        plan, positions = plan_of(traced, optimisation=optimisation or DEFAULT)
    report_kernels(plan.kernels)
    phase("machine code", len(plan.kernels))
    code = ReportingStore(engine.code_store(), plan.kernels)
    graph = traced.trace.graph
    times = kernel_times(plan, [value.tensor.shape for value in graph.params], graph.hints)
    loaded = engine.backend().compile_kernels(plan.kernels, code, times)
    code.close()
    if optimisation is None:
        keep(traced, plan, loaded.stored)
    return plan, positions, loaded


def plan_of(
    traced: Traced, target: Target | None = None, optimisation: Optimisation = DEFAULT
) -> tuple[ExecutionPlan, Mapping[int, int]]:
    """The plan, and which of its results each flat output is. target: this machine by default."""
    result = traced.trace
    phase("passes")
    report = PassReport(result.graph) if logs("passes") else None
    graph = run_passes(result.graph, optimisation.passes, report).graph
    if report is not None and optimisation.fuse:
        graph = PASSES["fuse"].run(graph)
        report("fuse", graph)
    phase("kernels and plan")
    returns, positions = returned(traced)
    plan = compile_graph(
        graph,
        strided=frozenset(strided(traced)),
        target=target or engine.target(),
        params=[Parameter(_ORIGINS[item.kind], at) for at, item in enumerate(result.inputs)],
        writes=result.writes,
        returns=returns,
        shared=shared(traced),
        fuse=report is None and optimisation.fuse,
    )
    return plan, positions
