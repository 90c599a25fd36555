"""Questions and small compositions: shape, ndim, clip, isclose, round, diff, meshgrid, trace, tril.

Not here: anything with an algorithm of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracing.integer import user_size
from ..tracing.state import fail, running
from ..tracing.tensor import TracedArray, fresh, result
from .alternatives import of_array_attribute
from .axes import one_axis
from .memory_order import in_order
from .movement import view_of
from .operands import is_traced, value_of, weak_type


def shape(a: Any) -> Any:
    """np.shape"""
    sizes = value_of(a).tensor.shape
    return tuple(user_size(running(), n) for n in sizes)


def ndim(a: Any) -> int:
    """np.ndim"""
    return value_of(a).tensor.rank


def size(a: Any, axis: Any = None) -> Any:
    """np.size"""
    array = view_of(a)
    return array.size if axis is None else array.shape[one_axis(axis, array.ndim)]


def result_type(*arrays_and_dtypes: Any) -> Any:
    """np.result_type"""
    return np.result_type(*[_type_item(item) for item in arrays_and_dtypes])


def _type_item(item: Any) -> Any:
    return weak_type(item) if is_traced(item) else item


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> Any:
    """np.can_cast"""
    return np.can_cast(_type_item(from_), to, casting)


def min_scalar_type(a: Any) -> Any:
    """np.min_scalar_type looks at the value of scalars, which is not known."""
    if value_of(a).tensor.rank:
        return np.dtype(weak_type(a))
    raise fail("TM110", "np.min_scalar_type of a traced number is not supported")


def iscomplexobj(x: Any) -> bool:
    """np.iscomplexobj"""
    return value_of(x).tensor.dtype.is_complex


def isrealobj(x: Any) -> bool:
    """np.isrealobj"""
    return not iscomplexobj(x)


def iscomplex(x: Any) -> Any:
    """np.iscomplex"""
    if iscomplexobj(x):
        return np.not_equal(np.imag(x), 0)
    return np.zeros_like(x, dtype=bool)[()]


def isreal(x: Any) -> Any:
    """np.isreal"""
    return np.equal(np.imag(x), 0)


def tolist(a: Any) -> Any:
    """ndarray.tolist needs the data."""
    raise fail(
        "TM102",
        "tolist() needs the data of an array while the function is traced",
        hint="return the array and call tolist() on the result",
    )


def conjugate(a: Any) -> Any:
    """ndarray.conj: the array itself where nothing of it is imaginary."""
    return np.conjugate(a) if a.dtype.kind == "c" else a


def copy_method(a: Any, order: str = "C") -> Any:
    """ndarray.copy"""
    trace = running()
    value = value_of(a)
    if type(a) is TracedArray:
        return in_order(fresh(trace, value), order, a)
    return result(trace, value)


def byteswap(a: Any, inplace: bool = False) -> Any:
    """ndarray.byteswap"""
    raise fail("TM110", "ndarray.byteswap is not supported in a compiled function",
               hint=of_array_attribute("byteswap"))  # fmt: skip


FUNCTIONS: dict[Any, Any] = {
    np.shape: shape, np.ndim: ndim, np.size: size, np.result_type: result_type,
    np.can_cast: can_cast, np.min_scalar_type: min_scalar_type, np.iscomplexobj: iscomplexobj,
    np.isrealobj: isrealobj, np.iscomplex: iscomplex, np.isreal: isreal,
}  # fmt: skip

METHODS: dict[str, Any] = {
    "tolist": tolist, "conj": conjugate,
    "conjugate": conjugate, "copy": copy_method, "byteswap": byteswap,
}  # fmt: skip
