"""Where an array is not zero, with results of a size that is given: nonzero, flatnonzero, argwhere.

They work inside compiled functions and, compiled by themselves, on plain arrays.

Not here: distinct elements (ordering.py), NumPy's functions of these names (numpy/indexing.py).
"""

from __future__ import annotations

from typing import Any

from .compiler.dims import Size
from .compiler.ir.graph import Value
from .lifted import lifted, read
from .numpy.axes import size_argument
from .numpy.operands import value_of
from .numpy.placed import coordinates, places
from .numpy.words import reshape, transpose
from .tracing.state import Trace, fail, running
from .tracing.tensor import fresh


@lifted
def nonzero(x: Any, size: int, *, fill_value: Any = 0) -> Any:
    """np.nonzero with `size` places, one array of indices for each axis: where `x` is not zero, in
    order, then `fill_value` (a number, or one for each axis). It is an error if there are more."""
    trace = running()
    value = value_of(read(x))
    if value.tensor.rank == 0:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() "
            "instead."
        )
    return tuple([fresh(trace, part) for part in _found(trace, value, size, fill_value)])


@lifted
def flatnonzero(x: Any, size: int, *, fill_value: Any = 0) -> Any:
    """np.flatnonzero with `size` indices: where `x`, all its elements in a row, is not zero, then
    `fill_value`. It is an error if there are more."""
    trace = running()
    room = _room(size)
    found, there = places(trace, value_of(read(x)), room)
    fill = value_of(fill_value)
    return fresh(trace, trace.emit("select", there, found, trace.cast(fill, found.tensor.dtype)))


@lifted
def argwhere(x: Any, size: int, *, fill_value: Any = 0) -> Any:
    """np.argwhere with `size` rows of indices: where `x` is not zero, then rows of `fill_value` (a
    number, or one for each axis). It is an error if there are more."""
    trace = running()
    value = value_of(read(x))
    columns = _found(trace, value, size, fill_value)
    if not columns:  # of a number NumPy gives rows without indices
        raise fail(
            "TM208", "argwhere of a number has rows without indices", hint="np.atleast_1d makes"
            " it an array"
        )  # fmt: skip
    rows = [reshape(trace, part, (1, *part.tensor.shape)) for part in columns]
    joined = rows[0] if len(rows) == 1 else trace.emit("concatenate", *rows, axis=0)
    return fresh(trace, transpose(trace, joined, (1, 0)))


def _found(trace: Trace, value: Value, size: Any, fill_value: Any) -> list[Value]:
    rank = value.tensor.rank
    several = isinstance(fill_value, tuple | list)
    fills = list(fill_value) if several else [fill_value] * rank
    if len(fills) != rank:
        raise fail("TM203", f"needs a fill_value for each of {rank} axes, got {len(fills)}")
    found, there = places(trace, value, _room(size))
    made = []
    for part, fill in zip(coordinates(trace, found, value.tensor.shape), fills):
        other = trace.cast(value_of(fill), part.tensor.dtype)
        made.append(trace.emit("select", there, part, other))
    return made


def _room(size: Any) -> Size:
    room = size_argument(size)
    if isinstance(room, int) and room < 0:
        raise fail("TM242", f"there is no size of {room}")
    return room
