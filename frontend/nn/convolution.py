"""Convolution and its transpose, in one to three dimensions.

Invariants: both are the graph op of the same name: padding is a pad before it, layouts are the
order of its axes, groups a batch axis.
Not here: pooling (pooling.py), the checks that they share (windows.py).
"""

from __future__ import annotations

from typing import Any

from ..compiler.dims import Size, dim_text, floor_divide
from ..compiler.ir.graph import Value
from ..lifted import lifted, read
from ..numpy.operands import common_dtype, value_of
from ..numpy.words import reshape, transpose
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import fresh
from .windows import (
    Layout,
    layout_of,
    need_windows_fit,
    padded,
    padding_of,
    per_axis,
    window_sizes,
)


@lifted
def conv(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
    layout: str | None = None,
) -> Any:
    """Sums of products of `weight` with the windows of `x` of its size.

    x: [batch, channels, *image], or [batch, *image, channels] for layout ``NWC``, ``NHWC`` or
    ``NDHWC``. weight: [outputs, channels / groups, *window]; with channels last
    [*window, channels / groups, outputs]. stride, dilation: a number or one per axis of the
    image. padding: zeros around the image: a number, one per axis, pairs (before, after), or
    ``valid`` (none), or ``same`` (as many places as the image has, divided by the stride).
    bias: one number per output.
    """
    trace = running()
    image, weights = _operands(trace, x, weight)
    rank = image.tensor.rank
    at = layout_of(layout, rank, "conv")
    _need_rank(weights, rank, "conv")
    count = rank - 2
    window_axes = tuple(range(count)) if at.last else tuple(range(2, rank))
    outputs, inner = (rank - 1, rank - 2) if at.last else (0, 1)
    strides = per_axis(stride, count, "stride", "conv")
    dilations = per_axis(dilation, count, "dilation", "conv")
    windows = window_sizes(trace, [weights.tensor.shape[i] for i in window_axes])
    number = per_axis(groups, 1, "groups", "conv")[0]
    _need_channels(
        trace, number, image.tensor.shape[at.channels], weights.tensor.shape[inner],
        weights.tensor.shape[outputs],
    )  # fmt: skip
    extents = [image.tensor.shape[i] for i in at.spatial]
    sides = padding_of(trace, padding, extents, windows, strides, dilations, "conv")
    image = padded(trace, image, at.spatial, sides, 0)
    reaches = [(w - 1) * d + 1 for w, d in zip(windows, dilations)]
    need_windows_fit(trace, image, at.spatial, reaches, "conv")
    moves = tuple(zip(at.spatial, window_axes, strides, dilations))
    made = _convolved(trace, image, weights, at, (inner, outputs), moves, number)
    return _with_bias(made, bias, at)


