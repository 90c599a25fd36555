"""NumPy functions that call functions of the user: piecewise, fromfunction.

Invariants: a function of the user sees what NumPy would give it: piecewise hands it the selected
elements only, so a mean inside it is over those.
Not here: interception of what is called (intercept/callee.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .creation import asarray, indices
from .operands import value_of


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """np.piecewise"""
    x = asarray(x)
    if not isinstance(condlist, list | tuple):
        condlist = condlist if np.ndim(condlist) > 1 else [condlist]  # rows are conditions
    elif x.ndim != 0 and not isinstance(condlist[0], list) and np.ndim(condlist[0]) == 0:
        condlist = [condlist]  # one condition, as a list of bools
    conditions = [asarray(c, bool) for c in list(condlist)]
    count, functions = len(conditions), len(funclist)
    if functions == count + 1:
        conditions.append(~np.any(np.stack(conditions), axis=0))
    elif functions != count:
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected"
        )
    made = np.zeros_like(x)
    for condition, function in zip(conditions, funclist):
        if x.ndim == 0:
            value = function(x, *args, **kw) if callable(function) else function
            value = asarray(value).astype(x.dtype)
            made = np.where(condition, value, made)
        elif callable(function):
            made[condition] = function(x[condition], *args, **kw)
        else:
            made[condition] = function
    return made


def fromfunction(
    function: Any, shape: Any, *, dtype: Any = float, like: Any = None, **kw: Any
) -> Any:
    """np.fromfunction"""
    places = indices(shape, dtype)
    count = value_of(places).tensor.shape[0]
    assert isinstance(count, int)
    return function(*[places[i] for i in range(count)], **kw)


FUNCTIONS: dict[Any, Any] = {np.piecewise: piecewise, np.fromfunction: fromfunction}
