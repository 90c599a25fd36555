"""``ufunc.accumulate``: what a ufunc makes of each element and all before it.

Invariants: prefixes are made from the first element on, as NumPy's.
Not here: np.cumsum and its like (reductions.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL

from ..tracing.state import Trace, fail, require_dtype, running
from ..tracing.tensor import result
from .axes import one_axis
from .memory_order import ordered
from .operands import value_of
from .promotion import fold_dtypes, op_name
from .ufuncs import check_exponent, deliver, out_array
from .words import slice_axis

# Scans with kernels of their own: of numbers, and of bools where that is another one.
_SCANS: dict[np.ufunc, tuple[str, str]] = {
    np.add: ("cumsum", "cummax"), np.multiply: ("cumprod", "cummin"),
    np.maximum: ("cummax", "cummax"), np.minimum: ("cummin", "cummin"),
    np.logical_or: ("cummax", "cummax"), np.logical_and: ("cummin", "cummin"),
    np.bitwise_or: ("", "cummax"), np.bitwise_and: ("", "cummin"),
}  # fmt: skip


def accumulate(
    ufunc: np.ufunc, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """``ufunc.accumulate``."""
    trace = running()
    value = value_of(array)
    place = one_place(value, axis, "accumulate")
    made = scanned(trace, ufunc, folded_value(trace, ufunc, value, dtype, out, uniform=True), place)
    if out is not None:
        return deliver(trace, made, out, True, "unsafe", ufunc.__name__)
    return ordered(result(trace, made), [array])


def scanned(trace: Trace, ufunc: np.ufunc, value: Value, axis: int) -> Value:
    """All prefixes along an axis, in the dtype of the value."""
    dtype = value.tensor.dtype
    own = _SCANS.get(ufunc, ("", ""))[dtype is BOOL]
    if own:
        made: Value = trace.emit(own, value, axis=axis)
        return made
    step = op_name(ufunc)
    if step == "power" and dtype.is_integer:
        count = value.tensor.shape[axis]
        if trace.sizes.at_least(count, 2, "there are exponents"):
            check_exponent(trace, value, slice_axis(trace, value, axis, 1, count - 1))
    made = trace.emit("accumulate", value, axis=axis, step=step)
    return made


def one_place(value: Value, axis: Any, method: str) -> int:
    rank = value.tensor.rank
    if isinstance(axis, tuple) and len(axis) == 1:
        (axis,) = axis
    if axis is None and rank == 1:
        axis = 0
    if isinstance(axis, tuple) or (axis is None and rank):
        raise ValueError(f"{method} does not allow multiple axes")
    if not rank:
        one_axis(axis or 0, 1)
        raise TypeError(f"cannot {method} on a scalar")
    return one_axis(axis, rank)


def folded_value(
    trace: Trace, ufunc: np.ufunc, value: Value, dtype: Any, out: Any, uniform: bool
) -> Value:
    """The operand in the dtype it is folded in. uniform: whether it is to be taken in that, too."""
    given = None if out is None else out_array(out).tensor_type.dtype.numpy
    asked = None if dtype is None else require_dtype(dtype).numpy
    folded, element = fold_dtypes(ufunc, value.tensor.dtype.numpy, given, asked)
    if folded is not element:
        if uniform:
            raise TypeError(
                f"The resolved dtypes are not compatible with {ufunc.__name__}.accumulate. "
                f"Resolved ({folded.numpy}, {element.numpy}, {folded.numpy})"
            )
        raise fail(
            "TM110",
            f"np.{ufunc.__name__}.reduce is not supported",
            hint="its operands are of two dtypes: tm.scan carries any value along an axis",
        )
    return trace.cast(value, folded)