@lifted
def conv_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
    layout: str | None = None,
) -> Any:
    """The transpose of `conv` as a linear map: what its gradient does to the image.

    weight: as the convolution has it whose transpose this is: [channels, outputs / groups,
    *window], with channels last [*window, outputs / groups, channels]. padding: what that
    convolution puts around its image (numbers or pairs): the result is so much smaller.
    output_padding: elements more at the end of each axis, which a stride leaves open.
    """
    trace = running()
    image, weights = _operands(trace, x, weight)
    rank = image.tensor.rank
    at = layout_of(layout, rank, "conv_transpose")
    _need_rank(weights, rank, "conv_transpose")
    count = rank - 2
    window_axes = tuple(range(count)) if at.last else tuple(range(2, rank))
    inner, outputs = (rank - 1, rank - 2) if at.last else (0, 1)
    strides = per_axis(stride, count, "stride", "conv_transpose")
    dilations = per_axis(dilation, count, "dilation", "conv_transpose")
    more = per_axis(output_padding, count, "output_padding", "conv_transpose", 0)
    windows = window_sizes(trace, [weights.tensor.shape[i] for i in window_axes])
    number = per_axis(groups, 1, "groups", "conv_transpose")[0]
    if isinstance(padding, str):
        raise fail("TM256", f"conv_transpose: padding needs integers or pairs, got {padding!r}")
    extents = [image.tensor.shape[i] for i in at.spatial]
    sides = padding_of(trace, padding, extents, windows, strides, dilations, "conv_transpose")
    _need_transposed_channels(trace, number, image.tensor.shape[at.channels], weights, inner)
    for i, axis in enumerate(at.spatial):
        if more[i] >= max(strides[i], dilations[i]):
            raise fail(
                "TM256",
                f"conv_transpose: output_padding must be less than stride or dilation, got "
                f"{more[i]} with {strides[i]} and {dilations[i]}",
            )
        reach = (windows[i] - 1) * dilations[i]
        low, high = sides[i]
        image = _spread(trace, image, axis, strides[i], (reach - low, reach - high + more[i]))
    reaches = [(w - 1) * d + 1 for w, d in zip(windows, dilations)]
    need_windows_fit(trace, image, at.spatial, reaches, "conv_transpose")
    moves = tuple([(i, j, 1, -d) for i, j, d in zip(at.spatial, window_axes, dilations)])
    if number > 1:
        weights = _exchanged_groups(trace, weights, (inner, outputs), number)
    made = _convolved(trace, image, weights, at, (inner, outputs), moves, number)
    return _with_bias(made, bias, at)


# -- operands


def _operands(trace: Trace, x: Any, weight: Any) -> tuple[Value, Value]:
    x, weight = read(x), read(weight)
    dtype = common_dtype(x, weight)
    return trace.cast(value_of(x), dtype), trace.cast(value_of(weight), dtype)


def _need_rank(weights: Value, rank: int, function: str) -> None:
    if weights.tensor.rank != rank:
        raise fail(
            "TM208",
            f"{function}: an image of rank {rank} needs weights of rank {rank}, got "
            f"{weights.type!r}",
        )


def _need_channels(trace: Trace, groups: int, channels: Size, each: Size, outputs: Size) -> None:
    if not trace.sizes.divides(groups, outputs, "groups share out the outputs"):
        now = dim_text(trace.sizes.hint(outputs))
        raise fail("TM256", f"conv: {groups} groups cannot share out {now} outputs")
    if not trace.sizes.equal(channels, each * groups, "weights fit the channels of an image"):
        now = dim_text(trace.sizes.hint(channels))
        wanted = dim_text(trace.sizes.hint(each))
        text = f" in each of {groups} groups" if groups > 1 else ""
        raise fail(
            "TM209" if groups == 1 else "TM256",
            f"conv: the image has {now} channels, the weights take {wanted}{text}",
            hint="a layout with channels last is layout='NHWC'",
        )


def _need_transposed_channels(
    trace: Trace, groups: int, channels: Size, weights: Value, inner: int
) -> None:
    taken = weights.tensor.shape[inner]
    if not trace.sizes.equal(channels, taken, "weights fit the channels of an image"):
        now, wanted = (dim_text(trace.sizes.hint(size)) for size in (channels, taken))
        raise fail(
            "TM209", f"conv_transpose: the image has {now} channels, the weights take {wanted}"
        )
    if not trace.sizes.divides(groups, taken, "groups share out the channels"):
        now = dim_text(trace.sizes.hint(taken))
        raise fail("TM256", f"conv_transpose: {groups} groups cannot share out {now} channels")


# -- the sums


