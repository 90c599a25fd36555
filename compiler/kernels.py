"""The kernels of one compilation: lowered once per region, shared by fingerprint.

A region may take several launches: a matrix product packs first, a large reduction folds blocks
first. `Stage` is one of them.

Invariants: two nodes with equal regions share kernels without lowering twice; two kernels with
equal fingerprints are one.
Not here: rows and memory (assemble.py, rows.py), machine code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from .dims import Dim, Size
from .kernel import products
from .kernel.contraction import contraction_of
from .kernel.cost import GRAIN_WORK, kernel_work
from .kernel.fingerprint import dims_in_order, fingerprint, region_key
from .kernel.halves import phases
from .kernel.kernel import (
    Call,
    Check,
    Kernel,
    Load,
    Parallel,
    Parameter,
    Statement,
    Store,
    Update,
    fallible,
)
from .kernel.library import split_library
from .kernel.lowering import lower
from .kernel.peel import apart, peel
from .kernel.products import split_contraction
from .kernel.region import Lowered, Region, all_nodes
from .kernel.schedule import default_schedule
from .kernel.sorting import split_sort
from .kernel.split import split_reduction
from .kernel.target import Target
from .kernel.transposed import turn_operands
from .kernel.verifier import verify_kernel
from .ops.definition import Structure
from .records import dataclass, replace

# What a statement that can fail is made from.
_FAILING: Mapping[type[Statement], Structure] = {
    Load: Structure.GATHER,
    Store: Structure.SCATTER,
    Update: Structure.SCATTER,
    Check: Structure.EFFECT,
    Call: Structure.LIBRARY,
}


@dataclass(frozen=True, slots=True)
class Stage:
    """One launch.

    index: in the plan's kernels. params: where its parameters are, counted through the region's
    used inputs, its outputs and the temporaries. sizes: what it takes, in order. extent,
    work (picoseconds): sizes over the region's symbols. grain: iterations of a chunk. failing:
    the region's node behind each failure.
    """

    index: int
    params: tuple[int, ...]
    sizes: tuple[Size, ...]
    extent: Size
    work: Size
    grain: int
    failing: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """All launches of a region, in order, and the memory between them."""

    lowered: Lowered
    stages: tuple[Stage, ...]
    temporaries: tuple[Parameter, ...]


class Kernels:
    """Makes kernels and remembers them."""

    def __init__(self, target: Target, hints: Mapping[str, int]) -> None:
        self.target = target
        self.hints = hints
        self.made: list[Kernel] = []
        self._ready: dict[Hashable, Ready] = {}
        self._shared: dict[str, int] = {}

    def ready(self, region: Region) -> Ready:
        """The launches for a region. Raises Unlowered."""
        key = region_key(region)
        found = self._ready.get(key)
        if found is None:
            found = self._ready[key] = self._make(region)
        return found

    def _make(self, region: Region) -> Ready:
        lowered = lower(region)
        verify_kernel(lowered.kernel)
        kernel = lowered.kernel
        parts, between = self._parts(kernel)
        place = {p.name: at for at, p in enumerate((*kernel.params, *between))}
        stages: list[Stage] = []
        temporaries = list(between)
        for part in parts:
            places = [place[p.name] for p in part.params]
            split = split_contraction(part) or split_sort(part) or split_library(part)
            if split is None:
                stages.append(self._stage(region, lowered, part, places))
                continue
            first = len(kernel.params) + len(temporaries)
            places.extend(range(first, first + len(split.temporaries)))
            temporaries.extend(split.temporaries)
            for s in split.stages:
                params = [places[at] for at in s.params]
                stages.append(self._tiled(region, lowered, s, params))
        return Ready(lowered, tuple(stages), tuple(temporaries))

    def _parts(self, kernel: Kernel) -> tuple[Sequence[Kernel], tuple[Parameter, ...]]:
        """The kernels that do what `kernel` does, one nest each, and the memory between them.
        Each may still be a matrix product."""
        if contraction_of(kernel) is not None:
            return [kernel], ()
        turned = turn_operands(kernel, self.hints)
        if turned is not None:
            return [*turned.copies, turned.kernel], tuple(turned.temporaries)
        halves = split_reduction(kernel, self.hints)
        if halves is not None:
            return [halves.first, halves.second], tuple(halves.partial)
        peeled = peel(kernel, self.hints)
        if peeled is None:
            return phases(kernel), ()
        parts, between = self._parts(peeled.first)
        taken = {p.name for p in (*kernel.params, *peeled.stored, *between)}
        others, more = apart(*self._parts(peeled.rest), taken)
        return [*parts, *others], (*peeled.stored, *between, *more)

    def _stage(
        self, region: Region, lowered: Lowered, kernel: Kernel, params: Sequence[int]
    ) -> Stage:
        """A launch over an axis of the kernel."""
        kernel = default_schedule(kernel, self.target)
        extent, work = _threaded_extent(kernel), kernel_work(kernel)
        return self._launch(region, lowered, kernel, params, extent, work, _grain(work, extent))

    def _tiled(
        self, region: Region, lowered: Lowered, s: products.Stage, params: Sequence[int]
    ) -> Stage:
        """A launch of a product or a sort. They count tiles, panels or pieces and are scheduled
        where they are generated."""
        return self._launch(region, lowered, s.kernel, params, s.extent, s.work, s.grain)

    def _launch(
        self,
        region: Region,
        lowered: Lowered,
        kernel: Kernel,
        params: Sequence[int],
        extent: Size,
        work: Size,
        grain: int,
    ) -> Stage:
        kernel = replace(kernel, dims=dims_in_order(kernel))
        verify_kernel(kernel)
        text = fingerprint(kernel)
        index = self._shared.get(text)
        if index is None:
            index = self._shared[text] = len(self.made)
            self.made.append(kernel)
        failing = _failing(region, kernel)
        sizes = tuple([lowered.bound.get(name, Dim.symbol(name)) for name in kernel.dims])
        return Stage(index, tuple(params), sizes, extent, work, grain, failing)


def _failing(region: Region, kernel: Kernel) -> tuple[int, ...]:
    """The node behind each failure, found by its place in the user's program and by what it is;
    nodes are counted with those in regions."""
    by_place = {
        (node.op.structure, id(node.location)): at
        for at, node in reversed(list(enumerate(all_nodes(region.nodes))))
        if node.op.facts.can_fail
    }
    return tuple(by_place[_FAILING[type(s)], id(s.location)] for s in fallible(kernel.body))


def _threaded_extent(kernel: Kernel) -> Size:
    for statement in kernel.body:
        if isinstance(statement, Parallel) and statement.threads:
            return statement.extent
    return 1


def _grain(work: Size, extent: Size) -> int:
    """Iterations that are worth a chunk, from the work of one iteration where that is known."""
    if isinstance(work, int) and isinstance(extent, int):
        per: Size = work // max(extent, 1)
    else:
        per = _coefficient(work, extent)
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
    whole, times = extent.terms[0]
    found: Size = 0
    for factors, coefficient in work.terms:
        if factors == whole:
            found = coefficient // times
        elif not Counter(whole) - Counter(factors):
            return 0  # an iteration takes longer where other sizes are larger
    return found
