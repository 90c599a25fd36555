"""Sequences: causal attention, an LSTM, a transformer block, in float32."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

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

SINGLE = np.float32
FAR = SINGLE(-1e30)


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Any:
    """Normal numbers in float32."""
    return (rng.standard_normal(shape) * scale).astype(SINGLE)


# -- attention


def attention(q: Any, k: Any, v: Any) -> Any:
    """Each position attends to those before it; heads x length x width, in NumPy."""
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(SINGLE(q.shape[-1]))
    seen = np.tril(np.ones(scores.shape[-2:], bool))
    scores = np.where(seen, scores, FAR)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)) @ v


def attention_jax(jnp: Any) -> Function:
    """The same in JAX."""

    def run(q: Any, k: Any, v: Any) -> Any:
        scores = q @ jnp.swapaxes(k, -1, -2) / np.sqrt(SINGLE(q.shape[-1]))
        scores = jnp.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, FAR)
        e = jnp.exp(scores - scores.max(axis=-1, keepdims=True))
        return (e / e.sum(axis=-1, keepdims=True)) @ v

    return run


def attention_torch(torch: Any) -> Function:
    """torch's own attention."""
    attend = torch.nn.functional.scaled_dot_product_attention
    return lambda q, k, v: attend(q[None], k[None], v[None], is_causal=True)[0]


def attention_tensorflow(library: Any) -> Function:
    """The same in TensorFlow."""

    def run(q: Any, k: Any, v: Any) -> Any:
        scores = q @ library.transpose(k, (0, 2, 1)) / np.sqrt(SINGLE(q.shape[-1]))
        scores = library.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, FAR)
        e = library.exp(scores - library.max(scores, axis=-1, keepdims=True))
        return (e / library.sum(e, axis=-1, keepdims=True)) @ v

    return run