def _convolved(
    trace: Trace,
    image: Value,
    weights: Value,
    at: Layout,
    own: tuple[int, int],
    moves: tuple[tuple[int, int, int, int], ...],
    groups: int,
) -> Value:
    """The op over checked operands, its result in the layout of the image.

    own: the weights' axes of summed channels and of outputs.
    """
    inner, outputs = own
    if groups == 1:
        made: Value = trace.emit(
            "convolve", image, weights, axes=((at.channels, inner),), batch=(), windows=moves
        )
        return _laid_out(trace, made, at)
    image = _split_axis(trace, image, at.channels, groups)
    weights = _split_axis(trace, weights, outputs, groups)
    a, b = at.channels, outputs
    moved = tuple([(i + (i > a), j + (j > b), s, d) for i, j, s, d in moves])
    made = trace.emit(
        "convolve", image, weights,
        axes=((a + 1, inner + (inner > b)),), batch=((a, b),), windows=moved,
    )  # fmt: skip
    # [groups, batch, outputs, *places] -> groups beside outputs
    made = transpose(trace, made, (1, 0, *range(2, made.tensor.rank)))
    shape = made.tensor.shape
    made = reshape(trace, made, (shape[0], shape[1] * shape[2], *shape[3:]))
    return _laid_out(trace, made, at)


def _laid_out(trace: Trace, made: Value, at: Layout) -> Value:
    """[batch, outputs, *places] in the layout."""
    if not at.last:
        return made
    rank = made.tensor.rank
    return transpose(trace, made, (0, *range(2, rank), 1))


def _split_axis(trace: Trace, value: Value, axis: int, groups: int) -> Value:
    shape = value.tensor.shape
    each = trace.sizes.normal(floor_divide(shape[axis], groups))
    return reshape(trace, value, (*shape[:axis], groups, each, *shape[axis + 1 :]))


def _exchanged_groups(trace: Trace, value: Value, own: tuple[int, int], groups: int) -> Value:
    """Weights whose summed channels hold the groups, with the groups in the outputs instead."""
    inner, outputs = own
    split = _split_axis(trace, value, inner, groups)
    out_at = outputs + (outputs > inner)
    order = [i for i in range(split.tensor.rank) if i != inner]
    order.insert(order.index(out_at), inner)
    moved = transpose(trace, split, order)
    place = order.index(inner)
    shape = moved.tensor.shape
    return reshape(trace, moved, (
        *shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :]
    ))  # fmt: skip


def _spread(trace: Trace, value: Value, axis: int, stride: int, sides: tuple[Size, Size]) -> Value:
    """Elements `stride` apart along an axis, with zeros around them; negative sides cut off."""
    shape = value.tensor.shape
    extent = (shape[axis] - 1) * stride + 1
    if not trace.sizes.at_least(shape[axis], 1, "a transposed convolution has an image"):
        raise fail("TM207", f"conv_transpose: axis {axis} of the image is empty")
    low, high = (side if trace.sizes.at_least(side, 0, "padding") else 0 for side in sides)
    here = [i == axis for i in range(len(shape))]
    whole = tuple([low + extent + high if it else n for it, n in zip(here, shape)])
    base = trace.emit("broadcast_to", trace.literal(0, value.tensor.dtype), shape=whole)
    made: Value = trace.emit(
        "update_slice", base, value,
        start=tuple([low if it else 0 for it in here]),
        step=tuple([stride if it else 1 for it in here]),
    )  # fmt: skip
    if low == sides[0] and high == sides[1]:
        return made
    cut = (low - sides[0], high - sides[1])
    left = trace.sizes.normal(whole[axis] - cut[0] - cut[1])
    return trace.emit(  # type: ignore[no-any-return]
        "slice", made,
        start=tuple([cut[0] if it else 0 for it in here]),
        size=tuple([left if it else n for it, n in zip(here, whole)]),
        step=(1,) * len(shape),
    )  # fmt: skip


def _with_bias(made: Value, bias: Any, at: Layout) -> Any:
    y: Any = fresh(running(), made)
    if bias is None:
        return y
    value = value_of(read(bias))
    outputs = made.tensor.shape[at.channels]
    if value.tensor.rank != 1 or not running().sizes.equal(
        value.tensor.shape[0], outputs, "a bias has one number per output"
    ):
        raise fail("TM209", f"a bias needs one number for each output, got {value.type!r}")
    shape = [outputs if i == at.channels else 1 for i in range(made.tensor.rank)]
    return y + fresh(running(), reshape(running(), value, shape))
