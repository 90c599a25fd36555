"""Ops with windows as plain loops over elements: what their references are compared with."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def filled(shape: tuple[int, ...], like: Array, element: Callable[..., Any]) -> Array:
    """The array of `shape` whose element at each position is ``element(*position)``."""
    made = np.zeros(shape, like.dtype)
    for place in positions(shape):
        made[place] = element(*place)
    return made


def positions(shape: tuple[int, ...]) -> Any:
    return itertools.product(*map(range, shape))


def loop_slide(x: Array, axes: Any, dilation: int, size: int, stride: int) -> Array:
    axis, along = axes
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])

    def element(*at: int) -> Any:
        seen = at[axis] * stride + at[along] * dilation
        return x[(*at[:axis], seen, *at[axis + 1 :])]

    return filled(shape, x, element)


def loop_unslide(x: Array, fill: Array, axes: Any, dilation: int, size: int, stride: int) -> Array:
    axis, along = axes
    made = filled((*x.shape[:axis], size, *x.shape[axis + 1 :]), x, lambda *at: fill)
    for at in positions(x.shape):
        seen = at[axis] * stride + at[along] * dilation
        made[(*at[:axis], seen, *at[axis + 1 :])] = x[at]
    return made


def loop_convolve(a: Array, b: Array, axes: Any, batch: Any, windows: Any) -> Array:
    """One group, images [n, c, h], weights [o, c, u]."""
    ((_, _, stride, dilation),) = windows
    places = (a.shape[2] - (b.shape[2] - 1) * abs(dilation) - 1) // stride + 1

    def element(n: int, o: int, y: int) -> Any:
        total: Any = a.dtype.type(0)
        for c, u in positions(b.shape[1:]):
            seen = u * dilation if dilation > 0 else (u - b.shape[2] + 1) * dilation
            total = a.dtype.type(total + a[n, c, y * stride + seen] * b[o, c, u])
        return total

    return filled((a.shape[0], b.shape[0], places), a, element)
