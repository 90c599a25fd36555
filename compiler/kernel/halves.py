"""The two halves of a split reduction, and the pieces they are made of.

Invariants: pure functions on kernel data.
Not here: which reductions are split, and how (split.py, split_columns.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dims import Dim, Size, minimum
from ..records import dataclass, replace
from ..types import DType
from .fresh import fresh
from .kernel import (
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
from .monoids import BLOCK
from .symbols import kernel_dims, substitute_axes

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


def is_nested(reduce: Reduce) -> bool:
    return any(isinstance(s, Reduce) for s in reduce.body)


def defines(statement: Statement) -> set[str]:
    if isinstance(statement, Reduce):
        return set(statement.names)
    name = getattr(statement, "name", None)
    return set() if name is None else {name}


def uses(statement: Statement) -> set[str]:
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


def blocks_of(extent: Size) -> Size:
    return (extent + (BLOCK - 1)) // BLOCK


def block_of(reduce: Reduce, block: str) -> Reduce:
    """The reduction over one block."""
    start = Dim.symbol(block) * BLOCK
    body = substitute_axes(reduce.body, {reduce.axis: start + Dim.symbol(reduce.axis)})
    return replace(reduce, extent=minimum(BLOCK, reduce.extent - start), body=body)


def partials(kernel: Kernel, dtypes: Sequence[DType], shape: tuple[Size, ...]) -> list[Parameter]:
    taken = names_of(kernel)
    return [Parameter(fresh("partial", taken), dtype, shape, "out") for dtype in dtypes]


def names_of(kernel: Kernel) -> set[str]:
    taken = {p.name for p in kernel.params} | set(kernel.dims)
    for s in walk(kernel.body):
        taken |= defines(s)
        taken |= {getattr(s, "axis", "")}
    return taken


def needed(before: Body, users: Sequence[Statement]) -> Body:
    """Of the statements before a loop those that it uses."""
    wanted = {name for s in walk(tuple(users)) for name in uses(s)}
    kept: list[Statement] = []
    for statement in reversed(before):
        if not wanted.isdisjoint(defines(statement)):
            kept.append(statement)
            wanted |= uses(statement)
    return tuple(reversed(kept))


def with_folds(
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
    useful = {id(s) for s in needed(before, kept)}
    return tuple(s for s in out if bodies(s) or isinstance(s, Store) or id(s) in useful)


def kernel_over(kernel: Kernel, body: Body, partial: Sequence[Parameter], mode: str) -> Kernel:
    """A kernel over the parameters of the original that `body` uses, and the partial results."""
    used = {s.buffer for s in walk(body) if isinstance(s, Load | Store | Update)}
    params = [p for p in kernel.params if p.name in used]
    params += [replace(p, mode=mode) for p in partial]
    made = Kernel(kernel.name, tuple(params), (), body)
    return replace(made, dims=kernel_dims(made))


def hinted(size: Size, hints: Mapping[str, int]) -> int | None:
    found = size.substitute(hints) if isinstance(size, Dim) else size
    return found if isinstance(found, int) else None


def phases(kernel: Kernel) -> list[Kernel]:
    """One kernel for each outermost loop, where they share nothing but statements before them;
    the kernel alone otherwise. Each can then be spread over threads."""
    loops = [s for s in kernel.body if bodies(s)]
    plain = tuple(s for s in kernel.body if not bodies(s))
    if len(loops) < 2 or not all(isinstance(s, Parallel | For) for s in loops):
        return [kernel]
    if any(isinstance(s, Store | Update) for s in plain):
        return [kernel]
    return [kernel_over(kernel, (*needed(plain, [loop]), loop), (), "in") for loop in loops]
