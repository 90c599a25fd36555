"""Saving and restoring Variables.

Invariants: a save that returned is on disk whole; one that did not leaves the earlier one. A
restore gives every Variable its value or changes none.
Not here: the format (runtime/checkpoint).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .calls.tracebacks import for_users
from .compiler.errors import error
from .runtime.checkpoint import Checkpoint
from .runtime.checkpoint import save as save_tensors
from .variable import Variable

Variables = Mapping[str, Variable] | Sequence[Variable]


@for_users
def save(
    path: str | Path, variables: Variables, *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write the values of `variables`, as of one moment, to the folder `path`.

    variables: a list (saved under their own names) or a dict of names. metadata: JSON data.
    """
    named = _named(variables)
    stores = {id(v.store): v.store for v in named.values()}
    snapshots = {
        key: store.snapshot([v.name for v in named.values() if v.store is store]).values
        for key, store in stores.items()
    }
    values = {name: snapshots[id(v.store)][v.name] for name, v in named.items()}
    save_tensors(os.path.abspath(path), values, metadata=metadata)


@for_users
def restore(path: str | Path, variables: Variables) -> Mapping[str, Any]:
    """Give `variables` the values saved at `path`; returns the metadata.

    Raises FileNotFoundError for a path that does not exist, MismatchError listing what is
    missing, extra or of another type, DataLossError for a damaged file.
    """
    named = _named(variables)
    with Checkpoint(os.path.abspath(path)) as checkpoint:
        values = checkpoint.values({name: v.type for name, v in named.items()})
        metadata = checkpoint.metadata
    for store in {id(v.store): v.store for v in named.values()}.values():
        store.commit({v.name: values[name] for name, v in named.items() if v.store is store})
    return metadata


def _named(variables: Variables) -> dict[str, Variable]:
    if isinstance(variables, Mapping):
        return dict(variables)
    if isinstance(variables, Variable):
        raise TypeError(f"a list of Variables is needed, got {variables!r} itself")
    for variable in variables:
        if not isinstance(variable, Variable):
            raise TypeError(f"Variables are saved, got a {type(variable).__name__} among them")
    named = {v.name: v for v in variables}
    if len(named) != len(variables):
        raise error("TM203", "a variable is listed twice")
    return named
