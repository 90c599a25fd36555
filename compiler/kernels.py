"""The kernels of one compilation: lowered once per region, shared by fingerprint.

Invariants: two nodes with equal regions share a kernel without lowering twice; two kernels with
equal fingerprints are one.
Not here: rows and memory (compile.py), machine code.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from .dims import Dim, Size
from .kernel.cost import kernel_work
from .kernel.fingerprint import canonical, dims_in_order, region_key
from .kernel.kernel import Kernel, Parallel
from .kernel.lowering import lower
from .kernel.region import Lowered, Region
from .kernel.schedule import Target, default_schedule
from .kernel.verifier import verify_kernel

GRAIN_WORK = 20_000_000  # picoseconds that a chunk of a parallel axis should take at least


@dataclass(frozen=True, slots=True)
class Ready:
    """A kernel of the plan, seen from one region.

    index: in the plan's kernels. dims: the region's symbols in the order in which the kernel
    takes them. extent, work: sizes over the region's symbols; grain: iterations of a chunk.
    """

    index: int
    lowered: Lowered
    dims: tuple[str, ...]
    extent: Size
    work: Size
    grain: int


class Kernels:
    """Makes kernels and remembers them."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.made: list[Kernel] = []
        self._ready: dict[Hashable, Ready] = {}
        self._shared: dict[Kernel | str, int] = {}

    def ready(self, region: Region) -> Ready:
        """The kernel for a region. Raises Unlowered."""
        key = region_key(region)
        found = self._ready.get(key)
        if found is None:
            found = self._ready[key] = self._make(region)
        return found

    def _make(self, region: Region) -> Ready:
        lowered = lower(region)
        kernel = default_schedule(lowered.kernel, self.target)
        verify_kernel(kernel)
        dims = dims_in_order(kernel)
        kernel = replace(kernel, dims=dims)
        text = repr(canonical(kernel))
        index = self._shared.get(text)
        if index is None:
            index = self._shared[text] = len(self.made)
            self.made.append(kernel)
        work = kernel_work(kernel)
        extent = _threaded_extent(kernel)
        return Ready(index, lowered, dims, extent, work, _grain(work, extent))


def _threaded_extent(kernel: Kernel) -> Size:
    for statement in kernel.body:
        if isinstance(statement, Parallel) and statement.threads:
            return statement.extent
    return 1


def _grain(work: Size, extent: Size) -> int:
    """Iterations that are worth a chunk, from the work of one iteration where that is known."""
    per = work // extent if isinstance(extent, int) and extent else _coefficient(work, extent)
    if not isinstance(per, int) or per <= 0:
        return 1
    return max(1, GRAIN_WORK // per)


def _coefficient(work: Size, extent: Size) -> Size:
    if not isinstance(work, Dim) or not isinstance(extent, Dim):
        return 0
    name = extent.name
    if name is not None:
        factor = work.coefficient(name)
        return 0 if factor is None else factor
    for factors, coefficient in work.terms:
        if extent.terms[0][0] == factors:
            return coefficient // extent.terms[0][1]
    return 0
