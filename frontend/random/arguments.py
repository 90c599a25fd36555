"""The arguments of draws: shapes under two names, bounds that may be known at run time only.

Invariants: a bound is an int, or a traced i64 of rank 0; bounds that hold no integer, or one that
the type does not, fail while tracing where they are known, and else the call.
Not here: the draws (generator.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.errors import error
from ..compiler.types import I64, U64, DType
from ..numpy.operands import is_traced, value_of
from ..tracing.concrete import known, require
from ..tracing.integer import TracedSize
from ..tracing.state import fail, require_dtype, running
from ..tracing.tensor import result
from ..variable import Variable


def shape_of(shape: Any, size: Any) -> tuple[Any, ...]:
    """The shape of a draw, which is given as `shape`, or as NumPy's `size`."""
    if shape is not None and size is not None:
        raise TypeError("shape= and size= are two names of one argument, got both")
    shape = size if shape is None else shape
    if shape is None:
        return ()
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if any(type(size) is int and size < 0 for size in sizes):
        raise error("TM242", f"a shape has no negative sizes, got {sizes}")
    return sizes


def integer_type(dtype: Any) -> DType:
    """The type of random integers. Raises ArgError."""
    kind = require_dtype(dtype)
    if not kind.is_integer:
        raise fail("TM267", f"{kind.name} is no type of integers")
    return kind


def bounds_of(kind: DType, low: Any, high: Any) -> tuple[Any, Any]:
    """Both bounds, looked at. high: None where `low` is the number of integers from 0 on."""
    first, last = (0, _bound(low)) if high is None else (_bound(low), _bound(high))
    least = -(2 ** (kind.bits - 1)) if kind.kind == "i" else 0
    text = f"no integers of {kind.name} from {first} up to {last}"
    for holds in (first < last, first >= least, last <= least + 2**kind.bits):
        if is_traced(holds):
            require(running(), value_of(holds), "TM267", text)
        elif not holds:
            raise fail("TM267", text)
    return first, last


def as_u64(number: Any) -> Any:
    """An int, a size or a traced integer modulo 2**64; traced where it is."""
    if not is_traced(number):
        return np.uint64(number % 2**64)
    trace = running()
    return result(trace, trace.cast(value_of(number), U64))


def _bound(item: Any) -> Any:
    """A bound as an int, or traced. Floats are cut off, as NumPy does."""
    item = item.read() if isinstance(item, Variable) else item
    if np.ndim(item):
        raise fail("TM267", f"the bounds of random integers are single numbers, got {item!r:.80}")
    if not is_traced(item):
        return int(item)
    trace = running()
    value = value_of(item)
    found = None if type(item) is TracedSize else known(trace, value)
    return result(trace, trace.cast(value, I64)) if found is None else int(found)
