"""A reduction down the rows of a matrix, for threads and for memory.

Few columns: threads take blocks of rows. Many: threads take lanes, that is every 64th row of a
block, whole rows at a time, into a row of accumulators that stays in the cache; nothing is read
out of order. The second launch folds lanes and blocks as monoids.py says: the same bits.

Law: lane l of a block folds the rows l, l + 64, ... in order; a lane without rows keeps the
neutral value, which is exact.
Not here: reductions along rows or of everything (split.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..dims import Dim, Size, maximum, minimum
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
    Constant,
    For,
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
from .monoids import BLOCK, LANES, MONOIDS
from .symbols import substitute_axes

NARROW = 64  # columns below which a row is too short to stream
WIDE = 1 << 15  # columns above which a row of accumulators leaves the cache
ROWS = 1024  # rows that pay for accumulators in memory


def split_columns(kernel: Kernel, loop: Parallel, hints: Mapping[str, int]) -> Halves | None:
    """The two halves of a kernel whose one loop runs over columns; None where none pays."""
    loops = [s for s in loop.body if bodies(s)]
    reduces = [s for s in loops if isinstance(s, Reduce)]
    if len(loops) != 1 or not reduces or is_nested(reduces[0]):
        return None
    reduce = reduces[0]
    columns, rows = hinted(loop.extent, hints), hinted(reduce.extent, hints)
    if columns is None or rows is None or reduce.loose or not _steps_over_rows(reduce):
        return None
    if columns < NARROW:
        return _by_blocks(kernel, loop, reduce) if rows >= 4 * BLOCK else None
    plain = not MONOIDS[reduce.monoid].indexed and all(d.kind in "iuf" for d in reduce.dtypes)
    if plain and columns <= WIDE and rows >= ROWS and len(kernel.body) == _quiet(kernel) + 1:
        return _by_lanes(kernel, loop, reduce)
    return None


def _quiet(kernel: Kernel) -> int:
    return sum(not bodies(s) for s in kernel.body)


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
        Store(p.name, (Dim.symbol(block), column), name)
        for p, name in zip(partial, reduce.names)
    ]
    before = loop.body[: loop.body.index(reduce)]
    inside = (*needed(before, [reduce]), block_of(reduce, block), *stores)
    rows = Parallel(block, count, (replace(loop, body=inside),))
    first = _first(kernel, loop, rows, partial)
    folded = with_folds(
        loop.body, [reduce], partial, count, (column,), True, names_of(kernel)
    )
    return Halves(first, _second(kernel, loop, folded, partial), tuple(partial))


def _by_lanes(kernel: Kernel, loop: Parallel, reduce: Reduce) -> Halves:
    taken = names_of(kernel)
    lane, turn = fresh("q", taken), fresh("k", taken)
    count = blocks_of(reduce.extent) * LANES
    partial = partials(kernel, reduce.dtypes, (count, loop.extent))
    q = Dim.symbol(lane)
    start = q // LANES * BLOCK + q % LANES
    end = minimum(reduce.extent, q // LANES * BLOCK + BLOCK)
    turns = maximum(0, (end - start + (LANES - 1)) // LANES)
    row = {reduce.axis: start + Dim.symbol(turn) * LANES}
    place = (q, Dim.symbol(loop.axis))
    neutral = MONOIDS[reduce.monoid].neutral(reduce.dtypes[0])[0]
    zeros: list[Statement] = []
    clear: list[Statement] = []
    fold: list[Statement] = []
    for p, name, dtype in zip(partial, reduce.yields, reduce.dtypes):
        zeros.append(Constant(fresh("neutral", taken), neutral, dtype))
        clear.append(Store(p.name, place, zeros[-1].name))  # type: ignore[union-attr]
        fold.append(Update(p.name, place, reduce.monoid, name))
    before = needed(loop.body[: loop.body.index(reduce)], [reduce])
    work = (*before, *substitute_axes(reduce.body, row), *fold)
    again = fresh(loop.axis, taken)
    filled = Parallel(again, loop.extent, substitute_axes(
        tuple(clear), {loop.axis: Dim.symbol(again)}
    ))  # fmt: skip
    rows = For(turn, turns, (replace(loop, body=work),))
    lanes = Parallel(lane, count, (*zeros, filled, rows))
    first = _first(kernel, loop, lanes, partial)
    return Halves(first, _second(kernel, loop, _folded(loop, reduce, partial, taken), partial),
                  tuple(partial))  # fmt: skip


def _folded(
    loop: Parallel, reduce: Reduce, partial: list[Parameter], taken: set[str]
) -> tuple[Statement, ...]:
    """The columns with a fold over lanes inside a tree over blocks."""
    block, lane = fresh("b", taken), fresh("l", taken)
    at = Dim.symbol(block) * LANES + Dim.symbol(lane)
    loads = [
        Load(fresh("part", taken), p.name, (at, Dim.symbol(loop.axis)), p.dtype) for p in partial
    ]
    names = tuple(load.name for load in loads)
    parts = tuple(fresh("folded", taken) for _ in loads)
    lanes = replace(
        reduce, names=parts, axis=lane, extent=LANES, body=tuple(loads), yields=names
    )
    count: Size = blocks_of(reduce.extent)
    tree = replace(
        reduce, axis=block, extent=count, body=(lanes,), yields=parts, tree=True
    )
    after = loop.body[loop.body.index(reduce) + 1 :]
    before = needed(loop.body[: loop.body.index(reduce)], after)
    return (*before, tree, *after)


def _first(
    kernel: Kernel, loop: Parallel, rows: Parallel, partial: list[Parameter]
) -> Kernel:
    outside = tuple(s for s in kernel.body if s is not loop)
    return kernel_over(kernel, (*needed(outside, [rows]), rows), partial, "out")


def _second(
    kernel: Kernel, loop: Parallel, body: tuple[Statement, ...], partial: list[Parameter]
) -> Kernel:
    whole = tuple(replace(loop, body=body) if s is loop else s for s in kernel.body)
    kept = needed(tuple(s for s in whole if not bodies(s)), [s for s in whole if bodies(s)])
    used = tuple(s for s in whole if bodies(s) or s in kept)
    return kernel_over(kernel, used, partial, "in")
