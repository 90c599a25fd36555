"""The dispatch table: NumPy function, ufunc, method, attribute -> handler.

Handlers take exactly NumPy's arguments. Each family file lists its own; here they are joined.

Not here: the handlers.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..tracing.state import fail
from . import ufuncs
from .operands import as_number


class NumpyDispatch:
    """What traced values call."""

    def __init__(self) -> None:
        self.functions: dict[Any, Callable[..., Any]] = {}
        self.methods: dict[str, Callable[..., Any]] = {}
        self.attributes: dict[str, Callable[[Any], Any]] = {}
        self.gufuncs: dict[Any, Callable[..., Any]] = {}
        self.ufunc_methods: dict[str, Callable[..., Any]] = {}

    def ufunc(self, ufunc: Any, method: str, args: Any, keywords: Mapping[str, Any]) -> Any:
        """A call of ``ufunc`` or of one of its methods."""
        if method == "__call__":
            special = self.gufuncs.get(ufunc)
            if special is not None:
                return special(*args, **keywords)
            return ufuncs.call(ufunc, args, **keywords)
        handler = self.ufunc_methods.get(method)
        if handler is None:
            raise fail("TM110", f"np.{ufunc.__name__}.{method} is not supported")
        return handler(ufunc, *args, **keywords)

    def function(self, function: Any, args: Any, keywords: Mapping[str, Any]) -> Any:
        """A call of a NumPy function that is not a ufunc."""
        handler = self.functions.get(function)
        if handler is None:
            raise self.unsupported(function)
        return handler(*args, **keywords)

    def method(self, name: str) -> Callable[..., Any] | None:
        """The handler of an array method; it takes the array first."""
        return self.methods.get(name)

    def attribute(self, name: str) -> Callable[[Any], Any] | None:
        """The handler of an array attribute that needs an op."""
        return self.attributes.get(name)

    def number(self, size: Any) -> Any:
        """A size as a run-time number."""
        return as_number(size)

    def getitem(self, array: Any, key: Any) -> Any:
        """``array[key]``."""
        return self.methods["__getitem__"](array, key)

    def setitem(self, array: Any, key: Any, value: Any) -> None:
        """``array[key] = value``."""
        self.methods["__setitem__"](array, key, value)

    def unsupported(self, function: Any) -> Exception:
        """The error for a function without handler, naming the nearest ones."""
        name = qualified_name(function)
        names = sorted({qualified_name(f) for f in self.functions} | _UFUNC_NAMES)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
        hint = f"nearest supported: {', '.join(near)}; or " if near else ""
        return fail(
            "TM110",
            f"{name} is not supported in a compiled function",
            hint=f"{hint}call it before or after the compiled function, or through tm.host_call",
        )

    def no_attribute(self, name: str) -> AttributeError:
        """The error for an attribute that traced arrays do not have."""
        if hasattr(np.ndarray, name):
            return AttributeError(
                str(fail("TM110", f"ndarray.{name} is not supported in a compiled function"))
            )
        names = [*self.methods, *self.attributes, "shape", "dtype", "ndim", "size"]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return AttributeError(f"'numpy.ndarray' object has no attribute {name!r}{hint}")


def qualified_name(function: Any) -> str:
    """Such as ``np.linalg.norm``."""
    module = getattr(function, "__module__", None) or "numpy"
    name = getattr(function, "__name__", repr(function))
    return f"{module.replace('numpy', 'np', 1)}.{name}"


_UFUNC_NAMES = {f"np.{name}" for name in np.__all__ if isinstance(getattr(np, name, None), np.ufunc)}

DISPATCH = NumpyDispatch()