def heads(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Queries, keys and values of eight heads."""
    return tuple(normal(rng, 8, sizes["length"], 64) for _ in range(3))


# -- LSTM

HIDDEN = 256


def lstm(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    """The last output of an LSTM over time x batch x width, in NumPy."""
    n = h.shape[-1]
    for t in range(x.shape[0]):
        z = x[t] @ w + h @ u + b
        c = c / (1 + np.exp(-z[:, n : 2 * n])) + np.tanh(z[:, 2 * n : 3 * n]) / (
            1 + np.exp(-z[:, :n])
        )
        h = np.tanh(c) / (1 + np.exp(-z[:, 3 * n :]))
    return h


def _cell(sigmoid: Function, tanh: Function, z: Any, c: Any, n: int) -> tuple[Any, Any]:
    c = c * sigmoid(z[:, n : 2 * n]) + tanh(z[:, 2 * n : 3 * n]) * sigmoid(z[:, :n])
    return tanh(c) * sigmoid(z[:, 3 * n :]), c


def lstm_jax(jnp: Any) -> Function:
    """A scan, with the products of all inputs before it."""
    import jax

    def run(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
        def step(carry: Any, part: Any) -> Any:
            h, c = carry
            return _cell(jax.nn.sigmoid, jnp.tanh, part + h @ u, c, HIDDEN), None

        return jax.lax.scan(step, (h, c), x @ w + b)[0][0]

    return run


def lstm_torch(torch: Any) -> Function:
    """torch's own LSTM."""
    module = torch.nn.LSTM(HIDDEN, HIDDEN)
    loaded: list[bool] = []

    def run(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
        if not loaded:
            zero = torch.zeros_like(b)
            names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
            module.load_state_dict(dict(zip(names, (w.T, u.T, b, zero), strict=True)))
            loaded.append(True)
        return module(x, (h[None], c[None]))[1][0][0]

    return run


def lstm_tensorflow() -> Function:
    """A while loop compiled by XLA."""
    import tensorflow as tf

    @tf.function(jit_compile=True)  # type: ignore[untyped-decorator]
    def run(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
        inputs = tf.tensordot(x, w, 1) + b

        def step(t: Any, h: Any, c: Any) -> Any:
            return t + 1, *_cell(tf.sigmoid, tf.tanh, inputs[t] + h @ u, c, HIDDEN)

        return tf.while_loop(lambda t, h, c: t < x.shape[0], step, (0, h, c))[1]

    made: Function = run
    return made


def sequence(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Inputs, a state of zeros, weights."""
    batch, state = sizes["batch"], np.zeros((sizes["batch"], HIDDEN), SINGLE)
    x = normal(rng, sizes["length"], batch, HIDDEN)
    w, u = (normal(rng, HIDDEN, 4 * HIDDEN, scale=0.05) for _ in range(2))
    return x, state, state.copy(), w, u, normal(rng, 4 * HIDDEN, scale=0.1)


# -- a transformer block

WIDTH, HEADS = 256, 8


def block_for(library: Any, attend: Function, split: Function, join: Function) -> Function:
    """Attention and two dense layers, each behind a layer norm and added to its input."""

    def norm(x: Any, gain: Any, shift: Any) -> Any:
        centred = x - library.mean(x, -1, keepdims=True)
        variance = library.mean(centred * centred, -1, keepdims=True)
        return centred / library.sqrt(variance + SINGLE(1e-5)) * gain + shift

    def gelu(x: Any) -> Any:
        inner = SINGLE(0.7978845608) * (x + SINGLE(0.044715) * x * x * x)
        return SINGLE(0.5) * x * (1 + library.tanh(inner))

    def run(
        x: Any, g1: Any, s1: Any, wq: Any, wk: Any, wv: Any, wo: Any, g2: Any, s2: Any,
        w1: Any, b1: Any, w2: Any, b2: Any,
    ) -> Any:  # fmt: skip
        y = norm(x, g1, s1)
        x = x + join(attend(split(y @ wq), split(y @ wk), split(y @ wv))) @ wo
        return x + gelu(norm(x, g2, s2) @ w1 + b1) @ w2 + b2

    return run


def split_numpy(x: Any) -> Any:
    """Length x width as heads x length x width of a head."""
    return x.reshape(x.shape[0], HEADS, WIDTH // HEADS).swapaxes(0, 1)


def join_numpy(x: Any) -> Any:
    """And back."""
    return x.swapaxes(0, 1).reshape(x.shape[1], WIDTH)


class _TorchBlock:
    def __init__(self, torch: Any) -> None:
        self.sqrt, self.tanh, self._mean = torch.sqrt, torch.tanh, torch.mean

    def mean(self, x: Any, axis: int, keepdims: bool) -> Any:
        """Mean along an axis."""
        return self._mean(x, axis, keepdim=keepdims)


def block_torch(torch: Any) -> Function:
    """The same with torch's own attention."""
    return block_for(_TorchBlock(torch), attention_torch(torch), split_numpy, join_numpy)


def block_tensorflow(library: Any) -> Function:
    """The same in TensorFlow."""
    import tensorflow as tf

    return block_for(
        library,
        attention_tensorflow(library),
        lambda x: tf.transpose(tf.reshape(x, (x.shape[0], HEADS, WIDTH // HEADS)), (1, 0, 2)),
        lambda x: tf.reshape(tf.transpose(x, (1, 0, 2)), (x.shape[1], WIDTH)),
    )


def block_inputs(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """A sequence and the weights."""
    ones, zeros = np.ones(WIDTH, SINGLE), np.zeros(WIDTH, SINGLE)
    square = [normal(rng, WIDTH, WIDTH, scale=0.06) for _ in range(4)]
    first, second = (normal(rng, WIDTH, 4 * WIDTH, scale=0.06) for _ in range(2))
    return (
        normal(rng, sizes["length"], WIDTH), ones, zeros, *square, ones.copy(), zeros.copy(),
        first, np.zeros(4 * WIDTH, SINGLE), np.ascontiguousarray(second.T), zeros.copy(),
    )  # fmt: skip


def _block_flops(sizes: Mapping[str, int]) -> float:
    n = sizes["length"]
    return 2.0 * n * WIDTH * WIDTH * 12 + 4.0 * n * n * WIDTH


SEQUENCES = (
    Workload(
        "attention", named_sizes(length=between(384, 640)), heads, attention,
        array_forms(attention_jax, attention_torch, attention_tensorflow),
        flops=lambda sizes: 8 * 4.0 * sizes["length"] ** 2 * 64, tolerance=1e-3,
    ),
    Workload(
        "lstm", named_sizes(length=between(48, 80), batch=between(12, 20)), sequence, lstm,
        {
            "jax": jax_form(lstm_jax),
            "torch": torch_form(lstm_torch, compiled=False),
            "tensorflow": lstm_tensorflow,
        },
        flops=lambda sizes: 16.0 * sizes["length"] * sizes["batch"] * HIDDEN**2, tolerance=1e-3,
    ),
    Workload(
        "transformer-block", named_sizes(length=between(384, 640)), block_inputs,
        block_for(np, attention, split_numpy, join_numpy),
        {
            "jax": jax_form(
                lambda jnp: block_for(jnp, attention_jax(jnp), split_numpy, join_numpy)
            ),
            "torch.compile": torch_form(block_torch, compiled=True),
            "torch": torch_form(block_torch, compiled=False),
            "tensorflow": tensorflow_form(block_tensorflow),
        },
        flops=_block_flops, tolerance=1e-3,
    ),
)  # fmt: skip
