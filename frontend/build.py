"""From a traced version to a plan and loaded kernels.

Not here: tracing, native tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import engine
from .compiler.compile import Parameter, compile_graph
from .compiler.kernel.schedule import Target
from .compiler.passes import PASSES, PIPELINE
from .compiler.passes.base import Pass, run_passes
from .compiler.plan import ExecutionPlan, Origin
from .progress import phase
from .reports import PassReport, ReportingStore, report_graph, report_kernels
from .runtime.backend import LoadedKernels
from .settings import logs
from .specialise import ArraySpec, Traced
from .tracing.result import InputOutput, SizeOutput, TensorOutput

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


@dataclass(frozen=True, slots=True)
class Built:
    """A plan with its machine code.

    positions: flat output -> position in the plan's results; -1 - p -> that of parameter p, where
    a size of it is an output. cells: addresses by variable. keep: what must stay alive.
    """

    plan: ExecutionPlan
    positions: Mapping[int, int]
    loaded: LoadedKernels
    cells: Mapping[str, int]
    keep: Sequence[object]


DEFAULT = Optimisation()


def build(traced: Traced, optimisation: Optimisation = DEFAULT) -> Built:
    """Optimise, plan, compile or load from the cache."""
    report_graph(traced.trace.graph)
    plan, positions = plan_of(traced, optimisation=optimisation)
    report_kernels(plan.kernels)
    phase("machine code", len(plan.kernels))
    code = ReportingStore(engine.code_store(), plan.kernels)
    loaded = engine.backend().compile_kernels(plan.kernels, code)
    code.close()
    phase("native tables")
    cells = []
    for name in plan.variables:
        store = traced.trace.variables[name].store
        store.use_locks(engine.native())  # before native code first touches a cell
        cells.append(store.cell(name))
    addresses = {name: cell.address for name, cell in zip(plan.variables, cells, strict=True)}
    return Built(plan, positions, loaded, addresses, (*loaded.keep, *cells))


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
    returns, positions = _returns(traced)
    plan = compile_graph(
        graph,
        strided=frozenset(_strided(traced)),
        target=target or engine.target(),
        params=[Parameter(_ORIGINS[item.kind], at) for at, item in enumerate(result.inputs)],
        writes=result.writes,
        returns=returns,
        fuse=report is None and optimisation.fuse,
    )
    return plan, positions


def _returns(traced: Traced) -> tuple[list[int], dict[int, int]]:
    """What the plan returns, and the position there of each flat output (see `Built`)."""
    returns: list[int] = []
    positions: dict[int, int] = {}
    parameters: dict[int, int] = {}
    for index, output in enumerate(traced.trace.outputs):
        if isinstance(output, TensorOutput):
            if output.same_as is None:
                positions[index] = len(returns)
                returns.append(output.result)
            else:
                positions[index] = positions[output.same_as]
        elif isinstance(output, InputOutput):
            parameters[index] = output.input
        elif isinstance(output, SizeOutput):
            parameters |= {-1 - p: p for p, _ in traced.size_places(output.size).values()}
    for index, parameter in parameters.items():
        if -1 - parameter not in returns:
            returns.append(-1 - parameter)
        positions[index] = returns.index(-1 - parameter)
    return returns, positions


def _strided(traced: Traced) -> list[int]:
    """Positions of parameters whose arrays may have any strides."""
    found = []
    for position, item in enumerate(traced.trace.inputs):
        if item.kind == "captured":
            if not item.value.flags.c_contiguous:
                found.append(position)
        elif item.leaf is not None:
            spec = traced.specs[item.leaf]
            if isinstance(spec, ArraySpec) and spec.strided:
                found.append(position)
    return found
