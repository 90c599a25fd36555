"""Clusters of points: nearest places, and means of what is near them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..workload import Function, Workload, between, jax_form, named_sizes, tensorflow_form

ROUNDS = 10


def clusters(points: Any, centres: Any) -> Any:
    """Rounds of Lloyd's algorithm, in NumPy."""
    numbers = np.arange(centres.shape[0])
    for _ in range(ROUNDS):
        squared = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        member = (squared.argmin(axis=1)[:, None] == numbers[None, :]).astype(points.dtype)
        centres = (member.T @ points) / np.maximum(member.sum(axis=0), 1.0)[:, None]
    return centres


def clusters_for(argmin: Function, arange: Function, cast: Function, total: Function) -> Function:
    """The same for a library that spells these alike."""

    def run(points: Any, centres: Any) -> Any:
        numbers = arange(centres.shape[0])
        for _ in range(ROUNDS):
            squared = total((points[:, None, :] - centres[None, :, :]) ** 2, 2)
            member = cast(argmin(squared, 1)[:, None] == numbers[None, :], points)
            held = total(member, 0)
            centres = (member.T @ points) / (held + cast(held < 0.5, points))[:, None]
        return centres

    return run


def clusters_jax(jnp: Any) -> Function:
    """The rounds written out."""
    return clusters_for(jnp.argmin, jnp.arange, lambda a, like: a.astype(like.dtype), jnp.sum)


def clusters_torch(compiled: bool) -> Function:
    """The same in torch."""
    import torch

    torch.set_grad_enabled(False)
    run = clusters_for(torch.argmin, torch.arange, lambda a, like: a.to(like.dtype), torch.sum)
    made: Function = torch.compile(run, dynamic=False) if compiled else run
    return made


def clusters_tensorflow(library: Any) -> Function:
    """The same in TensorFlow."""
    import tensorflow as tf

    def run(points: Any, centres: Any) -> Any:
        numbers = tf.range(centres.shape[0], dtype=tf.int64)
        for _ in range(ROUNDS):
            squared = tf.reduce_sum((points[:, None, :] - centres[None, :, :]) ** 2, 2)
            member = tf.cast(tf.argmin(squared, 1)[:, None] == numbers[None, :], points.dtype)
            held = tf.maximum(tf.reduce_sum(member, 0), 1.0)
            centres = tf.linalg.matmul(member, points, transpose_a=True) / held[:, None]
        return centres

    return run


def clusters_numba() -> Function:
    """Hand-written loops."""
    import numba

    @numba.njit(parallel=True)
    def nearest(points: Any, centres: Any, near: Any) -> None:
        for i in numba.prange(points.shape[0]):
            least = np.inf
            for j in range(centres.shape[0]):
                squared = 0.0
                for k in range(points.shape[1]):
                    squared += (points[i, k] - centres[j, k]) ** 2
                if squared < least:
                    least, near[i] = squared, j

    @numba.njit
    def run(points: Any, centres: Any) -> Any:
        near = np.zeros(points.shape[0], np.int64)
        for _ in range(ROUNDS):
            nearest(points, centres, near)
            made, held = np.zeros_like(centres), np.zeros(centres.shape[0])
            for i in range(points.shape[0]):
                made[near[i]] += points[i]
                held[near[i]] += 1
            centres = made / np.maximum(held, 1.0).reshape(-1, 1)
        return centres

    made: Function = run
    return made


def cloud(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Points in float64 around 16 places, and points to begin with."""
    places = 4 * rng.standard_normal((16, 16))
    points = places[rng.integers(0, 16, sizes["n"])] + rng.standard_normal((sizes["n"], 16))
    return points, points[:32].copy()


CLUSTERS = (
    Workload(
        "k-means", named_sizes(n=between(15000, 25000)), cloud, clusters,
        {
            "jax": jax_form(clusters_jax),
            "torch.compile": lambda: clusters_torch(True),
            "torch": lambda: clusters_torch(False),
            "numba": clusters_numba,
            "tensorflow": tensorflow_form(clusters_tensorflow),
        },
        flops=lambda sizes: 3.0 * ROUNDS * sizes["n"] * 32 * 16, tolerance=1e-9, double=True,
    ),
)  # fmt: skip
