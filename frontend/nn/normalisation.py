"""Normalisation of images over batches, groups of channels, and neighbouring channels.

Invariants: no state: what a layer remembers (running means) is the caller's to keep.
Not here: `layer_norm`, which knows no channels (functions.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lifted import floating_dtype, lifted, read
from ..numpy.operands import value_of
from ..numpy.words import slid
from ..tracing.state import fail, running
from ..tracing.tensor import fresh
from .windows import channels_of, padded, per_axis


@lifted
def batch_statistics(x: Any, *, layout: str | None = None) -> tuple[Any, Any]:
    """Mean and variance of each channel over the batch and all places."""
    x = read(x)
    axes = _all_but(x, channels_of(layout, np.ndim(x), "batch_statistics"))
    mean = np.mean(x, axis=axes, keepdims=True)
    centred = x - mean
    variance = np.mean(centred * centred, axis=axes)
    return np.reshape(mean, np.shape(variance)), variance


@lifted
def batch_norm(
    x: Any,
    mean: Any,
    variance: Any,
    scale: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    layout: str | None = None,
) -> Any:
    """x less `mean`, divided by the root of `variance`, channel by channel; then scaled, shifted.

    mean, variance: those of this batch (`batch_statistics`) while training, remembered ones
    afterwards. layout: ``NCHW`` and its like, or ``NHWC``; also for arrays of rank 2.
    """
    x = read(x)
    channels = channels_of(layout, np.ndim(x), "batch_norm")
    factor = 1 / np.sqrt(read(variance) + eps)
    if scale is not None:
        factor = factor * read(scale)
    y = (x - _per_channel(mean, x, channels)) * _per_channel(factor, x, channels)
    return y if bias is None else y + _per_channel(bias, x, channels)


@lifted
def group_norm(
    x: Any,
    groups: Any,
    scale: Any = None,
    bias: Any = None,
    *,
    eps: float = 1e-5,
    layout: str | None = None,
) -> Any:
    """Each sample's channels in `groups`, every group less its mean, by its standard deviation.

    One group normalises each sample, as many groups as channels each channel of it. scale, bias:
    one number per channel.
    """
    x = read(x)
    channels = channels_of(layout, np.ndim(x), "group_norm")
    (number,) = per_axis(groups, 1, "groups", "group_norm")
    shape = np.shape(x)
    count = shape[channels]
    if count % number != 0:
        raise fail("TM256", f"group_norm: {number} groups cannot share out {count} channels")
    split = (*shape[:channels], number, count // number, *shape[channels + 1 :])
    parts = np.reshape(x, split)
    axes = tuple([i for i in range(1, len(split)) if i != channels])
    centred = parts - np.mean(parts, axis=axes, keepdims=True)
    variance = np.mean(centred * centred, axis=axes, keepdims=True)
    y = np.reshape(centred / np.sqrt(variance + eps), shape)
    y = y if scale is None else y * _per_channel(scale, x, channels)
    return y if bias is None else y + _per_channel(bias, x, channels)


@lifted
def local_response_norm(
    x: Any,
    size: Any,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    k: float = 1.0,
    layout: str | None = None,
) -> Any:
    """``x / (k + alpha * m) ** beta``, m the mean of x squared over `size` neighbouring channels.

    Channels that do not exist count as zeros.
    """
    trace = running()
    x = read(x)
    channels = channels_of(layout, np.ndim(x), "local_response_norm")
    (window,) = per_axis(size, 1, "size", "local_response_norm")
    squares = trace.cast(value_of(x * x), floating_dtype(x))
    sides = (window // 2, (window - 1) // 2)
    squares = padded(trace, squares, (channels,), (sides,), 0)
    seen = slid(trace, squares, channels, window, 1, 1)
    total: Any = fresh(trace, trace.emit("sum", seen, axes=(seen.tensor.rank - 1,)))
    return x / (k + (alpha / window) * total) ** beta


def _all_but(x: Any, channels: int) -> tuple[int, ...]:
    return tuple([axis for axis in range(np.ndim(x)) if axis != channels])


def _per_channel(item: Any, x: Any, channels: int) -> Any:
    """One number per channel, so that it broadcasts to `x`."""
    values = read(item)
    if np.ndim(values) != 1:
        raise fail("TM208", f"needs one number per channel, got an array of rank {np.ndim(values)}")
    return np.reshape(values, [-1 if i == channels else 1 for i in range(np.ndim(x))])
