"""The dispatch table: NumPy function, ufunc, method, attribute -> handler.

Handlers take exactly NumPy's arguments. Each family file lists its own; here they are joined.

Not here: the handlers.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, C128, F64, I64, DType

from ..tracing.number import TracedNumber
from ..tracing.state import fail, running
from . import (
    composed,
    conversion,
    creation,
    diagonals,
    einsum,
    indexing,
    joining,
    linear,
    movement,
    padding,
    queries,
    ranges,
    reductions,
    statistics,
    ufuncs,
)  # fmt: skip
from .attributes import ATTRIBUTES
from .operands import as_number, common_dtype
from .selection import Selection, elementwise

_FAMILIES = (
    creation, ranges, movement, conversion, diagonals, joining, padding, reductions, statistics,
    linear, einsum, indexing, queries, composed,
)  # fmt: skip
FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    function: handler for family in _FAMILIES for function, handler in family.FUNCTIONS.items()
}
METHODS: Mapping[str, Callable[..., Any]] = {
    name: handler
    for family in _FAMILIES
    for name, handler in getattr(family, "METHODS", {}).items()
}
_UFUNC_METHODS: Mapping[str, Callable[..., Any]] = {
    "reduce": reductions.fold,
    "accumulate": reductions.accumulate,
    "outer": ufuncs.outer,
    "at": indexing.add_at,
}


class NumpyDispatch:
    """What traced values call."""

    def ufunc(self, ufunc: Any, method: str, args: Any, keywords: Mapping[str, Any]) -> Any:
        """A call of ``ufunc`` or of one of its methods."""
        if method == "__call__":
            special = linear.GUFUNCS.get(ufunc)
            if special is not None:
                return special(*args, **keywords)
            if any(type(item) is Selection for item in args):
                return elementwise(ufunc, args, dict(keywords))
            return ufuncs.call(ufunc, args, **keywords)
        handler = _UFUNC_METHODS.get(method)
        if handler is None:
            raise fail("TM110", f"np.{ufunc.__name__}.{method} is not supported")
        return handler(ufunc, *args, **keywords)

    def function(self, function: Any, args: Any, keywords: Mapping[str, Any]) -> Any:
        """A call of a NumPy function that is not a ufunc."""
        handler = FUNCTIONS.get(function)
        if handler is None:
            raise self.unsupported(function)
        return handler(*args, **keywords)

    def handler(self, function: Any) -> Callable[..., Any] | None:
        """The handler of a NumPy function, where there is one."""
        return FUNCTIONS.get(function)

    def method(self, name: str) -> Callable[..., Any] | None:
        """The handler of an array method; it takes the array first."""
        return METHODS.get(name)

    def attribute(self, name: str) -> Callable[[Any], Any] | None:
        """The handler of an array attribute that needs an op."""
        return ATTRIBUTES.get(name)

    def number(self, size: Any) -> Any:
        """A size as a run-time number."""
        return as_number(size)

    def python_number(self, value: Value) -> TracedNumber:
        """A value of rank 0 as a Python number."""
        kind, dtype = _PYTHON[value.tensor.dtype.kind]
        trace = running()
        return TracedNumber(trace, trace.cast(value, dtype), kind)

    def common_dtype(self, *items: Any) -> DType:
        """NumPy's promotion of array-likes."""
        return common_dtype(*items)

    def getitem(self, array: Any, key: Any) -> Any:
        """``array[key]``."""
        return indexing.getitem(array, key)

    def setitem(self, array: Any, key: Any, value: Any) -> None:
        """``array[key] = value``."""
        indexing.setitem(array, key, value)

    def unsupported(self, function: Any) -> Exception:
        """The error for a function without handler."""
        return fail(
            "TM110",
            f"{qualified_name(function)} is not supported in a compiled function",
            hint="call it before or after the compiled function; docs/numpy-support.md lists what "
            "is supported",
        )

    def no_attribute(self, name: str) -> AttributeError:
        """The error for an attribute that traced arrays do not have."""
        if hasattr(np.ndarray, name):
            problem = fail("TM110", f"ndarray.{name} is not supported in a compiled function")
            return AttributeError(str(problem))
        names = [*METHODS, *ATTRIBUTES, "shape", "dtype", "ndim", "size"]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return AttributeError(f"'numpy.ndarray' object has no attribute {name!r}{hint}")


_PYTHON: Mapping[str, tuple[type, DType]] = {
    "b": (bool, BOOL), "i": (int, I64), "u": (int, I64), "f": (float, F64), "c": (complex, C128),
}  # fmt: skip


def qualified_name(function: Any) -> str:
    """Such as ``np.linalg.norm``."""
    module = getattr(function, "__module__", None) or "numpy"
    name = getattr(function, "__name__", repr(function))
    return f"{module.replace('numpy', 'np', 1)}.{name}"


DISPATCH = NumpyDispatch()
