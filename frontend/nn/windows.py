"""What convolutions and pooling share: layouts by name, numbers per axis, padding, window checks.

Invariants: a layout is where the channels stand; strides, dilations and windows are known
integers once read; padding is a size per side.
Not here: the sums (convolution.py, pooling.py).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tracemill.compiler.records import dataclass

from ..compiler.dims import Size, dim_text, floor_divide, maximum
from ..compiler.ir.graph import Value
from ..numpy.axes import size_argument
from ..tracing.state import Trace, fail

Pairs = tuple[tuple[Size, Size], ...]
NAMES = {
    1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the axes of an image batch stand: batch first, channels second or last."""

    channels: int
    spatial: tuple[int, ...]

    @property
    def last(self) -> bool:
        """True where the channels are the last axis."""
        return self.channels != 1


def layout_of(name: Any, rank: int, function: str) -> Layout:
    """The layout `name`, or channels first for None, of an image batch of `rank`."""
    count = rank - 2
    if count not in NAMES:
        raise fail(
            "TM208",
            f"{function} takes batches of images with one to three axes (rank 3 to 5), got rank "
            f"{rank}",
            hint="add a batch axis of size 1 with np.expand_dims(x, 0)",
        )
    first, last = NAMES[count]
    if name is None or name == first:
        return Layout(1, tuple(range(2, rank)))
    if name == last:
        return Layout(rank - 1, tuple(range(1, rank - 1)))
    raise fail(
        "TM203", f"{function}: layout is {first!r} or {last!r} for rank {rank}, got {name!r}"
    )


def channels_of(name: Any, rank: int, function: str) -> int:
    """Where the channels of a batch stand; rows of channels (rank 2) are allowed."""
    if rank == 2 and name is None:
        return 1
    return layout_of(name, rank, function).channels


def per_axis(value: Any, count: int, name: str, function: str, least: int = 1) -> tuple[int, ...]:
    """One integer for all axes, or one each."""
    items = value if isinstance(value, tuple | list) else (value,) * count
    if len(items) != count:
        raise fail(
            "TM256", f"{function}: {name} needs one number or {count}, got {len(items)} of them"
        )
    found = tuple([_integer(item, name, function) for item in items])
    for number in found:
        if number < least:
            raise fail("TM256", f"{function}: {name} must be at least {least}, got {number}")
    return found


def _integer(item: Any, name: str, function: str) -> int:
    try:
        return operator.index(item)
    except TypeError:
        raise fail("TM256", f"{function}: {name} needs integers, got {item!r}") from None


def window_sizes(trace: Trace, sizes: Sequence[Size]) -> tuple[int, ...]:
    """The sizes of a window as numbers: a compiled function is made for them."""
    return tuple([trace.sizes.specialise(s, "the window of a convolution") for s in sizes])


def padding_of(
    trace: Trace,
    padding: Any,
    extents: Sequence[Size],
    windows: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    function: str,
) -> Pairs:
    """Sizes put before and after each axis: from ``valid``, ``same``, integers or pairs."""
    count = len(extents)
    if isinstance(padding, str):
        if padding not in ("valid", "same"):
            raise fail(
                "TM256",
                f"{function}: padding is 'valid', 'same', integers or pairs, got {padding!r}",
            )
        if padding == "valid":
            return ((0, 0),) * count
        return tuple([
            _same(trace, *row) for row in zip(extents, windows, strides, dilations)
        ])  # fmt: skip
    items = padding if isinstance(padding, tuple | list) else (padding,) * count
    if len(items) != count:
        raise fail("TM256", f"{function}: padding needs {count} numbers or pairs, got {len(items)}")
    return tuple([_pair(item, function) for item in items])


def _pair(item: Any, function: str) -> tuple[Size, Size]:
    sides = item if isinstance(item, tuple | list) else (item, item)
    if len(sides) != 2:
        raise fail("TM256", f"{function}: padding of an axis is a number or a pair, got {item!r}")
    try:
        low, high = size_argument(sides[0]), size_argument(sides[1])
    except TypeError:
        raise fail("TM256", f"{function}: padding needs integers, got {item!r}") from None
    for side in (low, high):
        if isinstance(side, int) and side < 0:
            raise fail("TM256", f"{function}: padding must not be negative, got {side}")
    return low, high


def _same(trace: Trace, extent: Size, window: int, stride: int, dilation: int) -> tuple[Size, Size]:
    """Padding by which as many places are seen as the image has, divided by the stride."""
    reach = (window - 1) * dilation + 1
    if stride == 1:
        total: Size = reach - 1
    else:
        places = floor_divide(extent + stride - 1, stride)
        total = maximum((places - 1) * stride + reach - extent, 0)
    low = floor_divide(total, 2)
    return low, trace.sizes.normal(total - low)


def padded(trace: Trace, value: Value, axes: Sequence[int], padding: Pairs, fill: Any) -> Value:
    """The value with `fill` around some of its axes."""
    rank = value.tensor.rank
    sides = dict(zip(axes, padding))
    low, high = (tuple([sides.get(i, (0, 0))[side] for i in range(rank)]) for side in (0, 1))
    if not any(side != 0 for side in (*low, *high)):
        return value
    number = trace.literal(fill, value.tensor.dtype)
    made: Value = trace.emit("pad", value, number, low=low, high=high)
    return made


def need_windows_fit(
    trace: Trace, value: Value, axes: Sequence[int], reaches: Sequence[int], function: str
) -> None:
    """Refuse a window larger than the image under it; what depends on the call is guarded."""
    for axis, reach in zip(axes, reaches):
        extent = value.tensor.shape[axis]
        if not trace.sizes.at_least(extent, reach, "a window fits into its image"):
            now = dim_text(trace.sizes.hint(extent))
            raise fail(
                "TM207",
                f"{function}: a window that reaches over {reach} elements does not fit into axis "
                f"{axis} of {now}, padding included",
            )
