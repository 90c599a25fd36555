"""Functions of sampled data: convolve, correlate, gradient, trapezoid, polyval, cov, corrcoef.

Not here: sums, products and means (reductions.py, linear.py, statistics.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tracemill.compiler.types import BOOL, I64

from ..tracing.concrete import known
from ..tracing.state import fail, running
from ..tracing.tensor import fresh
from .axes import listed_axes
from .creation import asarray
from .operands import MISSING, common_dtype, value_of


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """np.convolve"""
    a, v = _vector(a, "a"), _vector(v, "v")
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    return _slid(a, v, mode)


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """np.correlate: the longer one is slid over, the result is turned round where they change."""
    a, v = _vector(a, "a"), _vector(v, "v")
    if np.iscomplexobj(v):
        v = np.conj(v)
    if v.shape[0] > a.shape[0]:
        return _slid(v, a[::-1], mode)[::-1]
    return _slid(a, v[::-1], mode)


def _vector(a: Any, name: str) -> Any:
    array = asarray(a)
    if array.ndim > 1:
        raise ValueError("object too deep for desired array")
    if array.ndim == 0:
        array = np.reshape(array, (1,))
    if array.shape[0] == 0:
        raise ValueError(f"{name} cannot be empty")
    return array


def _slid(a: Any, v: Any, mode: str) -> Any:
    """sum over j of v[j] * a[k - j], for the k that `mode` wants; a is not the shorter."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    found = common_dtype(a, v)
    a, v = a.astype(found.numpy), v.astype(found.numpy)
    long, short = a.shape[0], v.shape[0]
    count = {"full": long + short - 1, "same": long, "valid": long - short + 1}[mode]
    if mode != "valid":
        before = short - 1 if mode == "full" else short - 1 - (short - 1) // 2
        a = np.pad(a, (before, count + short - 1 - long - before))
    trace = running()
    image, window = value_of(a), value_of(v)
    if found is BOOL:  # and, or: a sum that is not zero
        image, window = trace.cast(image, I64), trace.cast(window, I64)
    windows = ((0, 0, 1, -1),)
    made = fresh(trace, trace.emit("convolve", image, window, axes=(), batch=(), windows=windows))
    return made.astype(bool) if found is BOOL else made


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """np.gradient: second-order differences inside, one-sided ones at the ends."""
    f = asarray(f)
    rank = f.ndim
    axes = tuple(range(rank)) if axis is None else listed_axes(axis, rank)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    steps = list(varargs) if varargs else [1.0] * len(axes)
    if len(steps) == 1 and np.ndim(steps[0]) == 0:
        steps = steps * len(axes)
    if len(steps) != len(axes):
        raise TypeError("invalid number of arguments")
    if any(np.ndim(step) > 1 for step in steps):
        raise ValueError("distances must be either scalars or 1d")
    dtype = f.dtype if f.dtype.kind in "fc" else np.dtype(np.float64)
    if f.dtype.kind in "iu":  # bools stay: they have no differences, which np.subtract says
        f = f.astype(np.float64)
    made = [_slope(f, place, step, edge_order).astype(dtype) for place, step in zip(axes, steps)]
    return made[0] if len(axes) == 1 else tuple(made)


def _slope(f: Any, axis: int, step: Any, order: int) -> Any:
    if f.shape[axis] < order + 1:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least "
            "(edge_order + 1) elements are required."
        )

    def at(start: Any, stop: Any) -> Any:
        return f[tuple([slice(start, stop) if i == axis else slice(None) for i in range(f.ndim)])]

    spaced = np.ndim(step) == 1
    if spaced:
        places = asarray(step)
        if places.dtype.kind in "iu":
            places = places.astype(np.float64)
        if places.shape[0] != f.shape[axis]:
            raise ValueError(
                "when 1d, distances must match the length of the corresponding dimension"
            )
        step = np.diff(places)
        like = [-1 if i == axis else 1 for i in range(f.ndim)]
        left, right = np.reshape(step[:-1], like), np.reshape(step[1:], like)
        inner = (
            -(right / (left * (left + right))) * at(None, -2)
            + ((right - left) / (left * right)) * at(1, -1)
            + (left / (right * (left + right))) * at(2, None)
        )
        first, last = step[0], step[-1]
    else:
        inner = (at(2, None) - at(None, -2)) / (2.0 * step)
        first = last = step
    if order == 1:
        begin, end = (at(1, 2) - at(0, 1)) / first, (at(-1, None) - at(-2, -1)) / last
    else:
        begin = _edge(at(0, 1), at(1, 2), at(2, 3), step if not spaced else (step[0], step[1]), 1)
        end = _edge(
            at(-1, None), at(-2, -1), at(-3, -2),
            step if not spaced else (step[-1], step[-2]), -1,
        )  # fmt: skip
    return np.concatenate([begin, inner, end], axis=axis)


