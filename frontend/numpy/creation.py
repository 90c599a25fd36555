"""Arrays from nothing or from Python values: zeros, full, array, arange, linspace, eye, ...

Not here: arrays from a shape of another (`*_like` are here, they take its type).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Dim, Size, floor_divide
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, I64, DType

from ..tracing.capture import capture
from ..tracing.concrete import concrete
from ..tracing.integer import TracedSize
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import TracedArray, TracedScalar, fresh
from .axes import shape_argument, size_argument
from .operands import common_dtype, is_traced, nested, value_of
from .words import broadcast_to, sequence, spread
from .words import full as full_value



def zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.zeros"""
    trace = running()
    found = require_dtype(float if dtype is None else dtype)
    return fresh(trace, full_value(trace, shape_argument(shape), found.numpy.type(0), found))


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.ones"""
    trace = running()
    found = require_dtype(float if dtype is None else dtype)
    return fresh(trace, full_value(trace, shape_argument(shape), found.numpy.type(1), found))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.full"""
    trace = running()
    wanted = require_dtype(dtype) if dtype is not None else None
    return fresh(trace, filled(trace, shape_argument(shape), fill_value, wanted))


def filled(trace: Trace, shape: tuple[Size, ...], item: Any, dtype: DType | None) -> Value:
    """`item`, converted to `dtype`, repeated to `shape`."""
    return broadcast_to(trace, converted(trace, item, dtype), shape)


def converted(trace: Trace, item: Any, dtype: DType | None) -> Value:
    """Any array-like as a value of `dtype`; a Python number out of its range is refused."""
    if dtype is not None and type(item) in (int, float, complex, bool):
        if dtype.is_integer and type(item) is complex:
            raise TypeError("int() argument must be a string or a real number, not 'complex'")
        return trace.literal(item, dtype)
    value = value_of(item)
    return value if dtype is None else trace.cast(value, dtype)


def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """np.zeros_like"""
    return full_like(a, 0, dtype, order, subok, shape)


def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """np.ones_like"""
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None) -> Any:
    """np.full_like"""
    trace = running()
    like = value_of(a).tensor
    wanted = like.dtype if dtype is None else require_dtype(dtype)
    sizes = like.shape if shape is None else shape_argument(shape)
    return fresh(trace, filled(trace, sizes, fill_value, wanted))


def array(object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0, like: Any = None, ndmax: int = 0) -> Any:
    """np.array"""
    trace = running()
    wanted = None if dtype is None else require_dtype(dtype)
    if not copy and ndmin == 0:
        kept = _same(trace, object, wanted)
        if kept is not None:
            return kept
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
    if isinstance(object, list | tuple):
        value = _from_list(trace, object, wanted)
    elif isinstance(object, range):
        value = converted(trace, np.array(object), wanted)
    else:
        value = converted(trace, object, wanted)
    if value.tensor.rank < ndmin:
        shape = (1,) * (ndmin - value.tensor.rank) + value.tensor.shape
        value = trace.emit("reshape", value, shape=shape)
    return fresh(trace, value)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None) -> Any:
    """np.asarray"""
    return array(a, dtype, copy=bool(copy) if copy is not None else None)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.ascontiguousarray"""
    made = asarray(a, dtype)
    if type(made) is TracedArray and not made.is_plain:
        made = fresh(running(), made.value)
    return made if made.ndim else made.reshape(1)


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """np.copy"""
    return fresh(running(), value_of(a))


def arange(start: Any = None, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, like: Any = None) -> Any:
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
            first, second = int(start), int(start + step)
            start, step = first, second - first
        return _affine(trace, trace.cast(index, dtype), start, step, dtype)
    if isinstance(start, int | float) and isinstance(step, int | float):
        first = dtype.numpy.type(start)
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
                trace.sizes.specialise(s, "it bounds a range of floats") if isinstance(s, Dim) else s
                for s in (start, stop)
            )
            return _count(trace, start, stop, step)
        extent: Size = stop - start if step > 0 else start - stop
        if not trace.sizes.at_least(extent, 0, "a range is not empty"):
            return 0
        return floor_divide(trace.sizes.normal(extent) + (abs(step) - 1), abs(step))
    length = (stop - start) / step if not isinstance(stop - start, complex) else 0
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(0, -((start - stop) // step))
    if length != length:
        raise ValueError("arange: cannot compute length")
    return max(0, int(np.ceil(length)))


def linspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, retstep: Any = False, dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:
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


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, dtype: Any = None, axis: int = 0) -> Any:
    """np.geomspace is not compiled."""
    raise fail("TM110", "np.geomspace is not supported", hint="np.logspace is")


def logspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Any:
    """np.logspace"""
    grid = np.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return grid if dtype is None else grid.astype(dtype)


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.eye"""
    trace = running()
    rows, columns = shape_argument((N, N if M is None else M))
    found = require_dtype(float if dtype is None else dtype)
    return fresh(trace, trace.cast(band(trace, rows, columns, size_argument(k), "equal"), found))


