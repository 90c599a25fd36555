"""np.pad.

Not here: the op of that name (it is one of the parts).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.dims import Size
from tracemill.compiler.ir.graph import Value

from ..tracing.state import Trace, fail, running
from ..tracing.tensor import fresh
from .axes import one_axis, size_argument
from .creation import converted
from .memory_order import padded_order
from .operands import is_traced, value_of
from .words import reshape


def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    """np.pad in the modes constant, edge, reflect, symmetric, wrap, empty, zeros."""
    trace = running()
    value = value_of(array)
    rank = value.tensor.rank
    pairs = _pairs(pad_width, rank, "pad_width")
    if not all(trace.sizes.at_least(n, 0, "pads are not negative") for p in pairs for n in p):
        raise fail("TM242", "index can't contain negative values")
    if mode in ("constant", "empty"):
        fills = _pairs(keywords.get("constant_values", 0), rank, "constant_values", sizes=False)
        for axis, (pair, fill) in enumerate(zip(pairs, fills)):
            value = _pad_constant(trace, value, axis, pair, fill)
        return padded_order(fresh(trace, value), array)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise fail(
            "TM111",
            f"np.pad with mode={mode!r} is not supported",
            hint="constant, edge, reflect, symmetric and wrap are",
        )
    for axis, (low, high) in enumerate(pairs):
        if low != 0 or high != 0:
            value = _pad_axis(trace, value, axis, (low, high), mode)
    return padded_order(fresh(trace, value), array)


def _pad_constant(
    trace: Trace, value: Value, axis: int, pair: tuple[Size, Size], fills: tuple[Any, Any]
) -> Value:
    rank = value.tensor.rank
    dtype = value.tensor.dtype
    for side, (width, fill) in enumerate(zip(pair, fills)):
        if width == 0:
            continue
        widths = tuple([width if i == axis else 0 for i in range(rank)])
        none = (0,) * rank
        number = trace.cast(converted(trace, fill, None), dtype)
        value = trace.emit(
            "pad",
            value,
            reshape(trace, number, ()),
            low=widths if side == 0 else none,
            high=none if side == 0 else widths,
        )
    return value


def _pad_axis(trace: Trace, value: Value, axis: int, pair: tuple[Size, Size], mode: str) -> Value:
    """Take elements at positions computed from where they land."""
    low, high = pair
    extent = value.tensor.shape[axis]
    if trace.sizes.equal(extent, 0, "an axis is padded"):
        raise ValueError(
            f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
        )
    place = trace.emit("iota", size=low + extent + high)
    if low != 0:
        place = trace.emit("sub", place, trace.size_value(low))
    zero, last = trace.size_value(0), trace.size_value(extent - 1)
    if mode == "edge" or (mode == "reflect" and extent == 1):
        place = trace.emit("minimum", trace.emit("maximum", place, zero), last)
    elif mode == "wrap":
        place = trace.emit("remainder", place, trace.size_value(extent))
    else:
        period = 2 * (extent - 1) if mode == "reflect" else 2 * extent
        place = trace.emit("remainder", place, trace.size_value(period))
        end = period if mode == "reflect" else period - 1
        mirrored = trace.emit("sub", trace.size_value(end), place)
        place = trace.emit("minimum", place, mirrored)
    made: Value = trace.emit("gather", value, place, axes=(axis,))[0]
    return made


def _pairs(width: Any, rank: int, name: str, sizes: bool = True) -> list[tuple[Any, Any]]:
    read = size_argument if sizes else (lambda item: item)
    if isinstance(width, np.ndarray) and not is_traced(width):
        width = width.tolist()
    if isinstance(width, dict):
        found: list[tuple[Any, Any]] = [(0, 0)] * rank
        for axis, pair in width.items():
            both = pair if isinstance(pair, tuple | list) else (pair, pair)
            found[one_axis(axis, rank)] = (read(both[0]), read(both[1]))
        return found
    if not isinstance(width, tuple | list):
        return [(read(width), read(width))] * rank
    rows = [row if isinstance(row, tuple | list) else None for row in width]
    if all(row is None for row in rows):
        if len(width) == 1:
            return [(read(width[0]), read(width[0]))] * rank
        if len(width) == 2:
            return [(read(width[0]), read(width[1]))] * rank
    elif None not in rows and len(rows) in (1, rank):
        made = [(read(row[0]), read(row[-1])) for row in rows if row is not None]
        return made * (rank if len(made) == 1 else 1)
    raise ValueError(f"operands could not be broadcast together: {name}={width!r} for rank {rank}")


FUNCTIONS: dict[Any, Any] = {np.pad: pad}
