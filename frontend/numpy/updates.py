"""``ufunc.at``: elements at indices changed one after another, also those that are there twice.

Invariants: elements are computed in the dtype NumPy's loop has and cast back, each time.
Not here: ``x[i] += y``, which changes an element once (indexing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, DType

from ..tracing.concrete import known
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import TracedArray
from .indexing import getitem, setitem
from .keys import understand
from .operands import value_of
from .promotion import loop_for, op_name
from .ufuncs import check_exponent, out_array
from .words import broadcast_shapes, broadcast_to, full

# Of integers these are the same whether their operands are cut to fewer bits before or after.
_MODULAR = (
    np.add, np.subtract, np.multiply, np.bitwise_and, np.bitwise_or, np.bitwise_xor,
)  # fmt: skip


def at(ufunc: np.ufunc, array: Any, indices: Any, *operand: Any) -> None:
    """``ufunc.at``."""
    if len(operand) != ufunc.nin - 1:
        missing = not operand
        raise ValueError(
            "second operand needed for ufunc"
            if missing
            else "second operand provided when ufunc is unary"
        )
    trace = running()
    target = out_array(array)
    target.require_writeable()
    subscript = understand(trace, target.tensor_type.shape, indices)
    if subscript.mask is not None or not subscript.indices:  # no element is there twice
        made = ufunc(getitem(target, indices), *operand)
        setitem(target, indices, made.astype(target.dtype))
        return
    for step in subscript.steps:
        target = target.view_by(step)
    shape, first = target.tensor_type.shape, subscript.axis
    count = len(subscript.indices)
    among = broadcast_shapes(trace, [index.tensor.shape for index in subscript.indices])
    wanted = (*shape[:first], *among, *shape[first + count :])
    value = _stepped_by(trace, ufunc, target, operand)
    axes = tuple(range(first, first + count))
    op, value = _written_by(trace, ufunc, target.tensor_type.dtype, value)
    attrs = {"axes": axes} if op is None else {"axes": axes, "step": op}
    name = "scatter_add" if op is None else "scatter_step"
    value = broadcast_to(trace, value, wanted)
    target.write(trace.emit(name, target.value, value, *subscript.indices, **attrs)[0])


def _stepped_by(
    trace: Trace, ufunc: np.ufunc, target: TracedArray, operand: Sequence[Any]
) -> Value:
    """The second operand, in the dtype that NumPy computes in."""
    own = target.tensor_type.dtype
    values = [value_of(item) for item in operand]  # as arrays: Python numbers are not weak here
    keys = (own.numpy, *[value.tensor.dtype.numpy for value in values])
    loop = loop_for(ufunc, keys, None, "unsafe")
    if not values:
        return full(trace, (), 0, loop.operands[0])
    (value,) = values
    if loop.operands[0] is not loop.operands[1]:
        raise fail("TM110", f"np.{ufunc.__name__}.at is not supported",
                   hint="its operands are of two dtypes: index the array and assign")  # fmt: skip
    wide = loop.operands[1]
    content = known(trace, value)
    no_complex = content is not None and content.dtype.kind != "c"
    if content is not None and no_complex and own.kind in "fc" and wide is not own:
        narrow = content.astype(own.numpy)
        near = loop_for(ufunc, (own.numpy, own.numpy), None, "unsafe").operands[0]
        if near is own and np.array_equal(narrow, content):
            return trace.cast(value, own)  # one rounding is as good as two
    if ufunc in _MODULAR and own.is_integer and wide.is_integer:
        return trace.cast(value, own)
    return trace.cast(value, wide)


def _written_by(
    trace: Trace, ufunc: np.ufunc, own: DType, value: Value
) -> tuple[str | None, Value]:
    """The step, None for a sum, and what it is to be given."""
    if own is value.tensor.dtype and own is not BOOL:
        if ufunc is np.add:
            return None, value
        if ufunc is np.subtract:
            return None, trace.emit("neg", value)
    op = op_name(ufunc)
    if op == "power" and value.tensor.dtype.is_integer:
        check_exponent(trace, value, value)
    return op, value
