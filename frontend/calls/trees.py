"""Nested arguments and results: flattening, and the way to each leaf.

Dicts, lists, tuples, named tuples, and dataclass instances are containers (optree's, plus
dataclasses, registered when first seen); None is structure; everything else is a leaf.

Invariants: leaves come in optree's order (dicts by sorted key); two trees of equal `Tree` have
leaves at the same places.
Not here: what a leaf means to a trace, what is nested (nested.py, loaded when something is).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.records import dataclass
from ..loading import load

_PLAIN = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)


class LeafSpec:
    """The structure of a value that is a leaf; it answers as an `optree.PyTreeSpec` does."""

    type = None
    num_children = 0

    def is_leaf(self) -> bool:
        return True

    def children(self) -> list[Any]:
        return []

    def entries(self) -> list[Any]:
        return []

    def __repr__(self) -> str:
        return "PyTreeSpec(*)"


class RowSpec:
    """The structure of a tuple of leaves."""

    type = tuple

    def __init__(self, count: int) -> None:
        self.num_children = count

    def is_leaf(self) -> bool:
        return False

    def children(self) -> list[Any]:
        return [_LEAF_SPEC] * self.num_children

    def entries(self) -> list[int]:
        return list(range(self.num_children))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowSpec) and self.num_children == other.num_children

    def __hash__(self) -> int:
        return hash((RowSpec, self.num_children))

    def __repr__(self) -> str:
        stars = ", ".join("*" * self.num_children)
        return f"PyTreeSpec(({stars}{',' if self.num_children == 1 else ''}))"


_LEAF_SPEC = LeafSpec()


@dataclass(frozen=True, slots=True)
class Tree:
    """The structure of a nested value."""

    spec: Any  # optree.PyTreeSpec, or one of those above

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """The nested value with these leaves."""
        if self.spec is _LEAF_SPEC:
            return leaves[0]
        if isinstance(self.spec, RowSpec):
            return tuple(leaves)
        return load("calls.nested").rebuild(self.spec, leaves)


@dataclass(frozen=True, slots=True)
class Step:
    """One step from a container to what it holds: an item or an attribute."""

    key: Any
    attribute: bool
    container: type

    def take(self, container: Any) -> Any:
        """Follow the step."""
        return getattr(container, self.key) if self.attribute else container[self.key]

    def __repr__(self) -> str:
        return f".{self.key}" if self.attribute else f"[{self.key!r}]"


Path = tuple[Step, ...]


def flatten(value: Any) -> tuple[list[Any], Tree]:
    """Leaves and structure of a nested value."""
    if isinstance(value, _PLAIN):
        return [value], _LEAF
    if type(value) is tuple and all(isinstance(item, _PLAIN) for item in value):
        return list(value), Tree(RowSpec(len(value)))
    leaves, spec = load("calls.nested").flatten(value)
    if spec.is_leaf():
        return leaves, _LEAF
    if spec.type is tuple and all(part.is_leaf() for part in spec.children()):
        spec = RowSpec(len(leaves))  # one form for each structure: trees are compared
    return leaves, Tree(spec)


def paths(tree: Tree) -> list[Path]:
    """The way from the root to each leaf, in order."""
    if tree.spec is _LEAF_SPEC:
        return [()]
    if isinstance(tree.spec, RowSpec):
        return [(Step(at, False, tuple),) for at in range(tree.spec.num_children)]
    found: list[list[tuple[Any, bool, type]]] = load("calls.nested").steps(tree.spec)
    return [tuple([Step(*step) for step in steps]) for steps in found]


_LEAF = Tree(_LEAF_SPEC)