def _edge(y0: Any, y1: Any, y2: Any, step: Any, sign: int) -> Any:
    """The slope of the parabola through three points, at the first of them."""
    if type(step) is not tuple:
        return sign * (-1.5 * y0 + 2.0 * y1 - 0.5 * y2) / step
    near, far = step
    a = -(2.0 * near + far) / (near * (near + far))
    b = (near + far) / (near * far)
    c = -near / (far * (near + far))
    return sign * (a * y0 + b * y1 + c * y2)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """np.trapezoid"""
    y = asarray(y)
    place = axis % y.ndim
    if x is None:
        step = dx
    else:
        x = asarray(x)
        if x.ndim == 1:
            step = np.reshape(np.diff(x), [-1 if i == place else 1 for i in range(y.ndim)])
        else:
            step = np.diff(x, axis=axis)
    front = tuple([slice(1, None) if i == place else slice(None) for i in range(y.ndim)])
    back = tuple([slice(None, -1) if i == place else slice(None) for i in range(y.ndim)])
    return np.sum(step * (y[front] + y[back]) / 2.0, axis=axis)


def polyval(p: Any, x: Any) -> Any:
    """np.polyval: Horner's rule, the highest power first."""
    p, x = asarray(p), asarray(x)
    if p.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    made = np.zeros_like(x)
    for coefficient in _coefficients(p):
        made = made * x + coefficient
    return made


def _coefficients(p: Any) -> list[Any]:
    """The elements of the first axis; as numbers where they are known."""
    found = known(running(), value_of(p))
    return [p[i] for i in range(_fixed(p))] if found is None else list(found)


def _fixed(array: Any) -> int:
    """The length as a number: it decides how many steps there are."""
    return int(array.shape[0])


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Any:
    """np.cov without weights."""
    if fweights is not None or aweights is not None:
        raise fail("TM111", "np.cov with weights is not supported")
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    m, y = asarray(m), None if y is None else asarray(y)
    if m.ndim > 2 or (y is not None and y.ndim > 2):
        raise ValueError("m has more than 2 dimensions")
    parts = [p for p in (m, y) if p is not None]
    work = np.result_type(*[value_of(p).tensor.dtype.numpy for p in parts], np.float64)
    rows = [np.atleast_2d(asarray(p, work if dtype is None else dtype)) for p in parts]
    if not rowvar:
        rows = [
            r if np.ndim(p) < 2 and i == 0 else r.T for i, (p, r) in enumerate(zip(parts, rows))
        ]
        if y is not None and np.ndim(y) < 2:
            rows[1] = np.atleast_2d(asarray(y, work if dtype is None else dtype))
    samples = rows[0] if len(rows) == 1 else np.concatenate(rows, axis=0)
    if samples.dtype.kind not in "fc":
        raise TypeError(f"np.cov computes in place, which {samples.dtype} cannot hold")
    less = ddof if ddof is not None else (0 if bias else 1)
    offset = samples - np.mean(samples, axis=1, keepdims=True)
    freedom = np.maximum(samples.shape[1] - less, 0)
    made = np.matmul(offset, np.conj(offset.T)) * np.true_divide(1, freedom)
    return np.squeeze(made).astype(samples.dtype)


def corrcoef(
    x: Any, y: Any = None, rowvar: bool = True, bias: Any = MISSING, ddof: Any = MISSING, *,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """np.corrcoef"""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    spread = np.sqrt(np.real(np.diag(c)))
    c = c / spread[:, None] / spread[None, :]
    if c.dtype.kind != "c":
        return np.clip(c, -1, 1)
    real, imag = np.clip(np.real(c), -1, 1), np.clip(np.imag(c), -1, 1)
    return real + 1j * imag


FUNCTIONS: dict[Any, Any] = {
    np.convolve: convolve, np.correlate: correlate, np.gradient: gradient,
    np.trapezoid: trapezoid, np.polyval: polyval, np.cov: cov, np.corrcoef: corrcoef,
}  # fmt: skip
