"""The same step many times: a stencil, a fractal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..workload import Function, Workload, between, jax_form, named_sizes, tensorflow_form

STEPS = 100


# -- Jacobi


def jacobi(u: Any) -> Any:
    """Steps of relaxation of a grid with a fixed border, in NumPy."""
    for _ in range(STEPS):
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u = u.copy()
        u[1:-1, 1:-1] = 0.25 * inner
    return u


def _relaxed(u: Any) -> Any:
    return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def jacobi_jax(jnp: Any) -> Function:
    """A loop that updates in place."""
    import jax

    def step(_: int, u: Any) -> Any:
        return u.at[1:-1, 1:-1].set(_relaxed(u))

    return lambda u: jax.lax.fori_loop(0, STEPS, step, u)


def jacobi_torch() -> Function:
    """A compiled step over two grids, in a Python loop."""
    import torch

    torch.set_grad_enabled(False)

    def step(u: Any, out: Any) -> None:
        out[1:-1, 1:-1] = _relaxed(u)

    compiled = torch.compile(step, dynamic=False)

    def run(u: Any) -> Any:
        grids = [u.clone(), u.clone()]
        for _ in range(STEPS):
            compiled(*grids)
            grids.reverse()
        return grids[0]

    return run


def jacobi_numba() -> Function:
    """Hand-written parallel loops over two grids."""
    import numba

    @numba.njit(parallel=True)
    def step(u: Any, out: Any) -> None:
        for i in numba.prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                out[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])

    @numba.njit
    def run(u: Any) -> Any:
        here, there = u.copy(), u.copy()
        for _ in range(STEPS):
            step(here, there)
            here, there = there, here
        return here

    made: Function = run
    return made


def jacobi_tensorflow(library: Any) -> Function:
    """A while loop compiled by XLA."""
    import tensorflow as tf

    def step(t: Any, u: Any) -> Any:
        middle = tf.concat([u[1:-1, :1], _relaxed(u), u[1:-1, -1:]], 1)
        return t + 1, tf.concat([u[:1], middle, u[-1:]], 0)

    return lambda u: tf.while_loop(lambda t, u: t < STEPS, step, (0, u))[1]


def grid(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """A grid in float64."""
    return (rng.standard_normal((sizes["n"], sizes["m"])),)


# -- Mandelbrot


def mandelbrot(x: Any, y: Any) -> Any:
    """How many steps each point stays within 2, in NumPy with masks."""
    a, b = np.zeros_like(x), np.zeros_like(y)
    count = np.zeros(x.shape, np.int64)
    for _ in range(STEPS):
        inside = a * a + b * b <= 4.0
        a, b = np.where(inside, a * a - b * b + x, a), np.where(inside, 2.0 * a * b + y, b)
        count += inside
    return count


def _mandelbrot_step(library: Any, x: Any, y: Any, a: Any, b: Any, count: Any) -> Any:
    inside = a * a + b * b <= 4.0
    moved = library.where(inside, a * a - b * b + x, a)
    return moved, library.where(inside, 2.0 * a * b + y, b), count + library.where(inside, 1, 0)


def mandelbrot_jax(jnp: Any) -> Function:
    """A loop over masked steps."""
    import jax

    def run(x: Any, y: Any) -> Any:
        start = (jnp.zeros_like(x), jnp.zeros_like(y), jnp.zeros(x.shape, jnp.int64))
        step = lambda _, s: _mandelbrot_step(jnp, x, y, *s)
        return jax.lax.fori_loop(0, STEPS, step, start)[2]

    return run


def mandelbrot_torch() -> Function:
    """A compiled step, in a Python loop."""
    import torch

    torch.set_grad_enabled(False)
    step = torch.compile(
        lambda x, y, a, b, count: _mandelbrot_step(torch, x, y, a, b, count), dynamic=False
    )

    def run(x: Any, y: Any) -> Any:
        state = (torch.zeros_like(x), torch.zeros_like(y), torch.zeros(x.shape, dtype=torch.int64))
        for _ in range(STEPS):
            state = step(x, y, *state)
        return state[2]

    return run


def mandelbrot_numba() -> Function:
    """Hand-written parallel loop that stops where a point leaves."""
    import numba

    @numba.njit(parallel=True)
    def run(x: Any, y: Any) -> Any:
        out = np.zeros(x.shape, np.int64)
        for i in numba.prange(x.shape[0]):
            for j in range(x.shape[1]):
                a = b = 0.0
                for step in range(STEPS):
                    if a * a + b * b > 4.0:
                        break
                    a, b = a * a - b * b + x[i, j], 2.0 * a * b + y[i, j]
                    out[i, j] = step + 1
        return out

    made: Function = run
    return made


def mandelbrot_tensorflow(library: Any) -> Function:
    """A while loop compiled by XLA."""
    import tensorflow as tf

    def run(x: Any, y: Any) -> Any:
        def step(t: Any, a: Any, b: Any, count: Any) -> Any:
            inside = a * a + b * b <= 4.0
            moved = tf.where(inside, a * a - b * b + x, a)
            b = tf.where(inside, 2.0 * a * b + y, b)
            return t + 1, moved, b, count + tf.cast(inside, tf.int64)

        start = (0, tf.zeros_like(x), tf.zeros_like(y), tf.zeros_like(x, tf.int64))
        return tf.while_loop(lambda t, *_: t < STEPS, step, start)[3]

    return run


def plane(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Real and imaginary parts of the points of a window of the plane."""
    n, m, left = sizes["n"], sizes["m"], float(rng.uniform(-2.2, -1.9))
    x, y = np.meshgrid(np.linspace(left, left + 2.6, m), np.linspace(-1.2, 1.2, n))
    return np.ascontiguousarray(x), np.ascontiguousarray(y)


def _cells(steps: int) -> Any:
    return lambda sizes: float(steps) * sizes["n"] * sizes["m"]


REPEATED = (
    Workload(
        "jacobi", named_sizes(n=between(900, 1100), m=between(900, 1100)), grid, jacobi,
        {
            "jax": jax_form(jacobi_jax),
            "torch.compile": jacobi_torch,
            "numba": jacobi_numba,
            "tensorflow": tensorflow_form(jacobi_tensorflow),
        },
        flops=_cells(4 * STEPS), tolerance=1e-12, double=True,
    ),
    Workload(
        "mandelbrot", named_sizes(n=between(448, 576), m=between(448, 576)), plane, mandelbrot,
        {
            "jax": jax_form(mandelbrot_jax),
            "torch.compile": mandelbrot_torch,
            "numba": mandelbrot_numba,
            "tensorflow": tensorflow_form(mandelbrot_tensorflow),
        },
        flops=_cells(7 * STEPS), tolerance=0.0, double=True,
    ),
)  # fmt: skip
