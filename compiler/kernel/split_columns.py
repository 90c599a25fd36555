"""A reduction down many rows of few columns: threads take blocks of rows.

Where columns are many, threads take columns and nothing is split: measured, streaming whole rows
into rows of accumulators is no faster.

Law: the blocks are those of monoids.py, so the bits are the same.
Not here: reductions along rows or of everything (split.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dims import Dim
from ..records import replace
from .fresh import fresh
from .halves import (
    Halves,
    block_of,
    blocks_of,
    hinted,
    is_nested,
    kernel_over,
    names_of,
    needed,
    partials,
    with_folds,
)
from .kernel import (
    Kernel,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Statement,
    Store,
    Update,
    bodies,
    walk,
)
from .monoids import BLOCK

NARROW = 1024  # columns below which there are too few of them for threads


def split_columns(kernel: Kernel, loop: Parallel, hints: Mapping[str, int]) -> Halves | None:
    """The two halves of a kernel whose one loop runs over columns; None where none pays."""
    loops = [s for s in loop.body if bodies(s)]
    reduces = [s for s in loops if isinstance(s, Reduce)]
    if len(loops) != 1 or not reduces or is_nested(reduces[0]):
        return None
    if not are_few_columns(loop, reduces[0], hints):
        return None
    return _by_blocks(kernel, loop, reduces[0])


def are_few_columns(loop: Parallel, reduce: Reduce, hints: Mapping[str, int]) -> bool:
    """True where there are too few columns for threads, and rows enough to share instead."""
    columns, rows = hinted(loop.extent, hints), hinted(reduce.extent, hints)
    if columns is None or rows is None or reduce.loose or not _steps_over_rows(reduce):
        return False
    return columns < NARROW and rows >= 4 * BLOCK


def _steps_over_rows(reduce: Reduce) -> bool:
    """True where the reduced axis is not the fastest of what is loaded."""
    for s in walk(reduce.body):
        if isinstance(s, Load) and s.index:
            last = s.index[-1]
            if isinstance(last, Dim) and reduce.axis in last.symbols():
                return False
    return not any(isinstance(s, Store | Update) for s in reduce.body)


def _by_blocks(kernel: Kernel, loop: Parallel, reduce: Reduce) -> Halves:
    count = blocks_of(reduce.extent)
    block = fresh("b", names_of(kernel))
    partial = partials(kernel, reduce.dtypes, (count, loop.extent))
    column = Dim.symbol(loop.axis)
    stores = [
        Store(p.name, (Dim.symbol(block), column), name) for p, name in zip(partial, reduce.names)
    ]
    before = loop.body[: loop.body.index(reduce)]
    inside = (*needed(before, [reduce]), block_of(reduce, block), *stores)
    rows = Parallel(block, count, (replace(loop, body=inside),))
    first = _first(kernel, loop, rows, partial)
    folded = with_folds(loop.body, [reduce], partial, count, (column,), True, names_of(kernel))
    return Halves(first, _second(kernel, loop, folded, partial), tuple(partial))


def _first(kernel: Kernel, loop: Parallel, rows: Parallel, partial: list[Parameter]) -> Kernel:
    outside = tuple(s for s in kernel.body if s is not loop)
    return kernel_over(kernel, (*needed(outside, [rows]), rows), partial, "out")


def _second(
    kernel: Kernel, loop: Parallel, body: tuple[Statement, ...], partial: list[Parameter]
) -> Kernel:
    whole = tuple(replace(loop, body=body) if s is loop else s for s in kernel.body)
    kept = needed(tuple(s for s in whole if not bodies(s)), [s for s in whole if bodies(s)])
    used = tuple(s for s in whole if bodies(s) or s in kept)
    return kernel_over(kernel, used, partial, "in")
