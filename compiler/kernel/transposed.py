"""An operand that lanes would read in big steps is turned round first, where all rows share it.

In a nest ``i { j { reduce r } }`` whose reduction is short, lanes run along j: each has its own
sum, and nothing is folded across lanes. What is loaded at ``[j, r]`` lies a row apart from lane to
lane; a copy with j last lies side by side. It is made once, by a kernel of its own, and read for
every i.

Law: the same values from the same operations; only where an operand lies changes.
Not here: matrix products, which have copies of their own (packing.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..dims import Dim, Size
from ..records import dataclass, replace
from .fresh import fresh
from .halves import hinted, names_of
from .kernel import (
    Index,
    Kernel,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Statement,
    Store,
    bodies,
    walk,
)
from .symbols import kernel_dims, map_body

LONG = 256  # elements from which on a reduction's own axis makes good vectors
SHARED = 8  # rows that pay for the copy
WIDE = 16  # results of a row that fill vectors


@dataclass(frozen=True, slots=True)
class Turned:
    """The copies, each of one parameter of the original to one of `temporaries`, and the kernel
    that reads them."""

    copies: tuple[Kernel, ...]
    temporaries: tuple[Parameter, ...]
    kernel: Kernel


def turn_operands(kernel: Kernel, hints: Mapping[str, int]) -> Turned | None:
    """The kernel with its operands turned round; None where nothing is gained."""
    nest = _pair_nest(kernel, hints)
    if nest is None:
        return None
    outer, lanes, reduce = nest
    params = {p.name: p for p in kernel.params}
    taken = names_of(kernel)
    made: dict[tuple[str, int], Parameter] = {}
    for load in walk(reduce.body):
        if isinstance(load, Load):
            place = _lane_place(load, outer.axis, lanes.axis, reduce.axis)
            param = params.get(load.buffer)
            if place is not None and param is not None and param.mode == "in":
                made.setdefault((param.name, place), _turned(param, place, taken))
    if not made:
        return None

    def change(s: Statement) -> Statement:
        if not isinstance(s, Load):
            return s
        place = _lane_place(s, outer.axis, lanes.axis, reduce.axis)
        target = None if place is None else made.get((s.buffer, place))
        if target is None or place is None:
            return s
        return replace(s, buffer=target.name, index=_moved(s.index, place))

    body = map_body(kernel.body, change)
    used = {s.buffer for s in walk(body) if isinstance(s, Load)}
    kept = [p for p in kernel.params if p.mode != "in" or p.name in used]
    kept += [replace(p, mode="in") for p in made.values()]
    copies = [_copy(params[name], place, target) for (name, place), target in made.items()]
    whole = replace(kernel, params=tuple(kept), body=body)
    return Turned(tuple(copies), tuple(made.values()), replace(whole, dims=kernel_dims(whole)))


def _pair_nest(
    kernel: Kernel, hints: Mapping[str, int]
) -> tuple[Parallel, Parallel, Reduce] | None:
    """Rows, results of a row, and the short reduction of each."""
    loops: list[Statement] = []
    body = kernel.body
    while True:
        inner = [s for s in body if bodies(s)]
        if not inner:
            break
        if len(inner) > 1:
            return None
        loops.append(inner[0])
        (body,) = bodies(inner[0]) if len(bodies(inner[0])) == 1 else ((),)
    if len(loops) != 3:
        return None
    outer, lanes, reduce = loops
    if not isinstance(outer, Parallel) or not isinstance(lanes, Parallel):
        return None
    if not isinstance(reduce, Reduce) or reduce.loose or reduce.tree:
        return None
    rows, wide, length = (hinted(s.extent, hints) for s in (outer, lanes, reduce))
    if rows is None or wide is None or length is None:
        return None
    return (outer, lanes, reduce) if rows >= SHARED and wide >= WIDE and length < LONG else None


def _lane_place(load: Load, row: str, lane: str, step: str) -> int | None:
    """Where the lanes' axis stands in an index that is shared by all rows, if not last."""
    if load.mask is not None or not load.index:
        return None
    place = None
    for at, index in enumerate(load.index):
        if not isinstance(index, Dim | int):
            return None
        symbols = index.symbols() if isinstance(index, Dim) else frozenset()
        if row in symbols:
            return None
        if lane in symbols:
            if place is not None or index != Dim.symbol(lane):
                return None
            place = at
    last = load.index[-1]
    along = isinstance(last, Dim) and step in last.symbols()
    return place if place is not None and along and place < len(load.index) - 1 else None


def _moved(index: tuple[Index, ...], place: int) -> tuple[Index, ...]:
    return (*index[:place], *index[place + 1 :], index[place])


def _turned(param: Parameter, place: int, taken: set[str]) -> Parameter:
    sizes = param.shape
    shape = (*sizes[:place], *sizes[place + 1 :], sizes[place])
    return Parameter(fresh("turned", taken), param.dtype, shape, "out")


def _copy(source: Parameter, place: int, target: Parameter) -> Kernel:
    taken = {source.name, target.name}
    taken |= {s for size in source.shape if isinstance(size, Dim) for s in size.symbols()}
    axes = [fresh("t", taken) for _ in target.shape]
    index: list[Size] = [Dim.symbol(axis) for axis in axes[:-1]]
    index.insert(place, Dim.symbol(axes[-1]))
    name = fresh("x", taken)
    body: tuple[Statement, ...] = (
        Load(name, source.name, tuple(index), source.dtype),
        Store(target.name, tuple(Dim.symbol(axis) for axis in axes), name),
    )
    for axis, size in reversed(list(zip(axes, target.shape))):
        body = (Parallel(axis, size, body),)
    made = Kernel("turn", (source, target), (), body)
    return replace(made, dims=kernel_dims(made))
