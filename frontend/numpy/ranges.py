"""Evenly spaced numbers: arange, linspace, logspace, geomspace.

Invariants: values are computed as NumPy fills its arrays.
Not here: other arrays from nothing (creation.py).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tracemill.compiler.dims import Dim, Size, floor_divide
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, I64, DType

from ..tracing.concrete import concrete, require
from ..tracing.integer import TracedSize
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import TracedScalar, fresh, result
from .axes import size_argument
from .operands import common_dtype, dtype_as_arrays, is_traced, value_of
from .words import full as full_value
from .words import sequence, spread


def arange(
    start: Any = None,
    stop: Any = None,
    step: Any = None,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """np.arange"""
    trace = running()
    if start is None:
        raise TypeError("arange() requires stop to be specified.")
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    found = require_dtype(dtype) if dtype is not None else common_dtype(start, stop, step)
    if dtype is None and found is BOOL:
        found = I64
    start, stop, step = (_number(trace, item) for item in (start, stop, step))
    if isinstance(step, int | float) and step == 0:
        raise ZeroDivisionError("division by zero")
    size = _count(trace, start, stop, step)
    if isinstance(size, int) and size >= 2**60:
        raise fail("TM250", "Maximum allowed size exceeded")
    return fresh(trace, _progression(trace, start, step, size, found))


def _progression(trace: Trace, start: Any, step: Any, size: Size, dtype: DType) -> Value:
    """start + i * step, computed as NumPy fills: the step is the difference of the first two."""
    index = sequence(trace, size)
    if dtype.is_integer:
        if not all(isinstance(s, int | Dim) for s in (start, step)):
            start, step = int(start), int(start + step) - int(start)
        return _affine(trace, trace.cast(index, dtype), start, step, dtype)
    if isinstance(start, int | float) and isinstance(step, int | float):
        first: Any = dtype.numpy.type(start)
        step = dtype.numpy.type(start + step) - first
        start = first
    return _affine(trace, trace.cast(index, dtype), start, step, dtype)


def _affine(trace: Trace, index: Value, start: Any, step: Any, dtype: DType) -> Value:
    value = index
    if not (isinstance(step, int) and step == 1):
        value = trace.emit("mul", value, _term(trace, step, dtype))
    if not (isinstance(start, int) and start == 0):
        value = trace.emit("add", value, _term(trace, start, dtype))
    return value


def _term(trace: Trace, item: Any, dtype: DType) -> Value:
    if isinstance(item, Dim):
        return trace.cast(trace.size_value(item), dtype)
    if dtype.is_integer:
        return trace.builder.constant(np.asarray(item).astype(dtype.numpy)[()])
    return trace.literal(item, dtype)


def _number(trace: Trace, item: Any) -> Any:
    """A bound of a range: a number, or a symbolic size."""
    if type(item) is TracedSize:
        return item.now()
    if is_traced(item):
        found = concrete(trace, value_of(item), "it bounds a range, so it decides a shape")
        if found is None:
            raise fail(
                "TM102",
                "the length of a range must be known while tracing",
                f"{item!r} is known only when the compiled function runs",
                "pass the number as a static argument, or take it from a shape",
            )
        item = found.item()
    return item.item() if isinstance(item, np.generic | np.ndarray) else item


def _count(trace: Trace, start: Any, stop: Any, step: Any) -> Size:
    if isinstance(start, Dim) or isinstance(stop, Dim) or isinstance(step, Dim):
        if isinstance(step, Dim):
            step = trace.sizes.specialise(step, "it is the step of a range")
        if not all(isinstance(s, int | Dim) for s in (start, stop, step)):
            start, stop = (
                trace.sizes.specialise(s, "it bounds a range of floats")
                if isinstance(s, Dim)
                else s
                for s in (start, stop)
            )
            return _count(trace, start, stop, step)
        extent: Size = stop - start if step > 0 else start - stop
        if not trace.sizes.at_least(extent, 0, "a range is not empty"):
            return 0
        return floor_divide(trace.sizes.normal(extent) + (abs(step) - 1), abs(step))
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(0, -((start - stop) // step))
    length = (stop - start) / step if not isinstance(stop - start, complex) else 0
    if length != length:
        raise ValueError("arange: cannot compute length")
    return max(0, int(np.ceil(length)))


def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    retstep: Any = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """np.linspace"""
    trace = running()
    count = size_argument(num)
    if isinstance(count, int) and count < 0:
        raise ValueError(f"Number of samples, {count}, must be non-negative.")
    steps = count - 1 if endpoint else count
    found = common_dtype(start, stop, 1.0)
    first, last = (trace.cast(value_of(item), found) for item in (start, stop))
    delta = trace.emit("sub", last, first)
    many = trace.sizes.at_least(steps, 1, "linspace has more than one step")
    index = trace.cast(sequence(trace, count), found)
    rank = delta.tensor.rank
    index = trace.emit("reshape", index, shape=(count, *(1,) * rank))
    if many:
        parts = trace.cast(trace.size_value(steps), found)
        step = trace.emit("div", delta, parts)
        grid = trace.emit("mul", index, step)
        zero = trace.emit("equal", step, trace.literal(0.0, found))
        if rank == 0:
            grid = trace.emit(
                "select", zero, trace.emit("mul", trace.emit("div", index, parts), delta), grid
            )
    else:
        step = full_value(trace, delta.tensor.shape, np.nan, found)
        grid = trace.emit("mul", index, delta)
    grid = trace.emit("add", grid, first)
    if endpoint and many:
        ends = spread(trace, last, (1, *delta.tensor.shape))
        grid = trace.emit(
            "update_slice", grid, ends, start=(steps, *(0,) * rank), step=(1,) * (rank + 1)
        )
    wanted = require_dtype(dtype) if dtype is not None else found
    if wanted.is_integer:
        grid = trace.emit("floor", grid)
    made = fresh(trace, trace.cast(grid, wanted))
    if axis != 0:
        made = trace.dispatch.function(np.moveaxis, (made, 0, axis), {})
    return (made, TracedScalar(trace, step)) if retstep else made


def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: Any = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """np.logspace"""
    grid = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return grid if dtype is None else grid.astype(dtype)


def geomspace(
    start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: int = 0
) -> Any:
    """np.geomspace: a first number that is negative or complex is turned onto the positive axis,
    and the sequence back, as NumPy does it."""
    trace = running()
    wanted = require_dtype(float if dtype is None else dtype).numpy
    own = (dtype_as_arrays(item).numpy for item in (start, stop))
    kinds = require_dtype(np.result_type(*own, 1.0, wanted))
    ends = [trace.cast(value_of(item), kinds) for item in (start, stop)]
    first, last = (cast(Any, result(trace, end)) for end in ends)
    for end in (first, last):
        require(
            trace, value_of(np.all(end != 0)), "TM263", "Geometric sequence cannot include zero"
        )
    turn = np.sign(first)
    first, last = first / turn, last / turn
    made = logspace(np.log10(first), np.log10(last), num, endpoint)
    count = size_argument(num)
    if trace.sizes.at_least(count, 1, "a geometric sequence has an element"):
        made[0] = first
        if endpoint and trace.sizes.at_least(count, 2, "a geometric sequence has two elements"):
            made[-1] = last
    made = made * turn
    if axis != 0:
        made = np.moveaxis(made, 0, axis)
    return made if dtype is None else made.astype(dtype)


FUNCTIONS: dict[Any, Any] = {
    np.arange: arange, np.linspace: linspace, np.logspace: logspace, np.geomspace: geomspace,
}  # fmt: skip
