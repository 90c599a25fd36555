"""A reduction that others wait for becomes a kernel of its own, so that threads can share it.

A variance needs the mean first: two reductions over everything, or down the rows of few columns,
in one kernel. Only a lone reduction can be split into blocks (split.py); so the first one is
peeled off, its result is a temporary, and the rest loads it.

Law: the same values from the same operations; only where a result waits changes.
Not here: the split itself (split.py), loops that share nothing (halves.phases).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dims import Dim, Size
from ..records import dataclass, replace
from .fresh import fresh
from .halves import Body, kernel_over, names_of, needed
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
from .split import is_large
from .split_columns import are_few_columns
from .symbols import map_body


@dataclass(frozen=True, slots=True)
class Peeled:
    """The kernel of the first reduction, and the rest that loads what it stored."""

    first: Kernel
    rest: Kernel
    stored: tuple[Parameter, ...]


def peel(kernel: Kernel, hints: Mapping[str, int]) -> Peeled | None:
    """The first reduction and the rest; None where there is one loop, or too little to share."""
    loops = [s for s in kernel.body if bodies(s)]
    if len(loops) > 1 and isinstance(loops[0], Reduce) and is_large([loops[0]], hints):
        return _peeled(kernel, kernel.body, loops[0], None)
    if len(loops) == 1 and isinstance(loops[0], Parallel):
        inner = [s for s in loops[0].body if bodies(s)]
        first = inner[0] if len(inner) > 1 else None
        if isinstance(first, Reduce) and are_few_columns(loops[0], first, hints):
            return _peeled(kernel, loops[0].body, first, loops[0])
    return None


def _peeled(kernel: Kernel, body: Body, first: Reduce, around: Parallel | None) -> Peeled | None:
    at = body.index(first)
    before = body[:at]
    outside = () if around is None else tuple(s for s in kernel.body if s is not around)
    if any(isinstance(s, Store | Update) for s in (*outside, *before, *walk((first,)))):
        return None
    if any(bodies(s) for s in outside):
        return None
    shape: tuple[Size, ...] = () if around is None else (around.extent,)
    place: tuple[Size, ...] = () if around is None else (Dim.symbol(around.axis),)
    taken = names_of(kernel)
    stored = tuple(Parameter(fresh("waiting", taken), d, shape, "out") for d in first.dtypes)
    pairs = list(zip(stored, first.names))
    stores = tuple(Store(p.name, place, name) for p, name in pairs)
    loads = tuple(Load(name, p.name, place, p.dtype) for p, name in pairs)
    head: Body = (*needed(before, [first]), first, *stores)
    tail = _useful((*before, *loads, *body[at + 1 :]))
    if around is not None:
        head = _around(outside, replace(around, body=head))
        tail = _around(outside, replace(around, body=tail))
    made = kernel_over(kernel, head, stored, "out")
    return Peeled(made, kernel_over(kernel, tail, stored, "in"), stored)


def _around(outside: Body, loop: Parallel) -> Body:
    return (*needed(outside, [loop, *walk(loop.body)]), loop)


def _useful(body: Body) -> Body:
    """The body without values that nobody uses."""
    ends = [s for s in body if _acts(s)]
    kept = {id(s) for s in needed(tuple(s for s in body if not _acts(s)), ends)}
    return tuple(s for s in body if _acts(s) or id(s) in kept)


def _acts(s: Statement) -> bool:
    return bool(bodies(s)) or getattr(s, "name", None) is None


def apart(
    kernels: Sequence[Kernel], between: Sequence[Parameter], taken: set[str]
) -> tuple[list[Kernel], list[Parameter]]:
    """The kernels and the memory between them, named as nothing in `taken` is."""
    names = {p.name: fresh(p.name, taken) for p in between}
    memory = [replace(p, name=names[p.name]) for p in between]
    return [_renamed(kernel, names) for kernel in kernels], memory


def _renamed(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    def change(s: Statement) -> Statement:
        if isinstance(s, Load | Store | Update) and s.buffer in names:
            return replace(s, buffer=names[s.buffer])
        return s

    params = tuple(replace(p, name=names.get(p.name, p.name)) for p in kernel.params)
    return replace(kernel, params=params, body=map_body(kernel.body, change))
