"""Questions about types, answered while tracing: common_type, isscalar, promote_types, ...

Invariants: the answers are NumPy's own, about the dtypes that arrays have.
Not here: result_type, can_cast and their like, which programs ask more often (queries.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tracing.tensor import TracedArray
from .operands import is_traced, value_of, weak_type


def _of_types(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes dtypes, and no arrays."""

    def handler(*args: Any, **keywords: Any) -> Any:
        for item in (*args, *keywords.values()):
            if is_traced(item):
                raise TypeError("Cannot construct a dtype from an array")
        return function(*args, **keywords)

    return handler


def common_type(*arrays: Any) -> Any:
    """np.common_type"""
    return np.common_type(*[np.empty(0, value_of(a).tensor.dtype.numpy) for a in arrays])


def mintypecode(typechars: Any, typeset: Any = "GDFgdf", default: str = "d") -> Any:
    """np.mintypecode"""
    chars = [t if isinstance(t, str) else np.dtype(weak_type(t)).char for t in typechars]
    return np.mintypecode(chars, typeset, default)


def isscalar(element: Any) -> bool:
    """np.isscalar"""
    if is_traced(element):
        return type(element) is not TracedArray
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """np.iterable"""
    return np.ndim(y) > 0 if is_traced(y) else np.iterable(y)


FUNCTIONS: dict[Any, Any] = {
    **{f: _of_types(f) for f in (np.promote_types, np.issubdtype, np.isdtype, np.typename)},
    np.common_type: common_type, np.mintypecode: mintypecode, np.isscalar: isscalar,
    np.iterable: iterable,
}  # fmt: skip
