"""Row and column reductions, and what normalises rows with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..onnx_models import onnx_form
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


def softmax_for(library: Any) -> Function:
    """The same for a library that spells it alike."""

    def run(x: Any) -> Any:
        e = library.exp(x - library.max(x, axis=1, keepdims=True))
        return e / library.sum(e, axis=1, keepdims=True)

    return run


def norm_gelu(x: Any) -> Any:
    """Layer normalisation of each row, then gelu (tanh form), in NumPy."""
    mean = x.mean(axis=1, keepdims=True)
    centred = x - mean
    variance = (centred * centred).mean(axis=1, keepdims=True)
    y = centred / np.sqrt(variance + 1e-5)
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def norm_gelu_for(library: Any) -> Function:
    """The same for a library that spells it alike."""

    def run(x: Any) -> Any:
        centred = x - library.mean(x, axis=1, keepdims=True)
        variance = library.mean(centred * centred, axis=1, keepdims=True)
        y = centred / library.sqrt(variance + 1e-5)
        return 0.5 * y * (1.0 + library.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))

    return run


def norm_gelu_torch(torch: Any) -> Function:
    """torch's own operators."""

    def run(x: Any) -> Any:
        y = torch.nn.functional.layer_norm(x, x.shape[1:], eps=1e-5)
        return torch.nn.functional.gelu(y, approximate="tanh")

    return run


def norm_gelu_numba(fastmath: bool = False) -> Function:
    """Hand-written loop over rows."""
    import numba

    @numba.njit(parallel=True, fastmath=fastmath)
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


def norm_gelu_onnx() -> Function:
    """ONNX Runtime's own operators; they want a scale and a shift, of ones and zeros."""
    nodes = [
        ("LayerNormalization", ("x", "c0", "c1"), "y", {"axis": -1, "epsilon": 1e-5}),
        ("Gelu", ("y",), "z", {"approximate": "tanh"}),
    ]
    run = onnx_form(nodes)()
    made: list[Any] = []

    def with_scale(x: Any) -> Any:
        if not made:
            made.extend((np.ones(x.shape[1], x.dtype), np.zeros(x.shape[1], x.dtype)))
        return run(x, *made)

    return with_scale


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
        {
            **array_forms(softmax_for, lambda torch: lambda x: torch.softmax(x, 1)),
            "onnxruntime": onnx_form([("Softmax", ("x",), "y", {"axis": 1})]),
        },
        traffic=once(1),
    ),
    Workload(
        "layernorm-gelu", MATRIX, matrix, norm_gelu,
        {
            **array_forms(norm_gelu_for, norm_gelu_torch),
            "numba": norm_gelu_numba, "onnxruntime": norm_gelu_onnx,
        },
        traffic=once(1), unequal={"numba fastmath": lambda: norm_gelu_numba(True)},
    ),
    Workload(
        "column-squares", MATRIX, matrix, column_squares,
        array_forms(
            lambda library: lambda x: library.sum(x * x, 0),
            lambda torch: lambda x: (x * x).sum(0),
        ),
        traffic=once(0),
    ),
    Workload(
        "row-sums", MATRIX, matrix, row_sums,
        array_forms(lambda library: lambda x: library.sum(x, 1), lambda torch: lambda x: x.sum(1)),
        traffic=once(0), tolerance=1e-4,
    ),
    Workload(
        "total", MATRIX, matrix, total,
        array_forms(lambda library: library.sum, lambda torch: lambda x: x.sum()),
        traffic=once(0), tolerance=1e-3,
    ),
)  # fmt: skip
