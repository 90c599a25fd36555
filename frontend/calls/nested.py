"""Nested arguments and results by optree: containers in containers, and types that users register.

Loaded by trees.py when something is nested: optree takes longer to load than a flat call to trace.

Invariants: leaves come in optree's order (dicts by sorted key).
Not here: arguments that are all leaves (trees.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import optree

_NAMESPACE = "tracemill"
_dataclasses_seen: set[type] = set()


def flatten(value: Any) -> tuple[list[Any], Any]:
    """Leaves and `optree.PyTreeSpec`."""
    while True:
        leaves, spec = optree.tree_flatten(value, namespace=_NAMESPACE)
        fresh = [type(leaf) for leaf in leaves if _is_new_dataclass(leaf)]
        if not fresh:
            return leaves, spec
        for cls in fresh:
            _register(cls)


def rebuild(spec: Any, leaves: Sequence[Any]) -> Any:
    """The nested value with these leaves."""
    return optree.tree_unflatten(spec, leaves)


def steps(spec: Any) -> list[list[tuple[Any, bool, type]]]:
    """For each leaf the way from the root: key or name, whether it is an attribute's, and the
    container's type."""
    return [
        [(step.entry, isinstance(step, optree.GetAttrEntry), step.type) for step in accessor]
        for accessor in optree.treespec_accessors(spec)
    ]


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
