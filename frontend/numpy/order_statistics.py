"""What stands where in a sorted row: median, percentile, quantile.

Invariants: NumPy's steps in NumPy's dtypes: indexes, weights and interpolation, so results are its
bits. A row with a NaN gives it.
Not here: sorting (sorting.py), what passes over NaN (nan_order.py); quantiles with weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracemill.compiler.dims import Size, product
from tracemill.compiler.ir.graph import Value
from tracemill.compiler.records import dataclass
from tracemill.compiler.types import BOOL, I64

from ..tracing.concrete import require
from ..tracing.number import weak_kind
from ..tracing.state import Trace, fail, running
from ..tracing.tensor import fresh, result
from .axes import all_axes, kept_shape
from .operands import value_of
from .sorting import sorted_along, take_places
from .statistics import mean
from .ufuncs import deliver
from .words import reshape, slice_axis, transpose

Shape = tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rows in order along the last axis. lengths: how many elements of each count, an i64 value;
    None where all do."""

    rows: Value
    lengths: Value | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A call of a quantile. parts: from 0 to 1; weak: they are one Python number."""

    value: Value
    parts: Value
    weak: bool
    method: str
    name: str

    def of(self, trace: Trace, ordered: Ordered) -> Value:
        """The quantiles of each row, their axes first."""
        return _METHODS[self.method](trace, ordered, self.parts, self.weak)


def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Any:
    """np.median"""
    trace = running()
    rows, kept = rows_along(trace, value_of(a), axis)
    shape = rows.tensor.shape
    count, last = shape[-1], len(shape) - 1
    if not trace.sizes.at_least(count, 1, "a median is of some elements"):
        made = mean(fresh(trace, rows), axis=-1).value
    else:
        ordered = sorted_along(trace, rows, last)
        made = middle(trace, ordered, count)
        made = _with_nan(trace, made, ordered)
    made = reshape(trace, made, kept if keepdims else shape[:-1])
    return deliver(trace, made, out, True, "unsafe", "median")


def middle(trace: Trace, ordered: Value, count: Size) -> Value:
    """The middle element of each row, or the mean of the two."""
    last = ordered.tensor.rank - 1
    high = slice_axis(trace, ordered, last, count // 2, 1)
    if isinstance(count, int) and count % 2:
        return _mean(trace, high)
    low = slice_axis(trace, ordered, last, (count - 1) // 2, 1)
    pair = _mean(trace, trace.emit("concatenate", low, high, axis=last))
    if isinstance(count, int):
        return pair
    odd = trace.emit("equal", trace.size_value(count % 2), trace.literal(1, I64))
    made: Value = trace.emit("select", odd, _mean(trace, high), pair)
    return made


def _mean(trace: Trace, rows: Value) -> Value:
    made: Value = mean(fresh(trace, rows), axis=-1).value
    return made


def _with_nan(trace: Trace, made: Value, ordered: Value) -> Value:
    """The NaN of a row that has one. It is the last element there."""
    dtype = ordered.tensor.dtype
    if dtype.kind not in "fc":
        return made
    count, last = ordered.tensor.shape[-1], ordered.tensor.rank - 1
    end = reshape(trace, slice_axis(trace, ordered, last, count - 1, 1), ordered.tensor.shape[:-1])
    lead = made.tensor.rank - end.tensor.rank
    end = reshape(trace, end, (*(1,) * lead, *end.tensor.shape))
    found: Value = trace.emit(
        "select", trace.emit("isnan", end), trace.cast(end, made.tensor.dtype), made
    )
    return found


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """np.percentile"""
    asked = asked_percentiles(a, q, method, weights)
    return _quantile(asked, axis, out, keepdims)


def asked_percentiles(a: Any, q: Any, method: str, weights: Any) -> Asked:
    """What a call of np.percentile asks for."""
    share: Any = np.true_divide(fresh(running(), value_of(q)), 100)
    return _asked(a, share.value, _is_weak(q), method, weights, "Percentiles", 100)


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> Any:
    """np.quantile"""
    return _quantile(asked_quantiles(a, q, method, weights), axis, out, keepdims)


def asked_quantiles(a: Any, q: Any, method: str, weights: Any) -> Asked:
    """What a call of np.quantile asks for."""
    trace, parts = running(), value_of(q)
    if parts.tensor.dtype is BOOL:  # NumPy multiplies it by integers first
        parts = trace.cast(parts, I64)
    return _asked(a, parts, _is_weak(q), method, weights, "Quantiles", 1)


def _is_weak(q: Any) -> bool:
    """Whether the quantile asked for is one int or float of Python, known or traced."""
    return weak_kind(q) in (int, float)


def _asked(
    a: Any, parts: Value, weak: bool, method: str, weights: Any, what: str, most: int
) -> Asked:
    trace = running()
    value = value_of(a)
    if value.tensor.dtype.is_complex:
        raise TypeError("a must be an array of real numbers")
    name = what.lower()[:-1]
    if weights is not None:
        raise fail("TM111", f"np.{name} with weights= is not supported")
    if method not in _METHODS:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {list(_METHODS)}")
    if parts.tensor.rank > 2:
        raise ValueError("q must be a scalar or 1d")
    _check_range(trace, parts, what, most)
    return Asked(value, parts, weak, method, name)


def _quantile(asked: Asked, axis: Any, out: Any, keepdims: Any) -> Any:
    trace = running()
    rows, kept = rows_along(trace, asked.value, axis)
    count, last = rows.tensor.shape[-1], rows.tensor.rank - 1
    if not trace.sizes.at_least(count, 1, "a quantile is of some elements"):
        raise IndexError("cannot take a quantile of an empty array")
    ordered = Ordered(sorted_along(trace, rows, last))
    made = _with_nan(trace, asked.of(trace, ordered), ordered.rows)
    if keepdims:
        made = reshape(trace, made, (*asked.parts.tensor.shape, *kept))
    return deliver(trace, made, out, True, "unsafe", asked.name)


def _check_range(trace: Trace, parts: Value, what: str, most: int) -> None:
    one, zero = (trace.literal(n, parts.tensor.dtype) for n in (1, 0))
    inside = trace.emit(
        "logical_and",
        trace.emit("greater_equal", parts, zero), trace.emit("less_equal", parts, one),
    )  # fmt: skip
    every = trace.emit("all", inside, axes=tuple(range(parts.tensor.rank)))
    require(trace, every, "TM258", f"{what} must be in the range [0, {most}]")


def rows_along(trace: Trace, value: Value, axis: Any) -> tuple[Value, Shape]:
    """The axes that are looked through as one row at the end; the shape that keepdims leaves."""
    shape = value.tensor.shape
    axes = all_axes(axis, len(shape))
    rest = [i for i in range(len(shape)) if i not in axes]
    kept = kept_shape(shape, axes)
    value = transpose(trace, value, [*rest, *axes])
    row = product(tuple(shape[i] for i in axes))
    return reshape(trace, value, (*[shape[i] for i in rest], row)), kept


# -- where quantiles are


def _taken(trace: Trace, ordered: Ordered, index: Value) -> Value:
    """Elements of each row at the places `index`, whose axes come first."""
    rows = ordered.rows
    last = rows.tensor.rank - 1
    if ordered.lengths is None:
        many = index.tensor.rank
        made: Value = trace.emit("gather", rows, index, axes=(last,))[0]
        return transpose(trace, made, [*range(last, last + many), *range(last)])
    many = index.tensor.rank - last
    back = [*range(many, many + last), *range(many)]  # as take_places has them: in their rows
    wanted = transpose(trace, _from_front(trace, index, ordered.lengths), back)
    shape = wanted.tensor.shape
    flat = reshape(trace, wanted, (*shape[:last], product(shape[last:])))
    made = reshape(trace, take_places(trace, rows, flat), shape)
    return transpose(trace, made, [*range(last, last + many), *range(last)])


def _from_front(trace: Trace, index: Value, lengths: Value) -> Value:
    """Places counted from the end of what counts, counted from the front."""
    negative = trace.emit("less", index, trace.literal(0, I64))
    made: Value = trace.emit("select", negative, trace.emit("add", index, lengths), index)
    return made


def _at(index: Callable[[Any, Any], Any]) -> Callable[..., Value]:
    """A method that takes the element at an index."""

    def taken(trace: Trace, ordered: Ordered, parts: Value, weak: bool) -> Value:
        size, q = _size_and_parts(trace, ordered, parts)
        at = index(size, q)
        at = trace.cast(at.value, I64)
        at = trace.emit("maximum", at, trace.literal(0, I64))
        return _taken(trace, ordered, at)

    return taken


def _between(
    virtual: Callable[[Any, Any], Any], weight: Callable[[Any, Any], Any]
) -> Callable[..., Value]:
    """A method that interpolates between two elements."""

    def taken(trace: Trace, ordered: Ordered, parts: Value, weak: bool) -> Value:
        size, q = _size_and_parts(trace, ordered, parts)
        at = virtual(size, q)
        if at.dtype.kind in "iu":
            if virtual is _linear:
                return _taken(trace, ordered, trace.cast(at.value, I64))
            at = at.astype(np.float64)
        top = trace.emit("sub", _counts(trace, ordered), trace.literal(1, I64))
        top = result(trace, trace.cast(top, at.value.tensor.dtype))
        above = np.logical_or(at >= top, np.isnan(at))
        below = at < 0
        first = np.floor(at)
        low: Any = np.where(above, -1, np.where(below, 0, first)).astype(np.int64)
        high: Any = np.where(above, -1, np.where(below, 0, first + 1)).astype(np.int64)
        gamma = weight(at - low, at).astype(at.dtype)
        a, b = (fresh(trace, _taken(trace, ordered, i.value)) for i in (low, high))
        return _lerp(trace, a, b, gamma, weak)

    return taken


def _lerp(trace: Trace, a: Any, b: Any, gamma: Any, weak: bool) -> Value:
    """Between a and b; a Python number as weight takes the dtype of the elements."""
    late = gamma >= 0.5
    rest = 1 - gamma
    if weak:
        dtype = a.dtype if a.dtype.kind == "f" or a.dtype.kind == "V" else np.dtype(np.float64)
        gamma, rest = gamma.astype(dtype), rest.astype(dtype)
    extra = (1,) * (a.ndim - gamma.ndim)
    gamma, rest, late = (
        fresh(trace, reshape(trace, x.value, (*x.value.tensor.shape, *extra)))
        for x in (gamma, rest, late)
    )
    apart = b - a
    made: Value = np.where(late, b - apart * rest, a + apart * gamma).value
    return made


def _size_and_parts(trace: Trace, ordered: Ordered, parts: Value) -> tuple[Any, Any]:
    """How many elements a row has, as a number of the dtype of the quantiles; these."""
    counts = _counts(trace, ordered)
    shape = (*parts.tensor.shape, *(1,) * counts.tensor.rank)
    size = trace.cast(counts, parts.tensor.dtype)
    return result(trace, size), fresh(trace, reshape(trace, parts, shape))


def _counts(trace: Trace, ordered: Ordered) -> Value:
    """How many elements each row has, or all of them."""
    if ordered.lengths is not None:
        return ordered.lengths
    return trace.size_value(ordered.rows.tensor.shape[-1])


def _linear(n: Any, q: Any) -> Any:
    return (n - 1) * q


def _virtual(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _to_boundary(index: Any, stays: Any) -> Any:
    first = np.floor(index)
    return np.where(stays(index - first, index), first, first + 1)


def _same(gamma: Any, at: Any) -> Any:
    return gamma


_METHODS: dict[str, Callable[..., Value]] = {
    "inverted_cdf": _at(lambda n, q: _to_boundary(n * q - 1, lambda g, _: g == 0)),
    "averaged_inverted_cdf": _between(
        lambda n, q: n * q - 1, lambda g, _: np.where(g == 0, 0.5, 1.0)
    ),
    "closest_observation": _at(
        lambda n, q: _to_boundary(
            n * q - 1 - 0.5, lambda g, i: np.logical_and(g == 0, np.floor(i) % 2 == 1)
        )
    ),
    "interpolated_inverted_cdf": _between(_virtual(0, 1), _same),
    "hazen": _between(_virtual(0.5, 0.5), _same),
    "weibull": _between(_virtual(0, 0), _same),
    "linear": _between(_linear, _same),
    "median_unbiased": _between(_virtual(1 / 3.0, 1 / 3.0), _same),
    "normal_unbiased": _between(_virtual(3 / 8.0, 3 / 8.0), _same),
    "lower": _at(lambda n, q: np.floor(_linear(n, q))),
    "higher": _at(lambda n, q: np.ceil(_linear(n, q))),
    "midpoint": _between(
        lambda n, q: 0.5 * (np.floor(_linear(n, q)) + np.ceil(_linear(n, q))),
        lambda _, at: np.where(at % 1 == 0, 0.0, 0.5),
    ),
    "nearest": _at(lambda n, q: np.rint(_linear(n, q))),
}

FUNCTIONS = {np.median: median, np.percentile: percentile, np.quantile: quantile}
