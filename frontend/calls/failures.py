"""Errors that kernels and the native walker report, as Python exceptions at the user's line.

Not here: how native code reports (backends/llvm/native/control.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from ..backends.llvm.native.control import Failure
from ..compiler.errors import CODES, error
from ..compiler.plan import ExecutionPlan
from ..compiler.raising import from_text


def raise_failure(
    plan: ExecutionPlan | None, code: int, node: int, payload: Sequence[int]
) -> NoReturn:
    """Raise what failure `code` means; a positive one is of the plan's error place `node`.

    payload: three words; for an index out of bounds, the index and the extent.
    """
    if code == Failure.DEADLINE:
        raise error("TM532", "the call ran past its time limit")
    if code == Failure.NO_MEMORY:
        raise MemoryError("a compiled call could not get the memory it needs")
    if code == Failure.BAD_SIZE:
        raise error("TM242", "a size computed in the call is negative or too large")
    assert plan is not None, "a kernel reported a failure of a version that is gone"
    place = plan.error_places[node]
    if place.raises:
        raise from_text(place.raises, place.arguments, place.location)
    sentence = _SENTENCES.get(place.code, CODES[place.code].title)
    text = sentence.format(*payload, dtype=_range(place.dtype))
    raise error(place.code, text, place=place.location)


def _range(dtype: str) -> str:
    if not dtype:
        return "its element type"
    limits = np.iinfo(dtype)
    return f"{dtype}, which holds {limits.min} to {limits.max}"


_SENTENCES = {
    "TM230": "index {0} is out of bounds for an axis of size {1}",
    "TM241": "a reduction without identity got no element",
    "TM244": "a check written in the program failed",
    "TM249": "Integers to negative integer powers are not allowed.",
    "TM253": "a negative Python number to a fractional power is complex: write complex(x) ** p, "
    "or np.float64(x) ** p for NumPy's NaN",
    "TM257": "a number to be counted is negative or not below minlength",
    "TM259": "there are more of them than size= makes room for",
    "TM258": "bins or quantiles are not in order or not in range",
    "TM261": "All-NaN slice encountered",
    "TM262": "Weights sum to zero, can't be normalized",
    "TM274": "the matrix has no full rank, so there are no residuals: np.linalg.pinv(a) @ b is the "
    "solution for any rank",
    "TM263": "Geometric sequence cannot include zero",
    "TM246": "Python integer out of bounds for {dtype}",
}
