"""A reduction over everything, or down few columns, in two launches that threads can share.

The first folds each block of 4,096 elements (or each row of a nested reduction) by itself and
stores what it gets; the second folds those, as the definition in monoids.py does anyway, and
goes on with what used the result. So the value is the same, bit for bit.

Law: only the order of independent work and the place of partial results change.
Not here: which kernels pay (`worth_splitting` asks hints), rows of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..dims import Dim, Size, minimum
from ..types import DType
from .fresh import fresh
from .kernel import Kernel, Load, Parallel, Parameter, Reduce, Statement, Store, bodies, walk
from .monoids import BLOCK
from .symbols import kernel_dims, substitute_axes

LEAST = 32768  # elements of a reduction that is worth two launches
NARROW = 256  # columns below which threads go down the rows instead

Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Halves:
    """Two kernels and the partial results between them.

    Parameters of `first` are inputs of the original, then `partial`; those of `second` inputs,
    then outputs of the original, then `partial` as inputs.
    """

    first: Kernel
    second: Kernel
    partial: tuple[Parameter, ...]


def split_reduction(kernel: Kernel, hints: Mapping[str, int]) -> Halves | None:
    """The two halves, None for a kernel that is no lone reduction or too small to gain."""
    loops = [s for s in kernel.body if bodies(s)]
    if loops and all(isinstance(s, Reduce) for s in loops):
        reduces = [s for s in loops if isinstance(s, Reduce)]
        if _independent(kernel.body, reduces) and _large(reduces, hints):
            return _split_whole(kernel, reduces)
    if len(loops) == 1 and isinstance(loops[0], Parallel):
        return _split_columns(kernel, loops[0], hints)
    return None


def _size(size: Size, hints: Mapping[str, int]) -> int | None:
    found = size.substitute(hints) if isinstance(size, Dim) else size
    return found if isinstance(found, int) else None


def _large(reduces: Sequence[Reduce], hints: Mapping[str, int]) -> bool:
    """False where all sizes are known and make too little work."""
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
    if any(r.extent != reduces[0].extent or _nested(r) != _nested(reduces[0]) for r in reduces):
        return False
    last = max(at for at, s in enumerate(body) if isinstance(s, Reduce))
    made = {name for r in reduces for name in r.names}
    for statement in body[:last]:
        if isinstance(statement, Store):
            return False
        made |= {n for n in _defines(statement) if not made.isdisjoint(_uses(statement))}
    return all(made.isdisjoint(_uses(s)) for r in reduces for s in walk(r.body))


def _nested(reduce: Reduce) -> bool:
    return any(isinstance(s, Reduce) for s in reduce.body)


def _defines(statement: Statement) -> set[str]:
    if isinstance(statement, Reduce):
        return set(statement.names)
    name = getattr(statement, "name", None)
    return set() if name is None else {name}


def _uses(statement: Statement) -> set[str]:
    found: set[str] = set(getattr(statement, "args", ()))
    for key in ("value", "mask", "other", "condition"):
        name = getattr(statement, key, None)
        if isinstance(name, str):
            found.add(name)
    found |= set(getattr(statement, "yields", ()))
    for index in getattr(statement, "index", ()) if isinstance(statement, Load | Store) else ():
        name = getattr(index, "value", None)
        if name is not None:
            found.add(name)
    return found


def _blocks(extent: Size) -> Size:
    return (extent + (BLOCK - 1)) // BLOCK


def _block_of(reduce: Reduce, block: str) -> Reduce:
    """The reduction over one block."""
    start = Dim.symbol(block) * BLOCK
    body = substitute_axes(reduce.body, {reduce.axis: start + Dim.symbol(reduce.axis)})
    return replace(reduce, extent=minimum(BLOCK, reduce.extent - start), body=body)


def _partials(kernel: Kernel, dtypes: Sequence[DType], shape: tuple[Size, ...]) -> list[Parameter]:
    taken = _names(kernel)
    return [
        Parameter(fresh("partial", taken), dtype, shape, "out") for dtype in dtypes
    ]


def _names(kernel: Kernel) -> set[str]:
    taken = {p.name for p in kernel.params} | set(kernel.dims)
    for s in walk(kernel.body):
        taken |= _defines(s)
        taken |= {getattr(s, "axis", "")}
    return taken


def _split_whole(kernel: Kernel, reduces: Sequence[Reduce]) -> Halves:
    nested = _nested(reduces[0])
    extent = reduces[0].extent
    count = extent if nested else _blocks(extent)
    taken = _names(kernel)
    block = fresh("b", taken)
    partial = _partials(kernel, [d for r in reduces for d in r.dtypes], (count,))
    before = tuple(s for s in kernel.body if not isinstance(s, Reduce | Store))
    inner: list[Statement] = []
    stored = iter(partial)
    for reduce in reduces:
        if nested:
            at = {reduce.axis: Dim.symbol(block)}
            inner.extend(substitute_axes(reduce.body, at))
            names = reduce.yields
        else:
            inner.append(_block_of(reduce, block))
            names = reduce.names
        inner.extend(Store(next(stored).name, (Dim.symbol(block),), name) for name in names)
    used = _needed(before, inner)
    first = _kernel(kernel, (*used, Parallel(block, count, tuple(inner))), partial, "out")
    second = _fold_partials(kernel, kernel.body, reduces, partial, count, (), not nested)
    return Halves(first, second, tuple(partial))


def _needed(before: Body, users: Sequence[Statement]) -> Body:
    """Of the statements before a loop those that it uses."""
    wanted = {name for s in walk(tuple(users)) for name in _uses(s)}
    kept: list[Statement] = []
    for statement in reversed(before):
        if not wanted.isdisjoint(_defines(statement)):
            kept.append(statement)
            wanted |= _uses(statement)
    return tuple(reversed(kept))


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
    made = _with_folds(body, reduces, partial, count, place, tree, _names(kernel))
    return _kernel(kernel, made, partial, "in")


def _with_folds(
    body: Body,
    reduces: Sequence[Reduce],
    partial: Sequence[Parameter],
    count: Size,
    place: tuple[Size, ...],
    tree: bool,
    taken: set[str],
) -> Body:
    stored = iter(partial)
    out: list[Statement] = []
    for statement in body:
        if not isinstance(statement, Reduce) or statement not in reduces:
            out.append(statement)
            continue
        axis = fresh("b", taken)
        loads: list[Statement] = []
        for dtype in statement.dtypes:
            buffer = next(stored)
            name = fresh("part", taken)
            loads.append(Load(name, buffer.name, (Dim.symbol(axis), *place), dtype))
        names = tuple(getattr(load, "name", "") for load in loads)
        out.append(
            replace(
                statement, axis=axis, extent=count, body=tuple(loads), yields=names, tree=tree,
                loose=False,
            )
        )  # fmt: skip
    kept = [s for s in out if bodies(s) or isinstance(s, Store)]
    before = tuple(s for s in out if not bodies(s) and not isinstance(s, Store))
    useful = {id(s) for s in _needed(before, kept)}
    return tuple(s for s in out if bodies(s) or isinstance(s, Store) or id(s) in useful)


def _kernel(
    kernel: Kernel, body: Body, partial: Sequence[Parameter], mode: str
) -> Kernel:
    """A kernel over the parameters of the original that `body` uses, and the partial results."""
    used = {s.buffer for s in walk(body) if isinstance(s, Load | Store)}
    params = [p for p in kernel.params if p.name in used]
    params += [replace(p, mode=mode) for p in partial]
    made = Kernel(kernel.name, tuple(params), (), body)
    return replace(made, dims=kernel_dims(made))


def _split_columns(kernel: Kernel, loop: Parallel, hints: Mapping[str, int]) -> Halves | None:
    """Few columns and many rows: threads take blocks of rows."""
    loops = [s for s in loop.body if bodies(s)]
    reduces = [s for s in loops if isinstance(s, Reduce)]
    if len(loops) != 1 or not reduces or _nested(reduces[0]) or reduces[0].loose:
        return None
    reduce = reduces[0]
    columns, rows = _size(loop.extent, hints), _size(reduce.extent, hints)
    if columns is None or rows is None or columns >= NARROW or rows < 4 * BLOCK:
        return None
    if not _steps_over_rows(reduce):
        return None
    count = _blocks(reduce.extent)
    block = fresh("b", _names(kernel))
    partial = _partials(kernel, reduce.dtypes, (count, loop.extent))
    column = Dim.symbol(loop.axis)
    at = loop.body.index(reduce)
    stores = [
        Store(p.name, (Dim.symbol(block), column), name)
        for p, name in zip(partial, reduce.names)
    ]
    inside = (*_needed(loop.body[:at], [reduce]), _block_of(reduce, block), *stores)
    rows_loop = Parallel(block, count, (replace(loop, body=inside),))
    outside = tuple(s for s in kernel.body if s is not loop)
    first = _kernel(kernel, (*_needed(outside, [rows_loop]), rows_loop), partial, "out")
    folded = _with_folds(loop.body, reduces, partial, count, (column,), True, _names(kernel))
    whole = tuple(replace(loop, body=folded) if s is loop else s for s in kernel.body)
    return Halves(first, _kernel(kernel, whole, partial, "in"), tuple(partial))


def _steps_over_rows(reduce: Reduce) -> bool:
    """True where the reduced axis is not the fastest of what is loaded."""
    for s in walk(reduce.body):
        if isinstance(s, Load) and s.index:
            last = s.index[-1]
            if isinstance(last, Dim) and reduce.axis in last.symbols():
                return False
    return True
