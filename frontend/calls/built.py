"""A traced version with its plan and machine code: kept ones where there are, else made now.

Not here: making them (build.py), keeping them (kept_plans.py), native tables (bind.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .. import engine
from ..compiler.plan import ExecutionPlan
from ..compiler.records import dataclass
from ..progress import phase
from ..runtime.backend import LoadedKernels
from ..settings import logs
from . import doors
from .kept_plans import find
from .outputs import returned
from .specialise import Traced

if TYPE_CHECKING:
    from .build import Optimisation


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


def build(traced: Traced, optimisation: Optimisation | None = None) -> Built:
    """The plan of a version and its code. optimisation: other passes than the usual ones, whose
    plans are not kept."""
    if logs("graph"):
        doors.report_graph(traced.trace.graph)
    phase("kept plans")
    # Passes and kernels can be shown only where they are made.
    keeps = optimisation is None and not (logs("passes") or logs("kernels"))
    kept = find(traced) if keeps else None
    if kept is None:
        plan, positions, loaded = doors.compiled(traced, optimisation)
    else:
        plan, loaded = kept
        positions = returned(traced)[1]
    phase("native tables")
    cells = []
    for name in plan.variables:
        store = traced.trace.variables[name].store
        store.use_locks(engine.native())  # before native code first touches a cell
        cells.append(store.cell(name))
    addresses = {name: cell.address for name, cell in zip(plan.variables, cells, strict=True)}
    return Built(plan, positions, loaded, addresses, (*loaded.keep, *cells))
