"""What a call of kept code does not need, loaded when it is needed after all.

A process whose plans and machine code are in the cache traces, maps code and runs. Passes,
kernels, code generation and everything that shows them stay on disk until a plan has to be made
or somebody wants to look: the modules named here, and what only they import.

Invariants: nothing in the frontend imports these modules at its top that is loaded by a first call
itself; a test counts them.
Not here: the public names of the package (frontend/__init__.py), LLVM's own doors
(backends/cpu/backend.py, backends/llvm/native/build.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..loading import load

if TYPE_CHECKING:
    from ..backends.cpu.backend import CpuBackend
    from ..backends.cpu.mapped import MappedCode
    from ..compiler.ir.graph import Graph
    from ..compiler.plan import ExecutionPlan
    from ..export import Exported
    from ..lowered import Lowered
    from ..profile import Profile
    from ..runtime.backend import LoadedKernels
    from .build import Optimisation
    from .dispatch import Dispatcher
    from .partitioned import Partitioned
    from .specialise import Traced


def load_compiler() -> None:
    """Load what compiles, ahead of the first plan that has to be made."""
    for name in ("calls.build", "backends.cpu.backend", "backends.cpu.worker"):
        load(name)


def compiled(
    traced: Traced, optimisation: Optimisation | None
) -> tuple[ExecutionPlan, Mapping[int, int], LoadedKernels]:
    """A version's plan, its outputs' positions and its code, made now (build.py)."""
    made: tuple[ExecutionPlan, Mapping[int, int], LoadedKernels] = load("calls.build").compiled(
        traced, optimisation
    )
    return made


def cpu_backend(codes: MappedCode, report: Callable[[str], None]) -> CpuBackend:
    """The back end that compiles, over this process's code; `report` is told what it does in the
    background."""
    made: CpuBackend = load("backends.cpu.backend").CpuBackend(codes=codes, report=report)
    return made


def partitioned(traced: Traced) -> Partitioned:
    """A function over several devices."""
    made: Partitioned = load("calls.partitioned").Partitioned(traced)
    return made


def report_graph(graph: Graph) -> None:
    """The log topic ``graph``."""
    load("reports").report_graph(graph)


def lower(dispatcher: Dispatcher, args: Sequence[Any], keywords: dict[str, Any]) -> Lowered:
    """A version to look at."""
    made: Lowered = load("lowered").lower(dispatcher, args, keywords)
    return made


def profile_call(dispatcher: Dispatcher, args: Sequence[Any], keywords: dict[str, Any]) -> Profile:
    """Where the time of a call goes."""
    made: Profile = load("profile").profile_call(dispatcher, args, keywords)
    return made


def export(
    dispatcher: Dispatcher, path: Any, args: Sequence[Any], features: str, cc: str
) -> Exported:
    """A version as a C library."""
    made: Exported = load("export").export(dispatcher, path, args, features, cc)
    return made
