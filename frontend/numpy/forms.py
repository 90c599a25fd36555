"""Forms that arrays are brought into or asked for: require, real_if_close, array_equiv, dsplit, ...

Not here: asarray and its like (creation.py), splitting along any axis (joining.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..tracing.concrete import require as need
from ..tracing.state import fail, running
from .creation import asarray
from .joining import split, vstack
from .movement import view_of
from .operands import value_of
from .words import broadcast_shapes


def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    """np.dsplit"""
    if view_of(ary).ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


_FLAGS = {
    "C": "C", "C_CONTIGUOUS": "C", "CONTIGUOUS": "C",
    "F": "F", "F_CONTIGUOUS": "F", "FORTRAN": "F",
    "A": "ALIGNED", "ALIGNED": "ALIGNED", "W": "WRITEABLE", "WRITEABLE": "WRITEABLE",
    "O": "OWNDATA", "OWNDATA": "OWNDATA", "E": "E", "ENSUREARRAY": "E",
}  # fmt: skip


def require(a: Any, dtype: Any = None, requirements: Any = None, *, like: Any = None) -> Any:
    """np.require"""
    wanted = {_FLAGS[name.upper()] for name in requirements or ()}
    if wanted >= {"C", "F"}:
        raise ValueError('Cannot specify both "C" and "F" order')
    order = next(iter(wanted & {"C", "F"}), "A")
    made = asarray(a, dtype, order)
    if all(made.flags[name] for name in wanted - {"C", "F", "E"}):
        return made
    return made.copy(order)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """np.asarray_chkfinite"""
    made = asarray(a, dtype, order)
    if made.dtype.kind in "fc":
        need(running(), value_of(np.all(np.isfinite(made))), "TM266",
             "array must not contain infs or NaNs")  # fmt: skip
    return made


def real_if_close(a: Any, tol: Any = 100) -> Any:
    """np.real_if_close of real arrays."""
    made = asarray(a)
    if made.dtype.kind == "c":
        raise fail("TM112", "whether np.real_if_close gives back complex numbers is known only at "
                   "run time", hint="use np.real")  # fmt: skip
    return made


def array_equiv(a1: Any, a2: Any) -> Any:
    """np.array_equiv"""
    trace = running()
    first, second = asarray(a1), asarray(a2)
    try:
        broadcast_shapes(trace, [value_of(x).tensor.shape for x in (first, second)])
    except ValueError:
        return False
    return trace.dispatch.python_number(value_of(np.all(first == second)))


def isfortran(a: Any) -> bool:
    """np.isfortran"""
    flags = view_of(a).flags
    return flags.f_contiguous and not flags.c_contiguous


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """np.ndenumerate: Python goes through the elements, so sizes become fixed."""
    array = asarray(arr)
    for place in np.ndindex(*[int(size) for size in np.shape(array)]):
        yield place, array[place]


FUNCTIONS: dict[Any, Any] = {
    np.dsplit: dsplit, np.require: require, np.asarray_chkfinite: asarray_chkfinite,
    np.real_if_close: real_if_close, np.array_equiv: array_equiv, np.isfortran: isfortran,
    np.ndenumerate: ndenumerate,
} | ({np.row_stack: vstack} if hasattr(np, "row_stack") else {})  # fmt: skip
