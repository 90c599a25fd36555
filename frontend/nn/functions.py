"""The functions of `tracemill.nn`, in NumPy.

Not here: anything that keeps state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..differentiation import stop_gradient
from ..lifted import counted, floating_dtype, lifted, read
from ..numpy.operands import value_of
from ..special import expit, ndtr
from ..tracing.state import fail, running


@lifted
def dense(x: Any, weight: Any, bias: Any = None) -> Any:
    """``x @ weight + bias``; weight is [inputs, outputs]."""
    y = read(x) @ read(weight)
    return y if bias is None else y + read(bias)


@lifted
def relu(x: Any) -> Any:
    """x where it is positive, else 0; the gradient at 0 is 0."""
    return np.maximum(0, read(x))


@lifted
def silu(x: Any) -> Any:
    """``x * expit(x)``."""
    x = read(x)
    return x * expit(x)


@lifted
def gelu(x: Any, approximate: bool = False) -> Any:
    """``x * ndtr(x)``; `approximate` takes the tanh formula for ndtr, as older models do."""
    x = read(x)
    if not approximate:
        return x * ndtr(x)
    return 0.5 * x * (1.0 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


@lifted
def softmax(x: Any, axis: Any = -1) -> Any:
    """exp(x) divided by its sum over `axis`."""
    x = read(x)
    weights = np.exp(x - stop_gradient(np.max(x, axis=axis, keepdims=True)))
    return weights / np.sum(weights, axis=axis, keepdims=True)


@lifted
def log_softmax(x: Any, axis: Any = -1) -> Any:
    """log(softmax(x)) without underflow."""
    x = read(x)
    below = x - stop_gradient(np.max(x, axis=axis, keepdims=True))
    return below - np.log(np.sum(np.exp(below), axis=axis, keepdims=True))


@lifted
def cross_entropy(logits: Any, target: Any, reduction: str = "mean") -> Any:
    """The negative log likelihood of `target` under softmax(logits) over the last axis.

    target: class numbers, of the shape of `logits` without its last axis; or probabilities, of
    its shape. reduction: ``mean``, ``sum`` or ``none`` (one loss for each row).
    A class number that is none of the classes fails the call with IndexError.
    """
    logits, target = read(logits), read(target)
    if value_of(target).tensor.dtype.is_float:
        losses = -np.sum(target * log_softmax(logits), axis=-1)
    else:
        chosen = np.equal(np.expand_dims(target, -1), _classes(logits, target))
        losses = -np.sum(np.where(chosen, log_softmax(logits), 0), axis=-1)
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise fail("TM203", f"reduction is 'mean', 'sum' or 'none', got {reduction!r}")
    return np.mean(losses) if reduction == "mean" else np.sum(losses)


@lifted
def layer_norm(
    x: Any, scale: Any = None, bias: Any = None, axis: Any = -1, eps: float = 1e-5
) -> Any:
    """x less its mean, divided by its standard deviation over `axis`, then scaled and shifted."""
    x = read(x)
    centred = x - np.mean(x, axis=axis, keepdims=True)
    variance = np.mean(centred * centred, axis=axis, keepdims=True)
    y = centred / np.sqrt(variance + eps)
    y = y if scale is None else y * read(scale)
    return y if bias is None else y + read(bias)


def dropout(x: Any, rate: Any, generator: Any, training: bool = True) -> Any:
    """`x` with each element zeroed with probability `rate`, the others divided by 1 - rate.

    generator: a `tracemill.random.Generator`; each call draws anew. Not `training`: `x` itself.
    """
    if isinstance(rate, int | float) and not hasattr(rate, "trace") and not 0 <= rate < 1:
        raise fail("TM203", f"rate is at least 0 and below 1, got {rate}")
    x = read(x)
    if not training:
        return x
    return _dropped(x, rate, generator.random(np.shape(x), np.float32))


@lifted
def _dropped(x: Any, rate: Any, drawn: Any) -> Any:
    return np.where(drawn >= rate, x / (1 - rate), np.zeros_like(x))


def _classes(logits: Any, target: Any) -> Any:
    """0, 1, ... for the last axis of `logits`; checks that every target is one of them."""
    floating_dtype(logits)
    kind = target.dtype
    count = np.shape(logits)[-1]
    trace = running()
    fits = np.logical_and(np.greater_equal(target, 0), np.less(target, count))
    trace.emit("check", value_of(fits), code="TM230")
    return counted(count, kind)
