"""Broadcast-then-reduce: distances and forces between all pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..workload import Function, Workload, array_forms, between, named_sizes


def distances(a: Any, b: Any) -> Any:
    """Euclidean distance of every row of a to every row of b, in NumPy."""
    difference = a[:, None, :] - b[None, :, :]
    return np.sqrt((difference * difference).sum(axis=2))


def distances_for(sqrt: Function, total: Function) -> Function:
    """The same for a library with this root and this sum along an axis."""

    def run(a: Any, b: Any) -> Any:
        difference = a[:, None, :] - b[None, :, :]
        return sqrt(total(difference * difference, 2))

    return run


def distances_numba(fastmath: bool = False) -> Function:
    """Hand-written loop."""
    import numba

    @numba.njit(parallel=True, fastmath=fastmath)
    def run(a: Any, b: Any) -> Any:
        out = np.empty((a.shape[0], b.shape[0]), a.dtype)
        for i in numba.prange(a.shape[0]):
            for j in range(b.shape[0]):
                total = a.dtype.type(0)
                for k in range(a.shape[1]):
                    d = a[i, k] - b[j, k]
                    total += d * d
                out[i, j] = math.sqrt(total)
        return out

    return run


def points(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Two clouds of float32 points."""
    shape = (sizes["n"], sizes["k"])
    return tuple(rng.standard_normal(shape).astype(np.float32) for _ in range(2))


def forces(position: Any, mass: Any) -> Any:
    """Softened gravitational acceleration of each body, in NumPy."""
    offset = position[None, :, :] - position[:, None, :]
    squared = (offset * offset).sum(axis=2) + 0.01
    weight = mass[None, :] / (squared * np.sqrt(squared))
    return (weight[:, :, None] * offset).sum(axis=1)


def forces_for(sqrt: Function, total: Function) -> Function:
    """The same for a library with this root and this sum along an axis."""

    def run(position: Any, mass: Any) -> Any:
        offset = position[None, :, :] - position[:, None, :]
        squared = total(offset * offset, 2) + 0.01
        weight = mass[None, :] / (squared * sqrt(squared))
        return total(weight[:, :, None] * offset, 1)

    return run


def forces_numba(fastmath: bool = False) -> Function:
    """Hand-written loop."""
    import numba

    @numba.njit(parallel=True, fastmath=fastmath)
    def run(position: Any, mass: Any) -> Any:
        n = position.shape[0]
        out = np.empty_like(position)
        for i in numba.prange(n):
            x = y = z = 0.0
            for j in range(n):
                dx = position[j, 0] - position[i, 0]
                dy = position[j, 1] - position[i, 1]
                dz = position[j, 2] - position[i, 2]
                squared = dx * dx + dy * dy + dz * dz + 0.01
                weight = mass[j] / (squared * math.sqrt(squared))
                x += weight * dx
                y += weight * dy
                z += weight * dz
            out[i, 0], out[i, 1], out[i, 2] = x, y, z
        return out

    return run


def bodies(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Positions and masses in float64."""
    return rng.standard_normal((sizes["n"], 3)), rng.uniform(0.5, 1.5, sizes["n"])


PAIRS = (
    Workload(
        "pairwise-distances",
        named_sizes(n=between(700, 1100), k=between(16, 48)),
        points,
        distances,
        {
            **array_forms(
                lambda library: distances_for(library.sqrt, library.sum),
                lambda torch: distances_for(torch.sqrt, torch.sum),
            ),
            "numba": distances_numba,
        },
        flops=lambda sizes: 3.0 * sizes["n"] ** 2 * sizes["k"],
        unequal={"numba fastmath": lambda: distances_numba(True)},
    ),
    Workload(
        "n-body",
        named_sizes(n=between(800, 1200)),
        bodies,
        forces,
        {
            **array_forms(
                lambda library: forces_for(library.sqrt, library.sum),
                lambda torch: forces_for(torch.sqrt, torch.sum),
            ),
            "numba": forces_numba,
        },
        flops=lambda sizes: 20.0 * sizes["n"] ** 2,
        tolerance=1e-9,
        double=True,
        unequal={"numba fastmath": lambda: forces_numba(True)},
    ),
)