def identity(n: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.identity"""
    return eye(n, dtype=dtype)


def tri(N: Any, M: Any = None, k: Any = 0, dtype: Any = float, *, like: Any = None) -> Any:
    """np.tri"""
    trace = running()
    rows, columns = shape_argument((N, N if M is None else M))
    mask = band(trace, rows, columns, size_argument(k), "less_equal")
    return fresh(trace, trace.cast(mask, require_dtype(dtype)))


def band(trace: Trace, rows: Size, columns: Size, k: Size, relation: str) -> Value:
    """bool[rows, columns]: where column `relation` row + k."""
    row = trace.emit("reshape", sequence(trace, rows), shape=(rows, 1))
    column = trace.emit("reshape", sequence(trace, columns), shape=(1, columns))
    if k != 0:
        row = trace.emit("add", row, trace.size_value(k))
    mask: Value = trace.emit(relation, column, row)
    return mask


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False) -> Any:
    """np.indices"""
    shape = shape_argument(dimensions)
    axes = [arange(size, dtype=dtype) if type(size) is int else _counted(size, dtype) for size in shape]
    grids = np.meshgrid(*axes, indexing="ij", sparse=sparse) if axes else []
    return tuple(grids) if sparse else running().dispatch.function(np.stack, (list(grids),), {})


def _counted(size: Size, dtype: Any) -> Any:
    trace = running()
    return fresh(trace, trace.cast(sequence(trace, size), require_dtype(dtype)))


def _same(trace: Trace, item: Any, wanted: DType | None) -> Any:
    """The array itself where no conversion is needed."""
    if isinstance(item, np.ndarray) and type(item) not in (TracedArray, TracedScalar):
        item = capture(trace, item)
    if type(item) is TracedArray and (wanted is None or item.tensor_type.dtype is wanted):
        return item if item.tracing is trace else None
    return None


def _from_list(trace: Trace, item: Any, wanted: DType | None) -> Value:
    if wanted is not None and wanted.is_integer:
        for leaf in _numbers(item):
            trace.number(leaf, wanted)
    value = nested(item)
    return value if wanted is None else trace.cast(value, wanted)


def _numbers(item: Any) -> list[int]:
    if isinstance(item, list | tuple):
        return [number for part in item for number in _numbers(part)]
    return [item] if type(item) is int else []


def scalar_type(kind: Any, item: Any = 0) -> Any:
    """``np.float32(x)`` and its like, for traced x."""
    trace = running()
    value = converted(trace, item, require_dtype(kind))
    return fresh(trace, value) if value.tensor.rank else TracedScalar(trace, value)


def frombuffer_like(*_: Any, **__: Any) -> Any:
    """Arrays over other memory cannot be traced."""
    raise fail("TM110", "np.frombuffer is not supported in a compiled function")


FUNCTIONS = {
    np.zeros: zeros, np.ones: ones, np.empty: zeros, np.full: full,
    np.zeros_like: zeros_like, np.ones_like: ones_like, np.empty_like: zeros_like,
    np.full_like: full_like, np.array: array, np.asarray: asarray, np.asanyarray: asarray,
    np.ascontiguousarray: ascontiguousarray, np.copy: copy, np.arange: arange,
    np.linspace: linspace, np.geomspace: geomspace, np.logspace: logspace, np.eye: eye,
    np.identity: identity, np.tri: tri, np.indices: indices, np.frombuffer: frombuffer_like,
}  # fmt: skip

