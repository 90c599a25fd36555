"""Locks and forks: a forked child never waits for a thread that only its parent has.

A lock that guards what must be whole (code being generated) is held across the fork; one that
guards a table of Python objects is made anew in the child.

Not here: locks that native code takes (backends/llvm/native).
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class HasLocks(Protocol):
    """An object with locks of its own."""

    def after_fork(self) -> None:
        """Make them anew, in the child."""


_owners: weakref.WeakSet[HasLocks] = weakref.WeakSet()


def held_across_forks() -> threading.RLock:
    """A lock that a fork waits for."""
    lock = threading.RLock()
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )
    return lock


def tell_after_forks(owner: HasLocks) -> None:
    """Have `owner.after_fork` called in every child, as long as there is an owner."""
    _owners.add(owner)


def _tell() -> None:
    for owner in list(_owners):
        owner.after_fork()


os.register_at_fork(after_in_child=_tell)
