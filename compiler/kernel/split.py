"""A reduction over everything, or down few columns, in two launches that threads can share.

The first folds each block of 4,096 elements (or each row of a nested reduction) by itself and
stores what it gets; the second folds those, as the definition in monoids.py does anyway, and
goes on with what used the result. So the value is the same, bit for bit.

Law: only the order of independent work and the place of partial results change.
Not here: which kernels pay (`worth_splitting` asks hints), rows of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dims import Dim, Size
from .fresh import fresh
from .halves import (
    Body,
    Halves,
    block_of,
    blocks_of,
    defines,
    is_nested,
    kernel_over,
    names_of,
    needed,
    partials,
    uses,
    with_folds,
)
from .kernel import Kernel, Parallel, Parameter, Reduce, Statement, Store, bodies, walk
from .split_columns import split_columns
from .symbols import substitute_axes

LEAST = 32768  # elements of a reduction that is worth two launches


def split_reduction(kernel: Kernel, hints: Mapping[str, int]) -> Halves | None:
    """The two halves, None for a kernel that is no lone reduction or too small to gain."""
    loops = [s for s in kernel.body if bodies(s)]
    if loops and all(isinstance(s, Reduce) for s in loops):
        reduces = [s for s in loops if isinstance(s, Reduce)]
        if _independent(kernel.body, reduces) and is_large(reduces, hints):
            return _split_whole(kernel, reduces)
    if len(loops) == 1 and isinstance(loops[0], Parallel):
        return split_columns(kernel, loops[0], hints)
    return None


def is_large(reduces: Sequence[Reduce], hints: Mapping[str, int]) -> bool:
    """False for reductions whose sizes are known and make too little work."""
    total = 0
    for reduce in reduces:
        size: Size = reduce.extent
        for inner in walk(reduce.body):
            if isinstance(inner, Reduce):
                size = size * inner.extent
        if isinstance(size, Dim):
            return True
        total += size
    return total >= LEAST


def _independent(body: Body, reduces: Sequence[Reduce]) -> bool:
    """True when the reductions share one extent and none needs another's result."""
    if any(r.extent != reduces[0].extent or is_nested(r) != is_nested(reduces[0]) for r in reduces):
        return False
    last = max(at for at, s in enumerate(body) if isinstance(s, Reduce))
    made = {name for r in reduces for name in r.names}
    for statement in body[:last]:
        if isinstance(statement, Store):
            return False
        made |= {n for n in defines(statement) if not made.isdisjoint(uses(statement))}
    return all(made.isdisjoint(uses(s)) for s in walk(tuple(reduces)))  # yields included


def _split_whole(kernel: Kernel, reduces: Sequence[Reduce]) -> Halves:
    nested = is_nested(reduces[0])
    extent = reduces[0].extent
    count = extent if nested else blocks_of(extent)
    taken = names_of(kernel)
    block = fresh("b", taken)
    partial = partials(kernel, [d for r in reduces for d in r.dtypes], (count,))
    before = tuple(s for s in kernel.body if not isinstance(s, Reduce | Store))
    inner: list[Statement] = []
    stored = iter(partial)
    for reduce in reduces:
        if nested:
            at = {reduce.axis: Dim.symbol(block)}
            inner.extend(substitute_axes(reduce.body, at))
            names = reduce.yields
        else:
            inner.append(block_of(reduce, block))
            names = reduce.names
        inner.extend(Store(next(stored).name, (Dim.symbol(block),), name) for name in names)
    used = needed(before, inner)
    first = kernel_over(kernel, (*used, Parallel(block, count, tuple(inner))), partial, "out")
    second = _fold_partials(kernel, kernel.body, reduces, partial, count, (), not nested)
    return Halves(first, second, tuple(partial))


def _fold_partials(
    kernel: Kernel,
    body: Body,
    reduces: Sequence[Reduce],
    partial: Sequence[Parameter],
    count: Size,
    place: tuple[Size, ...],
    tree: bool,
) -> Kernel:
    """The kernel with its reductions replaced by folds of the partial results."""
    made = with_folds(body, reduces, partial, count, place, tree, names_of(kernel))
    return kernel_over(kernel, made, partial, "in")
