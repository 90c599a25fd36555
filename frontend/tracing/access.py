"""How something outside the function is read again: a root, and steps from it.

Invariants: data, so that native code can follow it as well as Python; a step through a container
says which type and length the container had, and fails where that is not so any more.
Not here: what the thing read must be (guards.py).
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from tracemill.compiler.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class GlobalName:
    """Item `name` of a module's globals."""

    namespace: dict[str, Any]
    name: str


@dataclass(frozen=True, slots=True)
class CellContent:
    """What a closure cell holds."""

    cell: types.CellType


@dataclass(frozen=True, slots=True)
class FlatArgument:
    """The argument of flat index `leaf`."""

    leaf: int


@dataclass(frozen=True, slots=True)
class HeldObject:
    """An object that is always the same one."""

    thing: Any


Root = GlobalName | CellContent | FlatArgument | HeldObject


@dataclass(frozen=True, slots=True)
class AttributeStep:
    """Attribute `name`."""

    name: str


@dataclass(frozen=True, slots=True)
class ItemStep:
    """Item `key` of a container of exactly this type and length."""

    key: Any
    container: Any  # a container type
    length: int


@dataclass(frozen=True, slots=True)
class Access:
    """See the module. Called with the flat arguments it reads the thing."""

    root: Root
    steps: tuple[AttributeStep | ItemStep, ...] = ()

    def attribute(self, name: str) -> Access:
        """The way to an attribute of what this reads."""
        return replace(self, steps=(*self.steps, AttributeStep(name)))

    def item(self, key: Any, container: Any) -> Access:
        """The way to an item of `container`, which this reads."""
        step = ItemStep(key, type(container), len(container))
        return replace(self, steps=(*self.steps, step))

    def __call__(self, leaves: Sequence[Any]) -> Any:
        """Read it. Raises LookupError, AttributeError or ValueError where it is not there."""
        found: Any = _at_root(self.root, leaves)
        for step in self.steps:
            found = _followed(found, step)
        return found


def _followed(found: Any, step: AttributeStep | ItemStep) -> Any:
    if isinstance(step, AttributeStep):
        return getattr(found, step.name)
    if not isinstance(found, step.container) or len(found) != step.length:
        raise LookupError(step.key)
    return found[step.key]


def _at_root(root: Root, leaves: Sequence[Any]) -> Any:
    if isinstance(root, GlobalName):
        return root.namespace[root.name]
    if isinstance(root, CellContent):
        return root.cell.cell_contents
    return leaves[root.leaf] if isinstance(root, FlatArgument) else root.thing
