"""NumPy functions that call functions of the user: piecewise, fromfunction, apply_along_axis, ...

Invariants: a function of the user sees what NumPy would give it: piecewise hands it the selected
elements only, so a mean inside it is over those.
Not here: interception of what is called (intercept/callee.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import product

from ..loading import load
from ..tracing.state import fail, running
from ..tracing.tensor import fresh
from .axes import one_axis, size_argument
from .creation import asarray, indices
from .indexing import nonzero
from .operands import value_of
from .words import reshape


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


def mask_indices(n: Any, mask_func: Any, k: Any = 0) -> Any:
    """np.mask_indices: how many there are is known where the size is."""
    size = size_argument(n)
    if not isinstance(size, int):
        raise fail("TM112", "how many indices np.mask_indices gives back is known only at run time",
                   hint="np.tril_indices and np.triu_indices take any size")  # fmt: skip
    ones = fresh(running(), running().builder.constant(np.ones((size, size), int)))
    return nonzero(np.not_equal(mask_func(ones, k), 0))


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """np.apply_along_axis: the function is traced for one row, and a loop of the compiled function
    goes through them; NumPy's own functions take all rows at once."""
    array = asarray(arr)
    place = one_axis(axis, array.ndim)
    rows: Any = np.moveaxis(array, place, -1)
    *lead, count = value_of(rows).tensor.shape
    trace = running()
    if not all(trace.sizes.at_least(n, 1, "there are rows to apply a function to") for n in lead):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    known = getattr(func1d, "stands_for", func1d)
    if known in _ALONG and not args and not kwargs:
        return asarray(trace.dispatch.function(known, (array,), {"axis": place}))
    if not lead:
        return asarray(func1d(array, *args, **kwargs))

    def body(carry: Any, row: Any) -> Any:
        return carry, asarray(func1d(row, *args, **kwargs))

    flat = fresh(trace, reshape(trace, value_of(rows), (product(tuple(lead)), count)))
    _, made = load("control.traced").traced_scan(trace, body, (), flat, None, False)
    each = value_of(made).tensor.shape[1:]
    rows = fresh(trace, reshape(trace, value_of(made), (*lead, *each)))
    own = range(len(lead), len(lead) + len(each))
    return np.moveaxis(rows, tuple(own), tuple(range(place, place + len(each))))


# Functions that do along axis= what they do to one row.
_ALONG = frozenset((
    np.sum, np.prod, np.max, np.min, np.amax, np.amin, np.any, np.all, np.argmax, np.argmin,
    np.mean, np.var, np.std, np.median, np.ptp, np.count_nonzero, np.nansum, np.nanprod, np.nanmax,
    np.nanmin, np.nanmean, np.nanvar, np.nanstd, np.nanmedian, np.cumsum, np.cumprod, np.sort,
    np.argsort, np.diff,
))  # fmt: skip


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    """np.apply_over_axes"""
    made = asarray(a)
    rank = made.ndim
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        axis = axis + rank if axis < 0 else axis
        given = asarray(func(made, axis))
        if given.ndim != rank:
            given = np.expand_dims(given, axis)
        if given.ndim != rank:
            raise ValueError("function is not returning an array of the correct shape")
        made = given
    return made


FUNCTIONS: dict[Any, Any] = {
    np.piecewise: piecewise, np.fromfunction: fromfunction, np.mask_indices: mask_indices,
    np.apply_along_axis: apply_along_axis, np.apply_over_axes: apply_over_axes,
}  # fmt: skip
