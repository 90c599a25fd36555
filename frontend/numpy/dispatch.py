"""The dispatch table: NumPy function, ufunc, method, attribute -> handler.

Handlers take exactly NumPy's arguments. Each family file lists its own; here they are joined.
Functions of parts that `import numpy` does not load are listed by module and name: to name them
as objects would load those parts in every process.

Not here: the handlers.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracemill.compiler.ir.graph import Value
from tracemill.compiler.types import BOOL, C128, F64, I64, DType

from ..loading import load
from ..tracing.number import TracedNumber
from ..tracing.state import fail, running
from . import (
    alternatives,
    calling,
    composed,
    conversion,
    creation,
    cut_dispatch,
    diagonals,
    einsum,
    indexing,
    joining,
    linear,
    movement,
    nan_aware,
    order_statistics,
    padding,
    pieces,
    queries,
    ranges,
    rare,
    reductions,
    rolling,
    searching,
    signals,
    sorting,
    statistics,
    ufuncs,
)  # fmt: skip
from .attributes import ATTRIBUTES
from .names import SPECIAL
from .operands import as_number, common_dtype
from .unsized import Unsized

_FAMILIES = (
    creation, ranges, movement, conversion, diagonals, joining, rolling, padding, reductions,
    statistics, sorting, searching, order_statistics,
    linear, einsum, indexing, queries, composed, nan_aware, pieces, signals,
    calling,
)  # fmt: skip
FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    function: handler for family in _FAMILIES for function, handler in family.FUNCTIONS.items()
}
METHODS: Mapping[str, Callable[..., Any]] = {
    name: handler
    for family in (*_FAMILIES, rare)
    for name, handler in getattr(family, "METHODS", {}).items()
}


def handler_of(function: Any) -> Callable[..., Any] | None:
    """The handler of a NumPy function that is no ufunc, where there is one."""
    found = FUNCTIONS.get(function)
    return rare.handler_of(function) if found is None else found


class NumpyDispatch:
    """What traced values call."""

    def ufunc(self, ufunc: Any, method: str, args: Any, keywords: Mapping[str, Any]) -> Any:
        """A call of ``ufunc`` or of one of its methods."""
        if method == "__call__":
            for item in args:
                if issubclass(type(item), Unsized):
                    return item.__array_ufunc__(ufunc, method, *args, **keywords)
            special = linear.GUFUNCS.get(ufunc)
            if special is not None:
                return special(*args, **keywords)
            return ufuncs.call(ufunc, args, **keywords)
        if method == "reduce" and ufunc in reductions.FOLDS:
            return reductions.fold(ufunc, *args, **keywords)
        methods = load("numpy.ufunc_methods")
        methods.refuse_method(ufunc, method)
        return methods.METHODS[method](ufunc, *args, **keywords)

    def function(self, function: Any, args: Any, keywords: Mapping[str, Any]) -> Any:
        """A call of a NumPy function that is not a ufunc."""
        for item in args:
            if issubclass(type(item), Unsized):
                return item.__array_function__(function, (), args, keywords)
        handler = handler_of(function)
        if handler is None:
            raise self.unsupported(function)
        return handler(*args, **keywords)

    def handler(self, function: Any) -> Callable[..., Any] | None:
        """The handler of a NumPy function, where there is one."""
        return handler_of(function)

    def method(self, name: str) -> Callable[..., Any] | None:
        """The handler of an array method; it takes the array first."""
        return METHODS.get(name)

    def attribute(self, name: str) -> Callable[[Any], Any] | None:
        """The handler of an array attribute that needs an op."""
        return ATTRIBUTES.get(name)

    @property
    def cut(self) -> Any:
        """The functions of arrays that are cut along axes (cut_dispatch.py)."""
        return cut_dispatch

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
        name = qualified_name(function)
        short = name.rpartition(".")[2]
        if name.startswith("scipy.") and short in SPECIAL:
            return fail("TM110", f"scipy.special.{short} is not supported",
                        hint=f"tm.special.{short} is")  # fmt: skip
        module = getattr(function, "__module__", None) or "numpy"
        return fail("TM110", f"{name} is not supported in a compiled function",
                    hint=alternatives.of_function(module, short))  # fmt: skip

    def no_attribute(self, name: str) -> AttributeError:
        """The error for an attribute that traced arrays do not have."""
        if hasattr(np.ndarray, name):
            problem = fail("TM110", f"ndarray.{name} is not supported in a compiled function",
                           hint=alternatives.of_array_attribute(name))  # fmt: skip
            return AttributeError(str(problem))
        names = [*METHODS, *ATTRIBUTES, "shape", "dtype", "ndim", "size"]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return AttributeError(f"'numpy.ndarray' object has no attribute {name!r}{hint}")


_PYTHON: Mapping[str, tuple[type, DType]] = {
    "b": (bool, BOOL), "i": (int, I64), "u": (int, I64), "f": (float, F64), "c": (complex, C128),
}  # fmt: skip


def qualified_name(function: Any) -> str:
    """Such as ``np.linalg.norm``; of an instance its class, such as ``np.vectorize``."""
    if isinstance(function, np.vectorize | np.poly1d):
        function = type(function)
    module = getattr(function, "__module__", None) or "numpy"
    name = getattr(function, "__name__", repr(function))
    return f"{module.replace('numpy', 'np', 1)}.{name}"


DISPATCH = NumpyDispatch()
