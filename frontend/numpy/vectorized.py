"""Instances of np.vectorize: a loop of the compiled function calls the Python function.

As in NumPy the function gets Python numbers, one element of each array at a time, and what it
gives back is converted to the types of the first results. Those are known while tracing where
NumPy's numbers and Python's are of one type; for other arrays ``otypes=`` has to say them.

Not here: functions of rows (calling.py), which function is called (intercept/callee.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracemill.compiler.dims import product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import C128, F64, I64

from ..loading import load
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import fresh
from .operands import value_of
from .words import broadcast_shapes, broadcast_to, reshape

_PYTHONS = (F64, I64, C128)  # of bools the sum is a number in Python, a bool in NumPy


def call_vectorized(
    made: Any, function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]
) -> Any:
    """What the instance `made` gives, whose Python function is `function`."""
    if made.signature is not None:
        raise fail("TM111", "np.vectorize with signature= is not supported",
                   hint="np.apply_along_axis calls a function of rows")  # fmt: skip
    places = [i for i in range(len(args)) if i not in made.excluded]
    names = [name for name in keywords if name not in made.excluded]
    trace = running()
    values = [value_of(item) for item in (*[args[i] for i in places],
                                          *[keywords[name] for name in names])]  # fmt: skip

    def of_cells(cells: Sequence[Any]) -> Any:
        whole, named = list(args), dict(keywords)
        for i, cell in zip(places, cells):
            whole[i] = cell
        named.update(zip(names, cells[len(places) :]))
        return function(*whole, **named)

    shape = broadcast_shapes(trace, [value.tensor.shape for value in values]) if values else ()
    some = all(trace.sizes.at_least(n, 1, "there are elements to call a function with")
               for n in shape)  # fmt: skip
    if made.otypes is None:
        _need_known_types(values, some)
    rows = [reshape(trace, broadcast_to(trace, v, shape), (product(shape),)) for v in values]
    parts = _looped(trace, of_cells, rows, made.otypes)
    results = [fresh(trace, reshape(trace, part, shape)) for part in parts[0]]
    return tuple(results) if parts[1] else results[0]


def _need_known_types(values: Sequence[Value], some: bool) -> None:
    if not some:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    other = [v.tensor.dtype.name for v in values if v.tensor.dtype not in _PYTHONS]
    if other:
        raise fail("TM111", f"np.vectorize of arrays of {other[0]} is supported with otypes= only",
                   "the types of its results would be those of its first results",
                   "np.vectorize(f, otypes=[float]) says them")  # fmt: skip


def _looped(
    trace: Trace, of_cells: Callable[..., Any], rows: Sequence[Value], otypes: str | None
) -> tuple[list[Value], bool]:
    """The results, in rows; whether the function gives several."""
    several = [False]

    def body(carry: Any, cells: Any) -> Any:
        inner = running()
        given = of_cells([inner.dispatch.python_number(value_of(cell)) for cell in cells])
        several[0] = isinstance(given, tuple)
        return carry, _converted(inner, given if several[0] else (given,), otypes)

    arrays = [fresh(trace, row) for row in rows]
    _, made = load("control.traced").traced_scan(trace, body, (), arrays, None, False)
    return [value_of(part) for part in made], several[0]


def _converted(trace: Trace, given: tuple[Any, ...], otypes: str | None) -> list[Any]:
    values = [value_of(item) for item in given]
    if otypes is None:
        return [fresh(trace, value) for value in values]
    if len(values) != len(otypes):
        raise ValueError(f"a function of {len(otypes)} results gave {len(values)}")
    return [fresh(trace, trace.cast(v, require_dtype(np.dtype(c)))) for v, c in zip(values, otypes)]
