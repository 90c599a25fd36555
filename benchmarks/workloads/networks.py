"""Small networks: inference of one example, a training step with Adam, a fused dense layer."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..libraries import TorchAsNumPy
from ..onnx_models import dense_nodes, onnx_form
from ..workload import (
    Function,
    Workload,
    array_forms,
    between,
    jax_form,
    named_sizes,
    tensorflow_form,
    torch_form,
)

AUTOTUNED = "max-autotune-no-cudagraphs"
LAYERS = (784, 512, 512, 10)


def weights(rng: np.random.Generator, layers: tuple[int, ...]) -> tuple[Any, ...]:
    """w1, b1, w2, b2, ... in float32, He-scaled."""
    made: list[Any] = []
    for fan_in, fan_out in itertools.pairwise(layers):
        scale = np.sqrt(2.0 / fan_in)
        made.append((rng.standard_normal((fan_in, fan_out)) * scale).astype(np.float32))
        made.append((rng.standard_normal(fan_out) * 0.1).astype(np.float32))
    return tuple(made)


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    """Three dense layers, in NumPy."""
    h = np.maximum(x @ w1 + b1, 0)
    h = np.maximum(h @ w2 + b2, 0)
    return h @ w3 + b3


def mlp_for(maximum: Any) -> Function:
    """The same with another rectifier."""

    def run(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
        h = maximum(x @ w1 + b1)
        h = maximum(h @ w2 + b2)
        return h @ w3 + b3

    return run


def mlp_inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """A batch and the weights."""
    x = rng.standard_normal((sizes["batch"], LAYERS[0])).astype(np.float32)
    return (x, *weights(rng, LAYERS))


def dense(x: Any, w: Any, b: Any) -> Any:
    """Matrix product, bias, rectifier, in NumPy."""
    return np.maximum(x @ w + b, 0)


def dense_inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """A square-ish product in float32."""
    m, k, n = sizes["m"], sizes["k"], sizes["n"]
    x = rng.standard_normal((m, k)).astype(np.float32)
    return x, rng.standard_normal((k, n)).astype(np.float32), np.ones(n, np.float32)


RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8


def train_step(np: Any) -> Function:
    """A training step of a two-layer classifier with Adam, written out for any NumPy-like."""

    def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * g * g
        return w - RATE * m / (np.sqrt(v) + EPSILON), m, v

    def run(
        x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any,
        m1: Any, v1: Any, n1: Any, u1: Any, m2: Any, v2: Any, n2: Any, u2: Any,
    ) -> Any:  # fmt: skip
        h = np.maximum(x @ w1 + b1, 0.0)
        z = h @ w2 + b2
        z = z - np.max(z, axis=1, keepdims=True)
        e = np.exp(z)
        p = e / np.sum(e, axis=1, keepdims=True)
        loss = -np.mean(np.sum(y * np.log(p + 1e-7), axis=1))
        dz = (p - y) / x.shape[0]
        dh = np.where(h > 0, dz @ np.transpose(w2), 0.0)
        return (
            loss,
            *adam(w1, np.transpose(x) @ dh, m1, v1),
            *adam(b1, np.sum(dh, axis=0), n1, u1),
            *adam(w2, np.transpose(h) @ dz, m2, v2),
            *adam(b2, np.sum(dz, axis=0), n2, u2),
        )

    return run


def train_inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Batch, one-hot labels, weights, zero slots."""
    batch = sizes["batch"]
    x = rng.standard_normal((batch, 784)).astype(np.float32)
    y = np.eye(10, dtype=np.float32)[rng.integers(0, 10, batch)]
    parameters = weights(rng, (784, 512, 10))
    slots = [np.zeros_like(p) for p in parameters for _ in range(2)]
    return (x, y, *parameters, *slots)


def _relu_for(library: Any) -> Function:
    return mlp_for(lambda h: library.maximum(h, 0.0))


def _dense_for(library: Any) -> Function:
    return lambda x, w, b: library.maximum(x @ w + b, 0.0)


def _dense_torch(torch: Any) -> Function:
    return lambda x, w, b: torch.relu(x @ w + b)


NETWORKS = (
    Workload(
        "mlp-batch-1", named_sizes(batch=lambda rng: 1), mlp_inputs, mlp,
        {
            **array_forms(_relu_for, lambda torch: mlp_for(torch.relu)),
            "onnxruntime": onnx_form(dense_nodes(3)),
        },
        tolerance=1e-3,
        traffic=lambda sizes: 4.0 * sum(a * b for a, b in itertools.pairwise(LAYERS)),
    ),
    Workload(
        "mlp-train-adam", named_sizes(batch=between(192, 320, 16)), train_inputs, train_step(np),
        {
            "jax": jax_form(train_step),
            "torch.compile": torch_form(lambda t: train_step(TorchAsNumPy(t)), compiled=True),
            "torch": torch_form(lambda t: train_step(TorchAsNumPy(t)), compiled=False),
            "tensorflow": tensorflow_form(train_step),
        },
        flops=lambda sizes: 6.0 * sizes["batch"] * (784 * 512 + 512 * 10), tolerance=1e-3,
    ),
    Workload(
        "matmul-bias-relu",
        named_sizes(m=between(800, 1200), k=between(800, 1200), n=between(800, 1200)),
        dense_inputs, dense,
        {
            **array_forms(_dense_for, _dense_torch),
            "torch.autotuned": torch_form(_dense_torch, compiled=True, mode=AUTOTUNED),
            "onnxruntime": onnx_form([*dense_nodes(1), ("Relu", ("z0",), "y", {})]),
        },
        flops=lambda sizes: 2.0 * sizes["m"] * sizes["k"] * sizes["n"], tolerance=1e-3,
    ),
)  # fmt: skip
