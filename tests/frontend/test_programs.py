"""Whole small programs in plain NumPy, as people write them, equal NumPy when traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from traced import assert_equal, assert_same, trace_function

RANDOM = np.random.default_rng(3)


def normal(*shape: int) -> Any:
    return RANDOM.normal(size=shape)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x: Any, gain: Any, shift: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) + shift


def heat(u: Any, steps: int) -> Any:
    for _ in range(steps):
        old = u.copy()
        inner = old[1:-1, 1:-1]
        around = old[2:, 1:-1] + old[:-2, 1:-1] + old[1:-1, 2:] + old[1:-1, :-2]
        u[1:-1, 1:-1] = inner + 0.1 * (around - 4 * inner)
    return u


def gravity(position: Any, mass: Any) -> Any:
    apart = position[None] - position[:, None]
    inverse = ((apart**2).sum(-1) + 1e-3) ** -1.5
    np.fill_diagonal(inverse, 0)
    return (apart * (inverse * mass)[:, :, None]).sum(axis=1)


def life(cells: Any) -> Any:
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    near = sum(np.roll(cells, shift, (0, 1)) for shift in shifts)
    return ((near == 3) | ((cells == 1) & (near == 2))).astype(cells.dtype)


def centres(x: Any, c: Any) -> Any:
    nearest = ((x[:, None] - c[None]) ** 2).sum(-1).argmin(1)
    for k in range(len(c)):
        c[k] = x[nearest == k].mean(axis=0)
    return nearest


def cholesky(a: Any) -> Any:
    lower = np.zeros_like(a)
    for j in range(a.shape[0]):
        lower[j, j] = np.sqrt(a[j, j] - lower[j, :j] @ lower[j, :j])
        for i in range(j + 1, len(a)):
            lower[i, j] = (a[i, j] - lower[i, :j] @ lower[j, :j]) / lower[j, j]
    return lower


def gram_schmidt(a: Any) -> Any:
    q = np.zeros(a.shape)
    for j in range(a.shape[1]):
        v = a[:, j].copy()
        for i in range(j):
            v -= q[:, i] * (q[:, i] @ a[:, j])
        q[:, j] = v / np.linalg.norm(v)
    return q


def attention_block(x: Any, wide: Any, narrow: Any, gain: Any, shift: Any) -> Any:
    q, k, v = np.split(layer_norm(x, gain, shift) @ wide, 3, axis=-1)
    mask = (1 - np.tri(x.shape[0], dtype=x.dtype)) * -1e10
    heads = []
    for a, b, c in zip(*[np.split(t, 2, axis=-1) for t in (q, k, v)]):
        heads.append(softmax(a @ b.T / np.sqrt(a.shape[-1]) + mask) @ c)
    x = x + np.hstack(heads)
    return x + np.tanh(layer_norm(x, gain, shift) @ narrow)


def heads_by_transposing(x: Any, w: Any) -> Any:
    n, d = x.shape
    y = (x @ w).reshape(n, 4, d // 4).transpose(1, 0, 2)
    scores = y @ y.transpose(0, 2, 1) / np.sqrt(d // 4)
    return (softmax(scores) @ y).transpose(1, 0, 2).reshape(n, d)


def recurrent(xs: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
    out = []
    for x in xs:
        i, f, o, g = np.split(x @ w + h @ u + b, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        out.append(h)
    return np.stack(out), h


def escape(c: Any) -> Any:
    z, n = np.zeros_like(c), np.zeros(c.shape, int)
    for _ in range(5):
        inside = np.abs(z) <= 2
        z[inside] = z[inside] ** 2 + c[inside]
        n[inside] += 1
    return n


def convolution(x: Any, kernel: Any) -> Any:
    rows, columns = kernel.shape
    out = np.zeros((x.shape[0] - rows + 1, x.shape[1] - columns + 1))
    for i in range(rows):
        for j in range(columns):
            out += kernel[i, j] * x[i : i + out.shape[0], j : j + out.shape[1]]
    return out


def cross_entropy(y: Any, x: Any) -> Any:
    hot = np.zeros((y.size, 10))
    hot[np.arange(y.size), y] = 1
    p = softmax(x)
    picked = -np.log(p[np.arange(len(y)), y]).mean()
    return -(hot * np.log(p)).sum() / len(y), picked, np.eye(10)[y]


def transform(x: Any) -> Any:
    n = len(x)
    if n <= 1:
        return x
    even, odd = transform(x[::2]), transform(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + turned, even - turned])


def red_black(u: Any) -> Any:
    for colour in (0, 1):
        for i in range(1, u.shape[0] - 1):
            at = slice(1 + (i + colour) % 2, -1, 2)
            u[i, at] = 0.25 * (u[i - 1, at] + u[i + 1, at])
    return u


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (heat, (normal(9, 8), 3)),
        (gravity, (normal(9, 3), normal(9))),
        (life, ((normal(9, 9) > 0).astype(np.int8),)),
        (centres, (normal(20, 3), normal(2, 3))),
        (cholesky, (np.eye(5) * 5 + np.ones((5, 5)),)),
        (gram_schmidt, (normal(9, 4),)),
        (attention_block, (normal(9, 8), normal(8, 24), normal(8, 8), normal(8), normal(8))),
        (heads_by_transposing, (normal(9, 16), normal(16, 16))),
        (recurrent, (normal(4, 9), normal(8), normal(8), normal(9, 32), normal(8, 32), normal(32))),
        (escape, (normal(9, 9) + 1j * normal(9, 9),)),
        (convolution, (normal(12, 12), normal(3, 3))),
        (cross_entropy, (RANDOM.integers(0, 10, 20), normal(20, 10))),
        (transform, (normal(16) + 0j,)),
        (red_black, (normal(8, 9),)),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_a_program_equals_numpy(program: Any, args: Any) -> None:
    assert_same(program, *args)


def test_a_traced_program_serves_other_sizes() -> None:
    call = trace_function(heat, normal(9, 8), 3)
    for shape in ((5, 30), (40, 9)):
        u = normal(*shape)
        assert_equal(call(u.copy(), 3), heat(u.copy(), 3))
    call = trace_function(cross_entropy, RANDOM.integers(0, 10, 20), normal(20, 10))
    y, x = RANDOM.integers(0, 10, 33), normal(33, 10)
    assert_equal(call(y, x), cross_entropy(y, x))
