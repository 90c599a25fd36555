"""Which input and output of a kernel may be one memory.

Law: a pair is safe if every element of the input is loaded before the same element of the
output is stored, whatever the order of parallel iterations. Proved here in one simple way: all
loops around both the load and the store index both buffers in the same places, so different
iterations touch different elements; within one iteration the load comes first.
Not here: whether the plan wants to.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..dims import Dim
from .kernel import For, Index, Kernel, Load, Parallel, Reduce, Statement, Store, Update, bodies

Path = tuple[tuple[Statement | None, int], ...]


@dataclass(frozen=True, slots=True)
class _Access:
    """An access, with the position in each block from the kernel's down to its own."""

    index: tuple[Index, ...]
    path: Path
    unique: bool  # no mask, no index that is a value


def safe_pairs(kernel: Kernel) -> frozenset[tuple[int, int]]:
    """Pairs (input, output), each counted among its kind in parameter order."""
    loads, stores = _accesses(kernel)
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
                _before(load, written[0]) for load in loads.get(param.name, [])
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


def _before(load: _Access, store: _Access) -> bool:
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
        if not _same_place(loop.axis, load.index, store.index):
            return False
    both_here = len(load.path) == len(store.path) == common
    return load.index == store.index if both_here else True


def _same_place(axis: str, a: tuple[Index, ...], b: tuple[Index, ...]) -> bool:
    return any(
        isinstance(x, Dim) and x.name == axis and isinstance(y, Dim) and y.name == axis
        for x, y in zip(a, b)
    )
