"""Attribute values: made immutable once, walked and compared everywhere.

Invariants: keys are sorted; a value is an int, float, bool, str, Dim, DType, read-only array or
a tuple of these.
Not here: what attributes mean (signatures), their text (literals.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ..dims import Dim, Size
from ..types import DType, dtype_of

NONE: Mapping[str, Any] = {}


def freeze(attrs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The attributes with sorted keys and immutable values."""
    if not attrs:
        return NONE
    if len(attrs) == 1:
        return {key: _frozen(value) for key, value in attrs.items()}
    return {key: _frozen(attrs[key]) for key in sorted(attrs)}


def literal_array(value: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    """A read-only, C-contiguous copy of `value`, a native array."""
    array = np.array(value, None if dtype is None else dtype.numpy, order="C")
    array.flags.writeable = False
    return array


def substitute_value(value: Any, env: Mapping[str, Size]) -> Any:
    """`value` with dim symbols replaced, tuples included."""
    if isinstance(value, Dim):
        return value.substitute(env)
    if isinstance(value, tuple):
        return tuple([substitute_value(item, env) for item in value])
    return value


def has_dims(attrs: Mapping[str, Any]) -> bool:
    """True where some attribute mentions a symbolic size."""
    pending = list(attrs.values())
    while pending:
        value = pending.pop()
        if isinstance(value, Dim):
            return True
        if isinstance(value, tuple):
            pending.extend(value)
    return False


def attrs_key(attrs: Mapping[str, Any]) -> Hashable:
    """Equal for equal attributes, bit for bit: 0.0 is not -0.0, 1 is not True."""
    return tuple([(key, value_key(value)) for key, value in attrs.items()])


def value_key(value: Any) -> Hashable:
    """A key for one attribute value."""
    if isinstance(value, tuple):
        return tuple([value_key(item) for item in value])
    if isinstance(value, np.ndarray):
        return (value.dtype.name, value.shape, value.tobytes())
    if isinstance(value, float):
        return ("float", value.hex())
    return (type(value).__name__, value)


def _frozen(value: Any) -> Any:
    kind = type(value)
    if kind is tuple:
        return tuple([_frozen(item) for item in value])
    if kind is int or kind is str or kind is bool or kind is float or kind is Dim or kind is DType:
        return value
    if kind is list:
        return tuple([_frozen(item) for item in value])
    if kind is np.ndarray:
        if value.flags.writeable or not value.flags.c_contiguous:
            return literal_array(value, None)
        return value
    if isinstance(value, np.dtype):
        return dtype_of(value) or value
    if isinstance(value, np.generic):
        return value.item()
    return value
