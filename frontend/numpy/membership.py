"""Whether elements are among others: isin.

Invariants: a NaN is among no others; numbers of different types are compared as NumPy compares
them.
Not here: sets of a size that is data (known_only.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracing.state import running
from ..tracing.tensor import fresh
from .creation import asarray
from .operands import value_of

_FEW = 16  # so many comparisons cost less than a search, and fuse with what is around them


def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Any:
    """np.isin: `kind` chooses among ways to the same answer."""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    one, many = asarray(element), np.ravel(asarray(test_elements))
    if kind == "table" and not all(array.dtype.kind in "biu" for array in (one, many)):
        raise ValueError(
            "The 'table' method is only supported for boolean or integer arrays. "
            "Please select 'sort' or None for kind."
        )
    found = value_of(_is_among(one, many))
    trace = running()
    return fresh(trace, trace.emit("logical_not", found) if invert else found)


def _is_among(one: Any, many: Any) -> Any:
    (count,) = many.tensor_type.shape
    if isinstance(count, int) and count <= _FEW:
        made = np.zeros_like(one, dtype=bool)
        for i in range(count):
            made = made | (one == many[i])
        return made
    common = np.result_type(one, many)
    exact = common.kind in "biu" or not all(array.dtype.kind in "iu" for array in (one, many))
    if common.kind == "c" or not exact:
        return np.any(one[..., None] == many, axis=-1)
    if not many.shape[0]:
        return np.zeros_like(one, dtype=bool)
    one, ordered = one.astype(common), np.sort(many.astype(common))
    place = np.minimum(np.searchsorted(ordered, one), many.shape[0] - 1)
    return ordered[place] == one


FUNCTIONS: dict[Any, Any] = {np.isin: isin}
