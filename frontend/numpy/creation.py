"""Arrays from nothing or from Python values: zeros, full, array, arange, linspace, eye, ...

Not here: arrays from a shape of another (`*_like` are here, they take its type).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import DType

from ..tracing.capture import capture
from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import TracedArray, TracedScalar, fresh
from .axes import shape_argument, size_argument
from .memory_order import in_order, lies_in
from .operands import check_whole, flat, nested, value_of, weak_value
from .ranges import arange
from .words import broadcast_to, sequence
from .words import full as full_value


def zeros(
    shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """np.zeros"""
    trace = running()
    found = require_dtype(float if dtype is None else dtype)
    made = fresh(trace, full_value(trace, shape_argument(shape), found.numpy.type(0), found))
    return in_order(made, order)


def ones(
    shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """np.ones"""
    trace = running()
    found = require_dtype(float if dtype is None else dtype)
    made = fresh(trace, full_value(trace, shape_argument(shape), found.numpy.type(1), found))
    return in_order(made, order)


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """np.full"""
    trace = running()
    wanted = require_dtype(dtype) if dtype is not None else None
    return in_order(fresh(trace, filled(trace, shape_argument(shape), fill_value, wanted)), order)


def filled(trace: Trace, shape: tuple[Size, ...], item: Any, dtype: DType | None) -> Value:
    """`item`, converted to `dtype`, repeated to `shape`."""
    return broadcast_to(trace, converted(trace, item, dtype), shape)


def converted(trace: Trace, item: Any, dtype: DType | None) -> Value:
    """Any array-like cast to `dtype`, as np.copyto does; an integer out of its range is refused."""
    if dtype is not None and type(item) in (int, float, complex, bool):
        return trace.literal(item, dtype)
    if dtype is not None and type(item) in (TracedNumber, TracedSize):
        return weak_value(trace, item, dtype)
    value = value_of(item)
    return value if dtype is None else trace.cast(value, dtype)


def stored(trace: Trace, item: Any, dtype: DType | None) -> Value:
    """Any array-like as an assignment to elements of `dtype` converts it. Lists and Python
    numbers become elements one by one, so a NaN is no integer; arrays are cast."""
    if isinstance(item, list | tuple):
        return _from_list(trace, item, dtype)
    if dtype is not None and type(item) in (float, complex):
        refuse_unfit(trace, item, dtype)
    if type(item) is TracedNumber and item.kind is float and dtype is not None and dtype.is_integer:
        check_whole(trace, value_of(item), dtype)
    return converted(trace, item, dtype)


def refuse_unfit(trace: Trace, item: Any, dtype: DType) -> None:
    """Refuse a number that NumPy does not make one element of `dtype`, now or in the run.

    NumPy asks Python to convert its own scalars for signed integers only; for others it casts.
    """
    if type(item) is TracedScalar:
        if dtype.kind == "i" and item.tensor_type.dtype.is_float:
            check_whole(trace, value_of(item), dtype)
    elif type(item) is int and dtype.is_integer:
        trace.number(item, dtype)
    elif issubclass(type(item), np.inexact):  # not one that is traced
        if dtype.kind == "i":
            _fill_cell(item.real.item(), dtype)
    elif type(item) in (float, complex):
        _fill_cell(item, dtype)


def _fill_cell(number: Any, dtype: DType) -> None:
    try:
        with np.errstate(all="ignore"):
            np.empty((), dtype.numpy)[()] = number
    except OverflowError:
        raise fail("TM246", f"Python float {number} out of bounds for {dtype.numpy.name}") from None
    except ValueError as problem:
        raise fail("TM264", f"{problem}, got one for {dtype.numpy.name}") from None
    except TypeError as problem:
        raise fail("TM248", str(problem)) from None


def zeros_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """np.zeros_like"""
    return full_like(a, 0, dtype, order, subok, shape)


def ones_like(
    a: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """np.ones_like"""
    return full_like(a, 1, dtype, order, subok, shape)


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """np.full_like"""
    trace = running()
    like = value_of(a).tensor
    wanted = like.dtype if dtype is None else require_dtype(dtype)
    sizes = like.shape if shape is None else shape_argument(shape)
    return in_order(fresh(trace, filled(trace, sizes, fill_value, wanted)), order, a)


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    like: Any = None,
    ndmax: int = 0,
) -> Any:
    """np.array"""
    trace = running()
    wanted = None if dtype is None else require_dtype(dtype)
    if not copy and ndmin == 0:
        kept = _same(trace, object, wanted)
        if kept is not None and lies_in(kept, order):
            return kept
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
    if isinstance(object, list | tuple):
        value = _from_list(trace, object, wanted)
    elif isinstance(object, range):
        value = converted(trace, np.array(object), wanted)
    else:
        value = stored(trace, object, wanted)
    if value.tensor.rank < ndmin:
        shape = (1,) * (ndmin - value.tensor.rank) + value.tensor.shape
        value = trace.emit("reshape", value, shape=shape)
    return in_order(fresh(trace, value), order, object)


def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: Any = None,
    like: Any = None,
) -> Any:
    """np.asarray"""
    return array(a, dtype, copy=bool(copy) if copy is not None else None, order=order or "K")


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.ascontiguousarray"""
    made = asarray(a, dtype, "C")
    return made if made.ndim else made.reshape(1)


