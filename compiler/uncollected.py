"""Work that makes many objects, without the garbage collector looking through them.

Loading modules, compiling a graph and translating native code make tens of thousands of objects
that stay, and no cycles that matter; looking through all of them again and again would cost more
than the work. Where the work makes garbage too, only what was there before is passed over.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Without garbage collection."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def here_to_stay() -> Iterator[None]:
    """Without garbage collection, and what is made counts as old afterwards: the next collection of
    young objects does not look through it either. For modules, which are never garbage."""
    with uncollected():
        yield
        if gc.get_freeze_count() == 0:  # else somebody keeps objects out of collections: leave it
            gc.freeze()
            gc.unfreeze()


@contextmanager
def set_aside() -> Iterator[None]:
    """What is there already is not looked through meanwhile; new objects are collected as usual.
    For seconds of work that leaves garbage behind, while much is in memory."""
    if gc.get_freeze_count():  # somebody keeps objects out of collections: leave it
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
