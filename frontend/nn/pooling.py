"""Pooling: windows of an image folded to one number each.

Invariants: the windows are the op `slide`, one axis of the image at a time; nothing of their size
lies in memory but where a gradient asks for it.
Not here: folding the whole image, which is np.max and np.mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiler.ir.graph import Value
from ..compiler.types import DType
from ..lifted import floating_dtype, lifted, read
from ..numpy.operands import integer_limits, value_of
from ..numpy.words import full, reshape, slid
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import fresh
from .windows import (
    Layout,
    Pairs,
    layout_of,
    need_windows_fit,
    padded,
    padding_of,
    per_axis,
)


@lifted
def max_pool(
    x: Any,
    window: Any,
    *,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    layout: str | None = None,
) -> Any:
    """The greatest element of each window; the gradient goes to the first one that is.

    window: its size, a number or one per axis. stride: the window's size if it is not given.
    padding: as `conv` takes it; what is put around the image is never the greatest.
    """
    trace = running()
    value = value_of(read(x))
    pool = _Pooling(trace, value, window, stride, padding, dilation, layout, "max_pool")
    if pool.all_padding():
        raise fail("TM256", "max_pool: padding must be less than the reach of the window")
    seen = pool.windows(pool.padded(_least(value.tensor.dtype)))
    return fresh(trace, trace.emit("max", seen, axes=pool.positions))


@lifted
def avg_pool(
    x: Any,
    window: Any,
    *,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    count_padding: bool = True,
    layout: str | None = None,
) -> Any:
    """The mean of each window; integers become floats.

    count_padding: whether zeros put around the image count as elements of a window.
    """
    trace = running()
    x = read(x)
    value = trace.cast(value_of(x), floating_dtype(x))
    pool = _Pooling(trace, value, window, stride, padding, dilation, layout, "avg_pool")
    if not count_padding and pool.all_padding():
        raise fail("TM256", "avg_pool: padding must be less than the reach of the window")
    total: Any = fresh(trace, trace.emit("sum", pool.windows(pool.padded(0)), axes=pool.positions))
    dtype = value.tensor.dtype
    if count_padding or not any(side != 0 for pair in pool.sides for side in pair):
        return total / fresh(trace, trace.literal(int(np.prod(pool.window)), dtype))
    return total / fresh(trace, pool.counts(dtype))


class _Pooling:
    """The windows of one image, their arguments checked."""

    def __init__(
        self,
        trace: Trace,
        value: Value,
        window: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        layout: str | None,
        function: str,
    ) -> None:
        self.trace, self.value, self.function = trace, value, function
        self.at: Layout = layout_of(layout, value.tensor.rank, function)
        count = len(self.at.spatial)
        self.window = per_axis(window, count, "window", function)
        self.stride = per_axis(window if stride is None else stride, count, "stride", function)
        self.dilation = per_axis(dilation, count, "dilation", function)
        extents = [value.tensor.shape[i] for i in self.at.spatial]
        self.sides: Pairs = padding_of(
            trace, padding, extents, self.window, self.stride, self.dilation, function
        )
        self.reaches = [(w - 1) * d + 1 for w, d in zip(self.window, self.dilation)]
        rank = value.tensor.rank
        self.positions = tuple(range(rank, rank + count))

    def all_padding(self) -> bool:
        """Whether a window may lie wholly in the padding."""
        rows = zip(self.sides, self.reaches)
        around = [(side, reach) for pair, reach in rows for side in pair if side != 0]
        return any(not isinstance(side, int) or side >= reach for side, reach in around)

    def padded(self, fill: Any) -> Value:
        """The image with `fill` around it, known to be under a window."""
        made = padded(self.trace, self.value, self.at.spatial, self.sides, fill)
        need_windows_fit(self.trace, made, self.at.spatial, self.reaches, self.function)
        return made

    def windows(self, image: Value) -> Value:
        """[..., places, ..., positions in the window], one further axis per axis of the image."""
        for number, axis in enumerate(self.at.spatial):
            image = slid(
                self.trace, image, axis, self.window[number], self.stride[number],
                self.dilation[number],
            )  # fmt: skip
        return image

    def counts(self, dtype: DType) -> Value:
        """How many elements of the image each window sees, as an image that broadcasts."""
        trace, rank = self.trace, self.value.tensor.rank
        total: Value | None = None
        for number, axis in enumerate(self.at.spatial):
            row = full(trace, (self.value.tensor.shape[axis],), 1, dtype)
            row = padded(trace, row, (0,), (self.sides[number],), 0)
            row = slid(
                trace, row, 0, self.window[number], self.stride[number], self.dilation[number]
            )
            row = trace.emit("sum", row, axes=(1,))
            size = row.tensor.shape[0]
            row = reshape(trace, row, [size if i == axis else 1 for i in range(rank)])
            total = row if total is None else trace.emit("mul", total, row)
        assert total is not None
        return total


def _least(dtype: DType) -> Any:
    """What no element is less than."""
    if dtype.is_float:
        return -np.inf
    if dtype.is_integer:
        return integer_limits(dtype).min
    raise fail("TM202", f"max_pool takes real numbers, got {dtype.name}")
