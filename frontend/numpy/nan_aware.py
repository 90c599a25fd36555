"""Reductions that leave NaN out: nansum, nanmean, nanmax, ...

Each is the plain reduction over the elements that are not NaN: those are replaced by what does not
count, and the mean divides by how many are left.

Invariants: integers and bools have no NaN, so they take the plain reduction's way; a slice of
nothing but NaN gives NaN, as in NumPy, without its warning, and has no place of an extreme. NumPy
does not look for NaN in bfloat16, but for nanmax and nanmin.
Not here: the reductions (reductions.py, statistics.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracemill.compiler.types import BF16

from ..tracing.concrete import require
from ..tracing.state import fail, running
from .creation import asarray
from .operands import MISSING, value_of

_Handler = Callable[..., Any]


def _with(where: Any, **keywords: Any) -> dict[str, Any]:
    """The keywords that were given."""
    given = {name: item for name, item in keywords.items() if item is not MISSING}
    return given if where is MISSING else {**given, "where": where}


def _has_nan(a: Any) -> bool:
    return bool(value_of(a).tensor.dtype.numpy.kind in "fc")


def _replaced(a: Any, number: Any) -> tuple[Any, Any]:
    """The array with `number` for NaN, and where those are."""
    array = asarray(a)
    mask = np.isnan(array)
    return np.where(mask, array.dtype.type(number), array), mask


def _summing(function: _Handler, identity: int) -> _Handler:
    """nansum, nanprod: NaN counts as the identity."""

    def handler(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = MISSING,
        initial: Any = MISSING,
        where: Any = MISSING,
    ) -> Any:
        a = _replaced(a, identity)[0] if _has_nan(a) else asarray(a)
        keywords = _with(where, keepdims=keepdims, initial=initial)
        return function(a, axis=axis, dtype=dtype, out=out, **keywords)

    return handler


def _scanning(function: _Handler, identity: int) -> _Handler:
    """nancumsum, nancumprod"""

    def handler(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        a = _replaced(a, identity)[0] if _has_nan(a) else asarray(a)
        return function(a, axis=axis, dtype=dtype, out=out)

    return handler


def _extreme(function: _Handler, neutral: float) -> _Handler:
    """nanmax, nanmin: NaN only where there is nothing else."""

    def handler(
        a: Any,
        axis: Any = None,
        out: Any = None,
        keepdims: Any = MISSING,
        initial: Any = MISSING,
        where: Any = MISSING,
    ) -> Any:
        if not _has_nan(a) and value_of(a).tensor.dtype is not BF16:
            keywords = _with(where, keepdims=keepdims, initial=initial)
            return function(asarray(a), axis=axis, out=out, **keywords)
        _no_complex(a, function.__name__)
        filled, mask = _replaced(a, neutral)
        made = function(filled, axis=axis, **_with(where, keepdims=keepdims, initial=initial))
        nothing = np.all(mask, axis=axis, **_with(where, keepdims=keepdims))
        if initial is not MISSING:
            nothing = nothing & np.isnan(initial)
        return _delivered(np.where(nothing, made.dtype.type(np.nan), made), out)

    return handler


def _position(function: _Handler, neutral: float) -> _Handler:
    """nanargmax, nanargmin"""

    def handler(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = MISSING) -> Any:
        if _has_nan(a):
            _no_complex(a, function.__name__)
            a, mask = _replaced(a, neutral)
            trace = running()
            some = trace.emit("logical_not", value_of(np.all(mask, axis=axis)))
            axes = tuple(range(some.tensor.rank))
            every = trace.emit("all", some, axes=axes) if axes else some
            require(trace, every, "TM261", "All-NaN slice encountered")
        return function(a, axis=axis, out=out, **_with(MISSING, keepdims=keepdims))

    return handler


def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = MISSING,
    *,
    where: Any = MISSING,
) -> Any:
    """np.nanmean"""
    if not _has_nan(a):
        keywords = _with(where, keepdims=keepdims)
        return np.mean(asarray(a), axis=axis, dtype=dtype, out=out, **keywords)
    array, mask = _replaced(a, 0)
    keywords = _with(where, keepdims=keepdims)
    count = np.sum(~mask, axis=axis, dtype=np.intp, **keywords)
    total = np.sum(array, axis=axis, dtype=dtype, **keywords)
    return _delivered(_divided(total, count), out)


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = MISSING,
    *,
    where: Any = MISSING,
    mean: Any = MISSING,
    correction: Any = MISSING,
) -> Any:
    """np.nanvar: NumPy's two passes."""
    if correction is not MISSING:
        ddof = correction
    if not _has_nan(a):
        keywords = _with(where, keepdims=keepdims, mean=mean)
        return np.var(asarray(a), axis=axis, dtype=dtype, out=out, ddof=ddof, **keywords)
    array, mask = _replaced(a, 0)
    count = np.sum(~mask, axis=axis, dtype=np.intp, keepdims=True, **_with(where))
    middle = mean
    if mean is MISSING:
        total = np.sum(array, axis=axis, dtype=dtype, keepdims=True, **_with(where))
        middle = _divided(total, count)
    offset = np.where(mask, array.dtype.type(0), np.subtract(array, middle).astype(array.dtype))
    square = np.real(offset * np.conj(offset)) if offset.dtype.kind == "c" else offset * offset
    keywords = _with(where, keepdims=keepdims)
    spread = np.sum(square, axis=axis, dtype=dtype, **keywords)
    freedom = np.sum(~mask, axis=axis, dtype=np.intp, **keywords) - ddof
    made = _divided(spread, freedom)
    return _delivered(np.where(freedom <= 0, made.dtype.type(np.nan), made), out)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: Any = 0,
    keepdims: Any = MISSING,
    *,
    where: Any = MISSING,
    mean: Any = MISSING,
    correction: Any = MISSING,
) -> Any:
    """np.nanstd"""
    spread = nanvar(
        a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
    )
    return _delivered(np.sqrt(spread), out)


def _divided(total: Any, count: Any) -> Any:
    """total / count in the dtype of the total."""
    return np.divide(total, count).astype(total.dtype)


def _delivered(made: Any, out: Any) -> Any:
    if out is None:
        return made[()] if made.ndim == 0 else made
    out[...] = made
    return out


def _no_complex(a: Any, name: str) -> None:
    if value_of(a).tensor.dtype.is_complex:
        raise fail("TM111", f"np.nan{name} of complex arrays is not supported")


FUNCTIONS: dict[Any, Any] = {
    np.nansum: _summing(np.sum, 0), np.nanprod: _summing(np.prod, 1),
    np.nancumsum: _scanning(np.cumsum, 0), np.nancumprod: _scanning(np.cumprod, 1),
    np.nanmax: _extreme(np.max, -np.inf), np.nanmin: _extreme(np.min, np.inf),
    np.nanargmax: _position(np.argmax, -np.inf), np.nanargmin: _position(np.argmin, np.inf),
    np.nanmean: nanmean, np.nanvar: nanvar, np.nanstd: nanstd,
}  # fmt: skip
