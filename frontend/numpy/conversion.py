"""Element types of arrays changed or read in parts: astype, view, real, imag.

Not here: promotion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracing.integer import TracedSize
from ..tracing.number import TracedNumber
from ..tracing.state import fail, require_dtype, running
from ..tracing.tensor import TracedArray, TracedScalar, fresh
from ..tracing.views import (
    Bits,
    Part,
)
from .memory_order import in_order, lies_in
from .movement import alias, view_of
from .operands import array_of


def astype(
    a: Any,
    dtype: Any,
    order: str = "K",
    casting: Any = "unsafe",
    subok: bool = True,
    copy: Any = True,
    device: Any = None,
) -> Any:
    """ndarray.astype and np.astype"""
    array = array_of(a)
    wanted = require_dtype(dtype)
    if not np.can_cast(array.dtype, wanted.numpy, casting):
        raise fail(
            "TM248",
            f"Cannot cast array data from {array.dtype!r} to {wanted.numpy!r} according to the "
            f"rule '{casting}'",
        )
    trace = running()
    if not copy and array.dtype == wanted.numpy and lies_in(array, order):
        return array
    value = trace.cast(array.value, wanted)
    if type(array) is TracedScalar:
        return TracedScalar(trace, value)
    assert type(array) is TracedArray
    return in_order(fresh(trace, value), order, array)


def view(a: Any, dtype: Any = None, type: Any = None) -> Any:
    """ndarray.view to a dtype of the same width; of a scalar it is a scalar."""
    made = _viewed(view_of(a), dtype)
    return TracedScalar(made.tracing, made.value) if isinstance(a, TracedScalar) else made


def _viewed(array: TracedArray, dtype: Any) -> TracedArray:
    if dtype is None or dtype is np.ndarray:
        return alias(array)
    wanted = require_dtype(dtype)
    have = array.tensor_type.dtype
    if have is wanted:
        return alias(array)
    if have.itemsize != wanted.itemsize or have.is_complex or wanted.is_complex:
        raise fail(
            "TM111",
            f"view of {have.name} as {wanted.name} is not supported",
            hint="views are supported between real types of the same width",
        )
    if have.bits == wanted.bits:
        return array.view_by(Bits(wanted))
    trace = array.tracing  # bool is one byte of 0 or 1, one bit in the graph
    made = fresh(trace, trace.cast(array.value, wanted))
    made.base_memory.writeable = False
    return made


def real(val: Any) -> Any:
    """np.real and ndarray.real"""
    return _part(val, "real")


def imag(val: Any) -> Any:
    """np.imag and ndarray.imag"""
    return _part(val, "imag")


def _part(a: Any, name: str) -> Any:
    if type(a) is TracedNumber or type(a) is TracedSize:
        return getattr(a, name)  # a Python number's own, which stays weak
    array = array_of(a)
    trace = running()
    dtype = array.value.tensor.dtype
    if type(array) is TracedScalar:
        if dtype.is_complex:
            return TracedScalar(trace, trace.emit(name, array.value))
        return (
            array
            if name == "real"
            else TracedScalar(trace, trace.literal(dtype.numpy.type(0), dtype))
        )
    assert type(array) is TracedArray
    if dtype.is_complex:
        return array.view_by(Part(name))
    if name == "real":
        return alias(array)
    zeros = trace.dispatch.function(np.zeros_like, (array,), {})
    zeros.base_memory.writeable = False
    return zeros


FUNCTIONS: dict[Any, Any] = {np.astype: astype, np.real: real, np.imag: imag}
METHODS: dict[str, Any] = {"astype": astype, "view": view}
ATTRIBUTES = {"real": real, "imag": imag}
