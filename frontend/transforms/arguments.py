"""The arguments of a function that is differentiated: which leaves it is differentiated by.

Invariants: leaves that are floating or complex numbers are parameters of the function that is
traced; integers, bools and what is no array are handed to it as they are.
Not here: tangents (fitting.py).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..calls.trees import Tree, flatten, paths
from ..compiler.ir.graph import Value
from ..compiler.records import dataclass
from ..control.carried import path_text
from ..lifted import read
from ..numpy.operands import is_traced, value_of
from ..tracing.regions import Handed, Regions
from ..tracing.state import Trace
from .inner import Inner, handed

Together = Callable[[Sequence[Any]], tuple[Sequence[Any], Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Arguments:
    """Positional arguments. values: of the leaves that are numbers. smooth: the places of those
    that are differentiated by."""

    leaves: list[Any]
    tree: Tree
    values: dict[int, Value]
    smooth: tuple[int, ...]

    @classmethod
    def of(cls, given: Sequence[Any]) -> Arguments:
        """The arguments a function is to be called with."""
        leaves, tree = flatten(tuple(given))
        leaves = [read(leaf) for leaf in leaves]
        values = {at: value_of(leaf) for at, leaf in enumerate(leaves) if _is_number(leaf)}
        smooth = [at for at, value in values.items() if value.tensor.dtype.kind in "fc"]
        return cls(leaves, tree, values, tuple(smooth))

    @property
    def moved(self) -> list[Value]:
        """The values that are differentiated by."""
        return [self.values[at] for at in self.smooth]

    @property
    def all_values(self) -> list[Value | None]:
        """The value of each leaf that is a number."""
        return [self.values.get(at) for at in range(len(self.leaves))]

    def handed(self) -> dict[int, Handed]:
        """Parameters for the leaves that are differentiated by."""
        ways = paths(self.tree)
        return {
            at: handed(path_text(ways[at]).strip(".[]'") or "x", self.leaves[at])
            for at in self.smooth
        }

    def trace(
        self,
        trace: Trace,
        regions: Regions,
        name: str,
        function: Callable[..., Any],
        together: Together | None = None,
    ) -> Inner:
        """The function, traced with these as its parameters. together: makes all arguments and
        keywords of these, where there are others."""

        def rebuild(leaves: list[Any]) -> tuple[Sequence[Any], Mapping[str, Any]]:
            own = self.tree.rebuild(leaves)
            return (own, {}) if together is None else together(own)

        return Inner(trace, regions, name, function, self.leaves, rebuild, self.handed())

    def rebuild(self, by_place: Sequence[Any]) -> Any:
        """Something for each place that is differentiated by, nested as the arguments; None for
        all other leaves."""
        found = dict(zip(self.smooth, by_place, strict=True))
        return self.tree.rebuild([found.get(at) for at in range(len(self.leaves))])


def _is_number(leaf: Any) -> bool:
    return is_traced(leaf) or isinstance(
        leaf, np.ndarray | np.generic | bool | int | float | complex
    )


def held(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments as they are now: a derivative that is asked for later is taken there."""
    leaves, tree = flatten(tuple(arguments))
    copies = [copy.copy(leaf) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    kept: tuple[Any, ...] = tree.rebuild(copies)
    return kept
