"""The methods of ufuncs: reduce, accumulate, reduceat, outer, at.

Not here: what they do (prefixes.py, folds.py, stretches.py, updates.py, reductions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .folds import reduce
from .prefixes import accumulate
from .stretches import reduceat
from .ufuncs import outer
from .updates import at

METHODS: Mapping[str, Callable[..., Any]] = {
    "reduce": reduce, "accumulate": accumulate, "reduceat": reduceat, "outer": outer, "at": at,
}  # fmt: skip


def refuse_method(ufunc: np.ufunc, method: str) -> None:
    """Raise what NumPy raises for a method that this ufunc does not have."""
    name = "outer product" if method == "outer" else method
    if method == "at":
        if ufunc.nin > 2:
            raise ValueError("Only unary and binary ufuncs supported at this time")
        if ufunc.nout != 1:
            raise ValueError("Only single output ufuncs supported at this time")
    elif ufunc.signature is not None:
        if method == "outer":
            raise TypeError("method outer is not allowed in ufunc with non-trivial signature")
        raise RuntimeError("Reduction not defined on ufunc with signature")
    elif ufunc.nin != 2:
        raise ValueError(f"{name} only supported for binary functions")
    elif ufunc.nout != 1 and method != "outer":
        raise ValueError(f"{name} only supported for functions returning a single value")
