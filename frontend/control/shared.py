"""Arrays that control flow gives a name, and whose memory another array may be.

In Python a name that is given an array shares its memory. In the graph what a branch or loop
gives is memory of its own: so neither may be written afterwards, which is refused where it is
done. A name that keeps its array on one way may be written, as nobody else is known to hold it,
unless it is the caller's.

Not here: arrays that bodies write, which keep their memory (tracing/memory.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..tracing.box import SharedBase
from ..tracing.capture import capture
from ..tracing.memory import RegionBase, blur, spend
from ..tracing.state import Trace
from ..tracing.tensor import TracedArray
from ..tracing.views import Base


def sources(sides: Iterable[tuple[Any, Trace]], held: Any) -> tuple[Base, ...]:
    """Memory of other arrays that an array may be which is one of `sides`, each with the trace of
    its block. held: what the name held before."""
    found: list[Base] = []
    for item, trace in sides:
        if type(item) is np.ndarray:
            found.append(capture(trace, item).base_memory)
        elif type(item) is TracedArray:
            chosen = item.tracing.chosen.get(id(item.base_memory))
            if chosen is not None:
                found.extend(chosen[1])
            elif not _is_own(item, trace) and (item is not held or _is_of_caller(item)):
                found.append(item.base_memory)
    return tuple(found)


def named(leaf: Any, found: tuple[Base, ...]) -> Any:
    """The leaf, which gets a name and may be this memory: none of them is written from now on."""
    if found and type(leaf) is TracedArray:
        for base in (leaf.base_memory, *found):
            blur(leaf.tracing, base)
    return leaf


def returned(leaf: Any, found: tuple[Base, ...]) -> Any:
    """The leaf, which is returned, so that it has no name while its function runs."""
    if found and type(leaf) is TracedArray:
        leaf.tracing.chosen[id(leaf.base_memory)] = leaf.base_memory, found
    return leaf


def written(trace: Trace, leaf: Any, held: Any) -> None:
    """The array that a loop began with, behind it. leaf: what stood for it in a trip."""
    if type(leaf) is TracedArray and leaf.base_memory.version and type(held) is TracedArray:
        spend(trace, held.base_memory)


def heard(outer: Trace, inner: Trace) -> None:
    """What is not to be written in a block is not behind it either."""
    outer.blurred.update(inner.blurred)
    outer.spent.update(inner.spent)


def _is_own(item: TracedArray, trace: Trace) -> bool:
    return item.tracing is trace and not isinstance(item.base_memory, RegionBase)


def _is_of_caller(item: TracedArray) -> bool:
    base = item.base_memory
    root = base.memory.root if isinstance(base, RegionBase) else base
    return isinstance(base, SharedBase) or not hasattr(root, "input") or root.input is not None
