"""What NumPy's functions and methods do with arrays that are cut along axes: the tables.

Not here: the functions (cut_functions.py, cut_indexing.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracing.state import running
from . import reductions, statistics
from .cut import Cut
from .cut_functions import (
    arrays,
    assigned_to,
    call_of,
    dot,
    elementwise,
    matmul,
    norm,
    outer,
    reduction,
    total,
)
from .cut_indexing import astype, cumsum, flatten, flip, getitem, ravel, setitem, taken_by
from .cut_places import place_of

__all__ = [
    "FUNCTIONS",
    "METHODS",
    "assigned_to",
    "function",
    "getitem",
    "setitem",
    "taken_by",
    "ufunc",
]

_ARITHMETIC = (np.where, np.clip, np.round, np.nan_to_num, np.isclose)


def ufunc(ufunc: np.ufunc, method: str, args: tuple[Any, ...], keywords: Any) -> Any:
    """A ufunc of arguments of which some are cut."""
    if method == "reduce":
        function = _FOLDS.get(ufunc)
        if function is not None and type(args[0]) is Cut:
            return FUNCTIONS[function](*args, **{"axis": 0, **keywords})
    elif method == "outer" and ufunc is np.multiply and not keywords:
        return outer(*args)
    elif method == "__call__":
        if ufunc is np.matmul and not keywords:
            return matmul(*args)
        return elementwise(call_of(ufunc), args, keywords)
    return running().dispatch.ufunc(ufunc, method, arrays(args), keywords)


def function(function: Any, args: tuple[Any, ...], keywords: Any) -> Any:
    """A NumPy function that is no ufunc."""
    handler = FUNCTIONS.get(function)
    if handler is not None:
        return handler(*args, **keywords)
    plain = {key: item.array() if type(item) is Cut else item for key, item in keywords.items()}
    return running().dispatch.function(function, arrays(args), plain)


FUNCTIONS: dict[Any, Any] = {
    np.sum: total,
    np.prod: reduction(reductions.prod),
    np.mean: reduction(statistics.mean),
    np.var: reduction(statistics.var),
    np.std: reduction(statistics.std),
    np.any: reduction(reductions.any_),
    np.all: reduction(reductions.all_),
    np.max: reduction(reductions.amax, "max"),
    np.min: reduction(reductions.amin, "min"),
    np.dot: dot, np.outer: outer, np.flip: flip, np.cumsum: cumsum,
    np.linalg.norm: norm,
    np.size: lambda a: a.size, np.shape: lambda a: a.shape, np.ndim: lambda a: a.ndim,
    np.transpose: lambda a: a.T,
    **{
        f: lambda *args, call=f, **keywords: elementwise(
            lambda *own, **more: running().dispatch.function(call, own, more), args, keywords
        )
        for f in _ARITHMETIC
    },
}  # fmt: skip
FUNCTIONS |= {
    np.argmax: place_of(FUNCTIONS[np.max], np.argmax),
    np.argmin: place_of(FUNCTIONS[np.min], np.argmin),
}
METHODS: dict[str, Any] = {
    "sum": FUNCTIONS[np.sum], "prod": FUNCTIONS[np.prod], "mean": FUNCTIONS[np.mean],
    "var": FUNCTIONS[np.var], "std": FUNCTIONS[np.std], "any": FUNCTIONS[np.any],
    "all": FUNCTIONS[np.all], "max": FUNCTIONS[np.max], "min": FUNCTIONS[np.min],
    "argmax": FUNCTIONS[np.argmax], "argmin": FUNCTIONS[np.argmin],
    "dot": dot, "astype": astype, "ravel": ravel, "flatten": flatten, "cumsum": cumsum,
    "clip": FUNCTIONS[np.clip], "round": FUNCTIONS[np.round],
}  # fmt: skip
_FOLDS: dict[Any, Any] = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
    np.logical_and: np.all, np.logical_or: np.any,
}  # fmt: skip
