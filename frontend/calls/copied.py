"""Arrays of a call that kernels cannot take as they are, and what stands for them.

A view stands for an instance of a subclass, a copy for an array that is not aligned. What a copy
was given is written to the caller's array when the call has succeeded; a result that is what
stands for an array is that array.

Invariants: an array passed twice has one copy; a copy has no elements in common with another
array of the call if one of them is written.
Not here: the normal form itself (arguments.py), containers (rebinding.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arguments import FlatCall
from .overlap import Met, refuse_sharing
from .specialise import Traced
from .trees import flatten


class Replaced:
    """The replaced arrays of a call: their leaves, what was passed, and what stands for it."""

    def __init__(self, values: Sequence[Any], call: FlatCall) -> None:
        originals = flatten(tuple(values))[0]
        pairs = zip(originals, call.leaves, strict=True)
        self._passed = {at: old for at, (old, new) in enumerate(pairs) if old is not new}
        self._leaves = call.leaves

    def refuse_missed_writes(self, arrays: Sequence[Met]) -> None:
        """Raise ArgError where a copy and another array have elements in common that are
        written: one would not see it."""
        for item in self._copies(arrays):
            passed = self._passed[item.key]
            for other in arrays:
                array = self._passed.get(other.key, other.array) if _is_leaf(other) else other.array
                if other is item or array is passed or not (item.written or other.written):
                    continue
                if np.may_share_memory(passed, array) and np.shares_memory(passed, array):
                    refuse_sharing((item.name, other.name), f"{item.name} is not aligned")

    def write_back(self, traced: Traced, call: FlatCall) -> None:
        """Give the caller's arrays what their copies were given."""
        for item in self._copies(traced.arrays(call)):
            if item.written:
                np.copyto(self._passed[item.key], item.array)

    def given_back(self, results: Any) -> Any:
        """The results, with the caller's arrays for what stands for them."""
        mine = {id(self._leaves[at]): passed for at, passed in self._passed.items()}
        leaves, tree = flatten(results)
        if not any(id(leaf) in mine for leaf in leaves):
            return results
        return tree.rebuild([mine.get(id(leaf), leaf) for leaf in leaves])

    def _copies(self, arrays: Sequence[Met]) -> list[Met]:
        return [
            item for item in arrays
            if _is_leaf(item) and item.key in self._passed
            and not np.may_share_memory(item.array, self._passed[item.key])
        ]  # fmt: skip


def _is_leaf(item: Met) -> bool:
    return isinstance(item.key, int)
