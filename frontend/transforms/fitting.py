"""Tangents and cotangents as users give them, judged against the values they belong to.

Invariants: a value of the graph that is let through has the type of what it belongs to.
Not here: what is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from ..calls.trees import Tree, flatten, paths
from ..compiler.ir.graph import Value
from ..control.carried import is_weak, path_text, same_shape
from ..lifted import read
from ..numpy.operands import value_of
from ..tracing.state import Trace, fail


def is_smooth(value: Value | None) -> TypeGuard[Value]:
    """Whether a value has derivatives: a floating or complex one."""
    return value is not None and value.tensor.dtype.kind in "fc"


def fitted(
    trace: Trace,
    what: str,
    given: Any,
    values: Sequence[Value | None],
    tree: Tree,
    names: str,
    missing: str = "error",
) -> list[Value | None]:
    """The leaves of `given` as values; None for those of integers and bools.

    what: "tangent" or "cotangent". values, tree: what they belong to, which `names` says. Where
    such a leaf is no floating number, None stands for its tangent, or whatever else is given.
    missing: "zero" lets None stand for zeros, too.
    Raises GradientError (TM121) where structure, dtype or shape differ.
    """
    leaves = _leaves(given, tree)
    if leaves is None or len(leaves) != len(values):
        raise fail(
            "TM121",
            f"the {what}s are nested differently from {names}",
            f"{flatten(given)[1].spec} for {tree.spec}",
        )
    found: list[Value | None] = []
    for leaf, value, path in zip(leaves, values, paths(tree)):
        if not is_smooth(value):
            found.append(None)
            continue
        if leaf is None and missing == "zero":
            found.append(None)
            continue
        if leaf is None:
            raise fail("TM121", f"there is no {what} for {_said(names, path)}, a {value.type!r}")
        made = value_of(read(leaf))
        if is_weak(leaf) and made.tensor.dtype.kind in "biuf":
            made = trace.cast(made, value.tensor.dtype)
        same = made.tensor.dtype == value.tensor.dtype
        if not same or not same_shape(trace, value.tensor, made.tensor):
            raise fail(
                "TM121",
                f"a {what} has the dtype and shape of what it belongs to, got {made.type!r} for "
                f"{_said(names, path)}, a {value.type!r}",
                hint="convert it with .astype(...)" if not same else "",
            )
        found.append(made)
    return found


def _said(names: str, path: Any) -> str:
    text = path_text(path)
    return f"{names} at {text}" if text else names


def _leaves(given: Any, tree: Tree) -> list[Any] | None:
    """The leaves at the places of the tree's, None among them; None where there is another nest."""
    try:
        found = []
        for path in paths(tree):
            at = given
            for step in path:
                if at is not None and _is_leaf(at):
                    return None
                at = step.take(at) if at is not None else None
            found.append(at)
    except (LookupError, AttributeError, TypeError):
        return None
    if any(leaf is not None and not _is_leaf(leaf) for leaf in found):
        return None
    same = tree.rebuild(found)
    return found if len(flatten(same)[0]) == len(flatten(given)[0]) else None


def _is_leaf(item: Any) -> bool:
    is_leaf: bool = flatten(item)[1].spec.is_leaf()
    return is_leaf
