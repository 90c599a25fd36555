"""Traced functions whose kernels stand for all shapes a grid has, and a run of them both ways.

`GridRun` runs every launch of a plan three times on equal memory: by the emulator, by the GPU's
LLVM code with one thread on the host, by the cpu back end's machine code. It compares bit for bit,
but for contractions, whose order is free.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import tracemill as tm
from kernel_runner import Compiled
from lone_thread import run_alone
from plan_runner import PlanRun
from tracemill.backends.cuda.emulator import emulate
from tracemill.compiler.kernel.grid import map_to_grid
from tracemill.compiler.kernel.kernel import Kernel, Reduce, walk
from tracemill.compiler.plan import ExecutionPlan

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(3)


def floats(*shape: int, dtype: Any = np.float32) -> Array:
    """Normal numbers."""
    return RNG.standard_normal(shape).astype(dtype)


def chain(x, y):
    return np.tanh(x * y + 1) / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layer_norm(x, gain, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * gain + shift


def dense(x, w, b):
    return np.maximum(x @ w + b, 0)


def bump(x, rows, value):
    out = x.copy()
    np.add.at(out, rows, value)
    return out


def places(x):
    return x.argmax(axis=1), x.argmin(axis=0)


SUITE: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
    "chain": (chain, (floats(37, 53), floats(37, 53))),
    "chain f64": (chain, (floats(1000, dtype=np.float64), floats(1000, dtype=np.float64))),
    "chain strided": (chain, (floats(60, 40)[::2, ::-1], floats(30, 40))),
    "broadcast": (lambda x, y: x * y - y, (floats(9, 70), floats(9, 1))),
    "softmax": (softmax, (floats(11, 90),)),
    "softmax of long rows": (softmax, (floats(2, 9000),)),
    "layer norm": (layer_norm, (floats(13, 200), floats(200), floats(200))),
    "row sum": (lambda x: x.sum(axis=1), (floats(7, 5000),)),
    "column sum": (lambda x: x.sum(axis=0), (floats(130, 21),)),
    "whole sum": (lambda x: x.sum(), (floats(13000),)),
    "small rows": (lambda x: x.sum(axis=1), (floats(300, 3),)),
    "two axes": (lambda x: x.max(axis=(0, 2)), (floats(5, 6, 70),)),
    "integers": (lambda k: (k * 3 % 7).prod(axis=1), (RNG.integers(1, 9, (6, 30)),)),
    "bools": (lambda x: (x > 0).any(axis=1), (floats(12, 40),)),
    "places": (places, (floats(8, 70),)),
    "complex": (lambda z: (z * z).sum(axis=1), (floats(5, 80) + 1j * floats(5, 80),)),
    "running sum": (lambda x: np.cumsum(x, axis=1), (floats(6, 50),)),
    "transpose": (lambda x: x.T + 1, (floats(33, 65),)),
    "pad": (lambda x: np.pad(x, 2), (floats(20, 31),)),
    "dense": (dense, (floats(20, 64), floats(64, 48), floats(48))),
    "vector product": (lambda x, v: x @ v, (floats(30, 100), floats(100))),
    "gather": (lambda x, k: x[k] * 2, (floats(40, 10), RNG.integers(-40, 40, 55))),
    "scatter": (bump, (floats(40, 10), RNG.integers(0, 40, 25), floats(25, 10))),
}


@cache
def plan_of(name: str) -> ExecutionPlan:
    """The plan of a function of the suite."""
    function, args = SUITE[name]
    plan: ExecutionPlan = tm.jit(function).lower(*args).plan.data
    return plan


class GridRun(PlanRun):
    """One call of a plan, every kernel run in three ways and compared."""

    def __init__(self, *args: Any, blocks: int | None = None) -> None:
        super().__init__(*args)
        self.blocks = blocks
        self.compared: list[str] = []

    def kernel(
        self, kernel: Kernel, arrays: list[Array], dims: dict[str, int], extent: int
    ) -> int | None:
        mapped = map_to_grid(kernel)
        theirs, alone = [a.copy() for a in arrays], [a.copy() for a in arrays]
        outcome = Compiled(kernel)(*theirs, chunks=[(0, extent)], **dims)
        failed = emulate(mapped, arrays, dims, self.blocks)
        codes = [code - 1 for code, _, _ in outcome.failures]
        assert failed == min(codes, default=None) == run_alone(mapped, alone, dims), kernel.name
        self.compared.append(kernel.name)
        if failed is not None:
            return failed  # what a failed kernel stores is nobody's
        loose = any(isinstance(s, Reduce) and s.loose for s in walk(kernel.body))
        for p, mine, *others in zip(kernel.params, arrays, theirs, alone):
            for other in others:
                if p.mode != "in":
                    compare(mine, other, loose)
        return None


def compare(mine: Array, theirs: Array, loose: bool) -> None:
    """Equal bits, all NaNs alike; up to rounding where the order of a sum is free."""
    if loose and mine.dtype.kind in "fc":
        relative = 2e-2 if mine.dtype.itemsize == 2 else 1e-4
        largest = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=1.0)
        np.testing.assert_allclose(mine, theirs, rtol=relative, atol=relative / 10 * largest)
        return
    if loose:  # made from a rounded sum: a few may fall on the other side
        assert np.count_nonzero(mine != theirs) <= mine.size // 20 + 1
        return
    np.testing.assert_array_equal(mine, theirs)
    if mine.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(mine) & ~np.isnan(mine),
                                      np.signbit(theirs) & ~np.isnan(theirs))  # fmt: skip
