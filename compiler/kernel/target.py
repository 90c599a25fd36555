"""What schedules know of a machine.

Invariants: data only; nothing else of kernels is loaded with it, for it is part of the key under
which a finished plan is kept.
Not here: reading the machine (backends/cpu/target.py), schedules (schedule.py).
"""

from __future__ import annotations

from ..records import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A machine. vector_bits: 0 for one without vectors."""

    vector_bits: int = 256
    threads: int = 1
    features: frozenset[str] = frozenset()
    name: str = "cpu"