def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.asfortranarray"""
    return asarray(a, dtype, "F")


def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    """np.copy"""
    return in_order(fresh(running(), value_of(a)), order, a)


def eye(
    N: Any,
    M: Any = None,
    k: Any = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> Any:
    """np.eye"""
    trace = running()
    rows, columns = shape_argument((N, N if M is None else M))
    found = require_dtype(float if dtype is None else dtype)
    diagonal = trace.cast(band(trace, rows, columns, size_argument(k), "equal"), found)
    return in_order(fresh(trace, diagonal), order)


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
    axes = [
        arange(size, dtype=dtype) if type(size) is int else _counted(size, dtype) for size in shape
    ]
    grids = np.meshgrid(*axes, indexing="ij", sparse=sparse) if axes else []
    return tuple(grids) if sparse else running().dispatch.function(np.stack, (list(grids),), {})


def _counted(size: Size, dtype: Any) -> Any:
    trace = running()
    return fresh(trace, trace.cast(sequence(trace, size), require_dtype(dtype)))


def _same(trace: Trace, item: Any, wanted: DType | None) -> Any:
    """The array itself where no conversion is needed."""
    if type(item) is not TracedArray and isinstance(item, np.ndarray):
        item = capture(trace, item)
    if type(item) is TracedArray and (wanted is None or item.tensor_type.dtype is wanted):
        return item if item.tracing is trace else None
    return None


def _from_list(trace: Trace, item: Any, wanted: DType | None) -> Value:
    if wanted is not None:
        for leaf in flat(item):
            refuse_unfit(trace, leaf, wanted)
            if type(leaf) in (TracedNumber, TracedSize):
                stored(trace, leaf, wanted)  # for its checks: all are cast together
    value = nested(item)
    return value if wanted is None else trace.cast(value, wanted)


def scalar_type(kind: Any, item: Any = 0) -> Any:
    """``np.float32(x)`` and its like, for traced x."""
    trace = running()
    value = stored(trace, item, require_dtype(kind))
    return fresh(trace, value) if value.tensor.rank else TracedScalar(trace, value)


def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, like: Any = None
) -> Any:
    """np.frombuffer of bytes, which cannot change; other memory cannot be traced."""
    if type(buffer) is not bytes:
        raise fail("TM110", "np.frombuffer in a compiled function takes bytes only: other memory "
                   "may have changed when the compiled function runs",
                   hint="call it before the compiled function and pass the array")  # fmt: skip
    wanted = require_dtype(dtype).numpy
    made = asarray(np.frombuffer(buffer, wanted, count, offset))
    made.flags.writeable = False
    return made


def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> Any:
    """np.fromiter"""
    found = list(iter) if count < 0 else list(itertools.islice(iter, count))
    if len(found) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only "
                         f"{len(found)} items.")  # fmt: skip
    return array(found, dtype)


FUNCTIONS: dict[Any, Any] = {
    np.zeros: zeros, np.ones: ones, np.empty: zeros, np.full: full,
    np.zeros_like: zeros_like, np.ones_like: ones_like, np.empty_like: zeros_like,
    np.full_like: full_like, np.array: array, np.asarray: asarray, np.asanyarray: asarray,
    np.ascontiguousarray: ascontiguousarray, np.asfortranarray: asfortranarray, np.copy: copy,
    np.eye: eye, np.identity: identity, np.tri: tri, np.indices: indices,
    np.frombuffer: frombuffer, np.fromiter: fromiter,
}  # fmt: skip
