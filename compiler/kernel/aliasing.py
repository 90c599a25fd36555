"""Which input and output of a kernel may be one memory.

Law: a pair is safe if every element of the input is loaded before the same element of the
output is stored, whatever the order of parallel iterations. Proved here in two simple ways: all
loops around both the load and the store index both buffers in the same places, so different
iterations touch different elements, and within one iteration the load comes first; or the load
never touches a place that is stored to (an index that lies before or behind all those of the
store, or leaves another remainder).
Not here: whether the plan wants to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set

from ..dims import Dim, Size
from ..records import dataclass
from .kernel import (
    Checked,
    For,
    Index,
    Kernel,
    Load,
    Loop,
    Parallel,
    Reduce,
    Scan,
    Statement,
    Store,
    Update,
    bodies,
)

Path = tuple[tuple[Statement | None, int], ...]
Term = tuple[tuple[object, ...], int]
Extents = Mapping[str, Size | None]


@dataclass(frozen=True, slots=True)
class _Access:
    """An access, with the position in each block from the kernel's down to its own."""

    index: tuple[Index, ...]
    path: Path
    unique: bool  # no mask, no index that is a value


def safe_pairs(kernel: Kernel) -> frozenset[tuple[int, int]]:
    """Pairs (input, output), each counted among its kind in parameter order."""
    loads, stores = _accesses(kernel)
    extents = _extents(kernel)
    inputs = [p for p in kernel.params if p.mode == "in"]
    outputs = [p for p in kernel.params if p.mode != "in"]
    found: set[tuple[int, int]] = set()
    for o, out in enumerate(outputs):
        written = stores.get(out.name, [])
        if len(written) != 1 or out.name in loads or not written[0].unique:
            continue
        for i, param in enumerate(inputs):
            if param.strided or param.dtype.itemsize != out.dtype.itemsize:
                continue
            if param.shape == out.shape and all(
                _before(load, written[0], extents) or _apart(load, written[0], extents)
                for load in loads.get(param.name, [])
            ):
                found.add((i, o))
    return frozenset(found)


def _accesses(kernel: Kernel) -> tuple[dict[str, list[_Access]], dict[str, list[_Access]]]:
    loads: dict[str, list[_Access]] = {}
    stores: dict[str, list[_Access]] = {}
    stack: list[tuple[tuple[Statement, ...], Path, Statement | None]] = [(kernel.body, (), None)]
    while stack:
        body, path, owner = stack.pop()
        for at, statement in enumerate(body):
            here = (*path, (owner, at))
            if isinstance(statement, Load):
                plain = all(not hasattr(i, "extent") for i in statement.index)
                loads.setdefault(statement.buffer, []).append(_Access(statement.index, here, plain))
            elif isinstance(statement, Store):
                plain = all(not hasattr(i, "extent") for i in statement.index)
                stores.setdefault(statement.buffer, []).append(
                    _Access(statement.index, here, plain)
                )
            elif isinstance(statement, Update):
                stores.setdefault(statement.buffer, []).append(
                    _Access(statement.index, here, False)
                )
            for inner in bodies(statement):
                stack.append((inner, here, statement))
    return loads, stores


def _extents(kernel: Kernel) -> Extents:
    """How far each axis runs; None where it is not known."""
    found: dict[str, Size | None] = {}
    stack = list(kernel.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, Parallel | For | Reduce | Scan | Loop):
            found[statement.axis] = statement.extent
        for inner in bodies(statement):
            stack.extend(inner)
    return found


def _before(load: _Access, store: _Access, extents: Extents) -> bool:
    if not load.unique:
        return False
    common = 0
    for mine, theirs in zip(load.path, store.path):
        if mine[0] is not theirs[0]:
            return False
        common += 1
        if mine[1] != theirs[1]:
            break
    loops = [owner for owner, _ in load.path[:common] if owner is not None]
    if not loops and len(store.path) > 1:
        return False  # chunks of the loop run the code before it again
    if load.path[common - 1][1] >= store.path[common - 1][1]:
        return False
    for loop in loops:
        if not isinstance(loop, Parallel | For | Reduce):
            return False
        if not _same_place(loop.axis, load.index, store.index, extents.keys() - {loop.axis}):
            return False
    both_here = len(load.path) == len(store.path) == common
    return load.index == store.index if both_here else True


def _same_place(axis: str, a: tuple[Index, ...], b: tuple[Index, ...], others: Set[str]) -> bool:
    """Whether an axis of both buffers has the same index, another one for each trip of `axis`."""
    for x, y in zip(a, b):
        if isinstance(x, Dim) and x == y:
            step = x.coefficient(axis)
            if isinstance(step, int) and step and others.isdisjoint(x.symbols()):
                return True
    return False


def _apart(load: _Access, store: _Access, extents: Extents) -> bool:
    """Whether no trip's load is at any trip's store."""
    return any(
        _never_equal(x, y, extents)
        for x, y in zip(load.index, store.index)
        if not isinstance(x, Checked) and not isinstance(y, Checked)
    )


def _never_equal(x: Size, y: Size, extents: Extents) -> bool:
    """Whether two indices differ whatever the axes are, each in a trip of its own."""
    for a, b in ((x, y), (y, x)):
        low, high = _end(a, extents, -1), _end(b, extents, 1)
        if low is not None and high is not None and _is_positive(low - high):
            return True
    (mine, first), (theirs, second) = _varying(x, extents), _varying(y, extents)
    constant, rest = _constant(first - second)  # sizes are the same in every trip
    common = math.gcd(*[step for _, step in (*mine, *theirs, *rest)])
    return constant % common != 0 if common else constant != 0


def _varying(size: Size, extents: Extents) -> tuple[list[Term], Size]:
    """The terms with axes in them, and the rest."""
    if isinstance(size, int):
        return [], size
    terms = [term for term in size.terms if not extents.keys().isdisjoint(Dim((term,)).symbols())]
    rest: Size = size
    for term in terms:
        rest = rest - Dim((term,))
    return terms, rest


def _end(size: Size, extents: Extents, sign: int) -> Size | None:
    """The least (sign -1) or greatest value over all trips; None where that is not clear."""
    terms, total = _varying(size, extents)
    for factors, step in terms:
        extent = extents.get(str(factors[0])) if len(factors) == 1 else None
        if extent is None:
            return None
        if step * sign > 0:
            total = total + (extent - 1) * step
    return total


def _is_positive(size: Size) -> bool:
    """Whether it is above 0 for all sizes, which are not negative."""
    constant, rest = _constant(size)
    return constant > 0 and all(
        step > 0 and all(isinstance(factor, str) for factor in factors) for factors, step in rest
    )


def _constant(size: Size) -> tuple[int, list[Term]]:
    """The constant of a sum, and its other terms."""
    if isinstance(size, int):
        return size, []
    rest = [term for term in size.terms if term[0]]
    return sum(step for factors, step in size.terms if not factors), rest
