"""Nested arguments and results: flattening, and the way to each leaf.

Dicts, lists, tuples, named tuples, and dataclass instances are containers (optree's, plus
dataclasses, registered when first seen); None is structure; everything else is a leaf.

Invariants: leaves come in optree's order (dicts by sorted key); two trees of equal `Tree` have
leaves at the same places.
Not here: what a leaf means to a trace.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

_NAMESPACE = "tracemill"
_PLAIN = (np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None))
_dataclasses_seen: set[type] = set()


@dataclass(frozen=True, slots=True)
class Tree:
    """The structure of a nested value."""

    spec: Any  # optree.PyTreeSpec

    def rebuild(self, leaves: Sequence[Any]) -> Any:
        """The nested value with these leaves."""
        return optree.tree_unflatten(self.spec, leaves)


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
    if isinstance(value, _PLAIN) and value is not None:
        return [value], _LEAF
    while True:
        leaves, spec = optree.tree_flatten(value, namespace=_NAMESPACE)
        fresh = [type(leaf) for leaf in leaves if _is_new_dataclass(leaf)]
        if not fresh:
            return leaves, Tree(spec)
        for cls in fresh:
            _register(cls)


def paths(tree: Tree) -> list[Path]:
    """The way from the root to each leaf, in order."""
    found = []
    for accessor in optree.treespec_accessors(tree.spec):
        steps = []
        for entry in accessor:
            attribute = isinstance(entry, optree.GetAttrEntry)
            steps.append(Step(entry.entry, attribute, entry.type))
        found.append(tuple(steps))
    return found


def _is_new_dataclass(leaf: Any) -> bool:
    cls = type(leaf)
    return dataclasses.is_dataclass(cls) and cls not in _dataclasses_seen


def _register(cls: type) -> None:
    names = tuple(f.name for f in dataclasses.fields(cls) if f.init)

    def take_apart(instance: Any) -> tuple[list[Any], None, tuple[str, ...]]:
        return [getattr(instance, name) for name in names], None, names

    def put_together(_: Any, children: Any) -> Any:
        return cls(**dict(zip(names, children, strict=True)))

    if cls not in _dataclasses_seen:
        _dataclasses_seen.add(cls)
        optree.register_pytree_node(
            cls,
            take_apart,
            put_together,
            path_entry_type=optree.GetAttrEntry,
            namespace=_NAMESPACE,
        )


_LEAF = Tree(optree.treespec_leaf(namespace=_NAMESPACE))
