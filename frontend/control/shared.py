"""Which arrays that control flow gives may be one memory: those become kin.

    z = y[:2]                  the branch gives y a copy of its array: it is kin of what y and z
    if c: y = y * 0.5          were, as that it is if c is false
    while c: t = t + 1; u = t  what the loop gives t and u is kin of each other

Not here: what kinship forbids (tracing/kinship.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ..compiler.records import dataclass
from ..tracing.capture import capture
from ..tracing.kinship import Root, kin_of, relate
from ..tracing.memory import root_of
from ..tracing.state import Trace
from ..tracing.tensor import TracedArray
from .nests import Pair


@dataclass(frozen=True, slots=True)
class Shared:
    """What leaves may share. outside: for each leaf other memory that it may be. among: pairs of
    leaves that may be one."""

    outside: tuple[tuple[Root, ...], ...] = ()
    among: list[tuple[int, int]] = field(default_factory=list)

    def is_as(self, other: Shared) -> bool:
        """Whether both say the same of bodies that were traced one after the other: the memory
        that the body makes is new each time, and what is known only grows."""
        return self.among == other.among and list(map(len, self.outside)) == list(
            map(len, other.outside)
        )

    def tell(self, trace: Trace, leaves: Sequence[Any]) -> None:
        """Make leaves of `trace` kin of what they may be."""
        for leaf, roots in zip(leaves, self.outside):
            for root in roots:
                _relate(trace, leaf, root)
        for one, other in self.among:
            if type(leaves[other]) is TracedArray:
                _relate(trace, leaves[one], root_of(leaves[other].base_memory))


def shared(pairs: Sequence[Pair], traces: tuple[Trace, Trace], bodies: Sequence[Trace]) -> Shared:
    """What leaves share that are one of two sides, made in these traces. Memory that bodies make
    is nobody else's behind them."""
    sides = [
        [_memory(item, trace) for item in items]
        for items, trace in zip(([p.left for p in pairs], [p.right for p in pairs]), traces)
    ]
    outside = []
    for both in zip(*sides):
        found = {id(root): root for one in both for root in one if root.trace not in bodies}
        outside.append(tuple(found.values()))
    among = [
        (i, j)
        for j in range(len(pairs))
        for i in range(j)
        if any(_may_be_one(side[i], side[j]) for side in sides)
    ]
    return Shared(tuple(outside), among)


def _memory(item: Any, trace: Trace) -> list[Root]:
    """The memory of an array, and then its kin."""
    if type(item) is np.ndarray:
        item = capture(trace, item)
    if type(item) is not TracedArray:
        return []
    return [root_of(item.base_memory), *kin_of(trace, item.base_memory)]


def _may_be_one(one: Sequence[Root], other: Sequence[Root]) -> bool:
    """Whether two arrays may share memory: what both of them may be is not enough."""
    return bool(one and other) and any(root is one[0] for root in other)


def _relate(trace: Trace, leaf: Any, root: Root) -> None:
    if type(leaf) is TracedArray and root_of(leaf.base_memory) is not root:
        relate(trace, root_of(leaf.base_memory), root)
