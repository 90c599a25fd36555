"""Row and column reductions, and what normalises rows with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..workload import Function, Workload, array_forms, between, named_sizes

MATRIX = named_sizes(rows=between(3000, 5000), columns=between(768, 1280))


def matrix(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """One float32 matrix."""
    return (rng.standard_normal((sizes["rows"], sizes["columns"])).astype(np.float32),)


def once(results: float) -> Callable[[Mapping[str, int]], float]:
    """Bytes when the matrix is read once and `results` matrices are written."""
    return lambda sizes: (1.0 + results) * 4 * sizes["rows"] * sizes["columns"]


def softmax(x: Any) -> Any:
    """Softmax of each row, in NumPy."""
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax_jax(jnp: Any) -> Function:
    """The same."""

    def run(x: Any) -> Any:
        e = jnp.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    return run


def norm_gelu(x: Any) -> Any:
    """Layer normalisation of each row, then gelu (tanh form), in NumPy."""
    mean = x.mean(axis=1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=1, keepdims=True)
    y = centred / np.sqrt(variance + 1e-5)
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def norm_gelu_jax(jnp: Any) -> Function:
    """The same."""

    def run(x: Any) -> Any:
        centred = x - x.mean(axis=1, keepdims=True)
        variance = (centred * centred).mean(axis=1, keepdims=True)
        y = centred / jnp.sqrt(variance + 1e-5)
        return 0.5 * y * (1.0 + jnp.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))

    return run


def norm_gelu_torch(torch: Any) -> Function:
    """torch's own operators."""

    def run(x: Any) -> Any:
        y = torch.nn.functional.layer_norm(x, x.shape[1:], eps=1e-5)
        return torch.nn.functional.gelu(y, approximate="tanh")

    return run


def norm_gelu_numba() -> Function:
    """Hand-written loop over rows."""
    import numba

    @numba.njit(parallel=True)
    def run(x: Any) -> Any:
        out = np.empty_like(x)
        n = x.shape[1]
        for i in numba.prange(x.shape[0]):
            mean = np.float32(0)
            for j in range(n):
                mean += x[i, j]
            mean /= np.float32(n)
            variance = np.float32(0)
            for j in range(n):
                variance += (x[i, j] - mean) ** 2
            scale = np.float32(1) / np.float32(math.sqrt(variance / np.float32(n) + 1e-5))
            for j in range(n):
                y = (x[i, j] - mean) * scale
                inner = np.float32(0.7978845608) * (y + np.float32(0.044715) * y * y * y)
                out[i, j] = np.float32(0.5) * y * (np.float32(1) + np.float32(math.tanh(inner)))
        return out

    return run


def column_squares(x: Any) -> Any:
    """Sum of squares of each column, in NumPy."""
    return (x * x).sum(axis=0)


def row_sums(x: Any) -> Any:
    """Sum of each row, in NumPy."""
    return x.sum(axis=1)


def total(x: Any) -> Any:
    """Sum of everything, in NumPy."""
    return np.sum(x)


ROWS = (
    Workload(
        "softmax", MATRIX, matrix, softmax,
        array_forms(softmax_jax, lambda torch: lambda x: torch.softmax(x, 1)),
        traffic=once(1),
    ),
    Workload(
        "layernorm-gelu", MATRIX, matrix, norm_gelu,
        {**array_forms(norm_gelu_jax, norm_gelu_torch), "numba": norm_gelu_numba},
        traffic=once(1),
    ),
    Workload(
        "column-squares", MATRIX, matrix, column_squares,
        array_forms(lambda jnp: column_squares, lambda torch: lambda x: (x * x).sum(0)),
        traffic=once(0),
    ),
    Workload(
        "row-sums", MATRIX, matrix, row_sums,
        array_forms(lambda jnp: row_sums, lambda torch: lambda x: x.sum(1)),
        traffic=once(0), tolerance=1e-4,
    ),
    Workload(
        "total", MATRIX, matrix, total,
        array_forms(lambda jnp: lambda x: x.sum(), lambda torch: lambda x: x.sum()),
        traffic=once(0), tolerance=1e-3,
    ),
)  # fmt: skip
