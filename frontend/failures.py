"""Errors that kernels and the native walker report, as Python exceptions at the user's line.

Not here: how native code reports (backends/llvm/native/control.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from .backends.llvm.native.control import Failure
from .compiler.errors import error
from .compiler.plan import ExecutionPlan


def raise_failure(
    plan: ExecutionPlan | None, code: int, node: int, payload: Sequence[int]
) -> NoReturn:
    """Raise what failure `code` at error place `node` means.

    payload: three words; for an index out of bounds, the index, the extent and the axis.
    """
    places = () if plan is None else plan.error_places
    place = places[node] if 0 <= node < len(places) else None
    if code == Failure.BOUNDS:
        raise error(
            "TM230",
            f"index {payload[0]} is out of bounds for an axis of size {payload[1]}",
            place=place,
        )
    if code == Failure.DEADLINE:
        raise error("TM532", "the call ran past its time limit", place=place)
    if code == Failure.MEMORY:
        raise MemoryError("a compiled call could not get the memory it needs")
    raise error("TM244", f"a check failed (code {code})", place=place)
