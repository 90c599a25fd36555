"""Functions that give back as many elements as data says: unique, argwhere, setdiff1d, extract, ...

NumPy itself computes them while tracing where the data is known then; else they are refused, but
for what a mask selects.

Not here: np.nonzero (indexing.py), elements selected by a mask (selection.py), tm.unique
(distinct.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL

from ..tracing.concrete import known
from ..tracing.state import fail, running
from ..tracing.tensor import fresh
from .alternatives import of_function
from .creation import asarray
from .operands import any_traced, value_of
from .words import in_a_row, slice_axis

_Handler = Callable[..., Any]


def _of_known(function: _Handler) -> _Handler:
    """The handler that computes `function` of what is known while tracing."""

    def handler(*args: Any, **keywords: Any) -> Any:
        plain = [_content(function, item) for item in args]
        named = {name: _content(function, item) for name, item in keywords.items()}
        return _constants(function(*plain, **named))

    return handler


def _content(function: _Handler, item: Any) -> Any:
    """An argument with its data, which has to be known."""
    if not any_traced(item) and not isinstance(item, np.ndarray):
        return item
    found = known(running(), value_of(item))
    if found is None:
        name = function.__name__
        raise fail("TM112", f"how many elements np.{name} gives back is known only at run time",
                   hint=of_function("numpy", name))  # fmt: skip
    return found


def _constants(made: Any) -> Any:
    """Arrays of the trace in place of NumPy's."""
    if isinstance(made, np.ndarray | np.generic):
        return fresh(running(), running().builder.constant(np.asarray(made)))
    if isinstance(made, tuple):
        parts = [_constants(part) for part in made]
        return type(made)(*parts) if hasattr(made, "_fields") else tuple(parts)
    return made


def extract(condition: Any, arr: Any) -> Any:
    """np.extract: an array of unknown size is what a mask selects."""
    return compress(np.ravel(asarray(condition)), arr)


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """np.compress: the condition may be shorter than the axis, not longer."""
    trace = running()
    mask = value_of(condition)
    if mask.tensor.rank != 1:
        raise ValueError("condition must be a 1-d array")
    mask = trace.cast(mask, BOOL)
    row, place = in_a_row(trace, value_of(a), axis)
    array = fresh(trace, row)
    found = known(trace, mask)
    if found is not None:
        return np.take(array, _indices(found), axis=place, out=out)
    if out is not None:
        raise fail("TM112", "how many elements np.compress writes is known only at run time",
                   hint="use np.copyto(out, a, where=mask)")  # fmt: skip
    rows, (count,) = value_of(array).tensor.shape[place], mask.tensor.shape
    why = "a condition is as long as its axis"
    if not trace.sizes.equal(count, rows, why):
        if not trace.sizes.at_least(rows, count, why):
            raise fail(
                "TM230", f"a condition of {count} elements is longer than its axis of {rows}"
            )
        array = fresh(trace, slice_axis(trace, value_of(array), place, 0, count))
    return array[(slice(None),) * place + (fresh(trace, mask),)]


def _indices(mask: Any) -> Any:
    trace = running()
    constant: Value = trace.builder.constant(np.flatnonzero(mask))
    return fresh(trace, constant)


FUNCTIONS: dict[Any, Any] = {
    **{function: _of_known(function) for function in (
        np.unique, np.unique_all, np.unique_counts, np.unique_inverse, np.unique_values,
        np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d, np.argwhere, np.flatnonzero,
        np.trim_zeros, np.polymul, np.polydiv,
    )},
    np.extract: extract, np.compress: compress,
}  # fmt: skip
