"""Norms and powers of matrices: np.linalg.norm, vector_norm, matrix_norm, matrix_power.

Invariants: NumPy's steps and dtypes.
Not here: products (linear.py), singular values and inverses (decompositions.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tracemill.compiler.dims import product

from ..tracing.state import running
from ..tracing.tensor import fresh, result
from .axes import kept_shape, listed_axes, one_axis
from .creation import asarray, copy, eye
from .operands import value_of
from .words import reshape

_Fold = Callable[..., Any]


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """np.linalg.norm"""
    x = _inexact(x)
    rank = x.ndim
    if axis is None and (ord is None or (ord in ("f", "fro") and rank == 2)):
        return _root_of_squares(x, tuple(range(rank)), keepdims)
    if axis is None:
        axes = tuple(range(rank))
    elif isinstance(axis, tuple):
        axes = listed_axes(axis, rank)
    else:
        axes = (one_axis(_integer(axis), rank),)
    if len(axes) == 1:
        return _of_vectors(x, ord, axes, keepdims)
    if len(axes) == 2:
        return _of_matrices(x, ord, axes, keepdims)
    raise ValueError("Improper number of dimensions to norm.")


def _inexact(x: Any) -> Any:
    """The array in a dtype that has roots; to NumPy bfloat16 is none."""
    array = asarray(x)
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


def _integer(axis: Any) -> int:
    try:
        return int(axis)
    except (TypeError, ValueError):
        raise TypeError("'axis' must be None, an integer or a tuple of integers") from None


def _root_of_squares(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if np.iscomplexobj(x):
        squares = np.square(np.real(x)) + np.square(np.imag(x))
    else:
        squares = np.square(x)
    return np.sqrt(np.sum(squares, axis=axes, keepdims=keepdims))


def _of_vectors(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord is None or ord == 2:
        return _root_of_squares(x, axes, keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    sizes = np.abs(x)
    if ord == np.inf:
        return np.max(sizes, axis=axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return np.min(sizes, axis=axes, keepdims=keepdims)
    if ord == 0:
        return np.sum((x != 0).astype(sizes.dtype), axis=axes, keepdims=keepdims)
    if ord == 1:
        return np.sum(sizes, axis=axes, keepdims=keepdims)
    total = np.sum(np.power(sizes, ord).astype(sizes.dtype), axis=axes, keepdims=keepdims)
    return np.power(total, np.reciprocal(ord, dtype=total.dtype)).astype(total.dtype)


def _largest(sums: Any, axis: int) -> Any:
    return np.max(sums, axis=axis, keepdims=True, initial=0)


def _smallest(sums: Any, axis: int) -> Any:
    return np.min(sums, axis=axis, keepdims=True)


# order -> which of the two axes is added up, what is taken of the sums
_SUMS: Mapping[Any, tuple[int, _Fold]] = {
    1: (0, _largest), -1: (0, _smallest), np.inf: (1, _largest), -np.inf: (1, _smallest),
}  # fmt: skip
# order -> what is taken of the singular values
_SINGULAR: Mapping[Any, _Fold] = {
    2: lambda values: np.max(values, axis=-1, initial=0),
    -2: lambda values: np.min(values, axis=-1),
    "nuc": lambda values: np.sum(values, axis=-1, initial=0),
}


def _of_matrices(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord in (None, "f", "fro"):
        return _root_of_squares(x, axes, keepdims)
    if ord in _SINGULAR:
        values = np.linalg.svdvals(np.moveaxis(x, axes, (-2, -1)))
        made = np.expand_dims(_SINGULAR[ord](values), tuple(sorted(axes)))
    elif ord in _SUMS:
        added, fold = _SUMS[ord]
        made = fold(np.sum(np.abs(x), axis=axes[added], keepdims=True), axes[1 - added])
    else:
        raise ValueError("Invalid norm order for matrices.")
    return made if keepdims else np.squeeze(made, axes)[()]


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """np.linalg.vector_norm: of everything as one vector, or along any axes as one."""
    trace = running()
    array = asarray(x)
    shape = value_of(array).tensor.shape
    axes = tuple(range(len(shape))) if axis is None else listed_axes(axis, len(shape))
    rest = [i for i in range(len(shape)) if i not in axes]
    row = value_of(np.transpose(array, (*axes, *rest)))
    flat = reshape(trace, row, (product(tuple(shape[i] for i in axes)), *[shape[i] for i in rest]))
    made = norm(fresh(trace, flat), ord, 0)
    if keepdims:
        return result(trace, reshape(trace, value_of(made), kept_shape(shape, axes)))
    return made


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """np.linalg.matrix_norm"""
    return norm(asarray(x), ord, (-2, -1), keepdims)


def matrix_power(a: Any, n: Any) -> Any:
    """np.linalg.matrix_power by squaring."""
    array = asarray(a)
    shape = value_of(array).tensor.shape
    if len(shape) < 2:
        raise np.linalg.LinAlgError(
            f"{len(shape)}-dimensional array given. Array must be at least two-dimensional"
        )
    if not running().sizes.equal(shape[-1], shape[-2], "a power is of a square matrix"):
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    try:
        left = operator.index(n)
    except TypeError:
        raise TypeError("exponent must be an integer") from None
    if left < 0:
        array, left = np.linalg.inv(array), -left
    if left == 0:
        return copy(np.broadcast_to(eye(array.shape[-1], dtype=array.dtype), np.shape(array)))
    if left == 3:
        return (array @ array) @ array
    power, made = array, None
    while True:
        left, odd = divmod(left, 2)
        if odd:
            made = power if made is None else made @ power
        if not left:
            return made
        power = power @ power


FUNCTIONS: dict[Any, Any] = {
    np.linalg.norm: norm, np.linalg.vector_norm: vector_norm,
    np.linalg.matrix_norm: matrix_norm, np.linalg.matrix_power: matrix_power,
}  # fmt: skip
