"""What a workload is, and the list of all.

A workload is one computation written once per contender style: `numpy` (which tracemill
decorates unchanged and every result is checked against), and optionally `jax`, `torch`,
`numba`, `numexpr`, `tensorflow`, `onnxruntime` forms. Each form is a factory: called in the
contender's own process, it imports what it needs and returns a function of the inputs.

Invariants: inputs come from a seeded generator, so all contenders see the same numbers; the
committed list of names is complete (tests compare it with `ALL`).
Not here: timing (harness.py), processes (worker.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .libraries import TensorFlowAsNumPy

Inputs = tuple[Any, ...]
Function = Callable[..., Any]
Factory = Callable[[], Function]


@dataclass(frozen=True)
class Workload:
    """One computation.

    draw: the sizes of this run, from a generator. inputs: the arguments for those sizes.
    numpy: the plain NumPy function. peers: contender name -> factory of its best form.
    traffic, flops: bytes that must move and operations that must be done, for the roofline;
    functions of the sizes. double: the operations are in double precision, half of the peak.
    tolerance: relative error that still counts as the same answer. unequal: forms with looser
    numerics (fast-math), shown beside and never compared.
    """

    name: str
    draw: Callable[[np.random.Generator], Mapping[str, int]]
    inputs: Callable[[np.random.Generator, Mapping[str, int]], Inputs]
    numpy: Function
    peers: Mapping[str, Factory] = field(default_factory=dict)
    traffic: Callable[[Mapping[str, int]], float] | None = None
    flops: Callable[[Mapping[str, int]], float] | None = None
    tolerance: float = 1e-4
    double: bool = False
    unequal: Mapping[str, Factory] = field(default_factory=dict)


def between(low: int, high: int, multiple: int = 1) -> Callable[[np.random.Generator], int]:
    """A size drawn evenly from [low, high], rounded down to a multiple."""
    return lambda rng: int(rng.integers(low, high + 1)) // multiple * multiple


def named_sizes(
    **draws: Callable[[np.random.Generator], int],
) -> Callable[[np.random.Generator], Mapping[str, int]]:
    """Draw each named size on its own."""
    return lambda rng: {name: draw(rng) for name, draw in draws.items()}


def jax_form(build: Callable[[Any], Function]) -> Factory:
    """JAX's form: `build(jax.numpy)` gives the function, it is jitted with 64-bit types on."""

    def factory() -> Function:
        import jax

        jax.config.update("jax_enable_x64", True)
        return jax.jit(build(jax.numpy))

    return factory


def torch_form(
    build: Callable[[Any], Function], compiled: bool, mode: str | None = None
) -> Factory:
    """torch's form, eager or through torch.compile with its default strict numerics."""

    def factory() -> Function:
        import torch

        torch.set_grad_enabled(False)
        function = build(torch)
        return torch.compile(function, dynamic=False, mode=mode) if compiled else function

    return factory


def tensorflow_form(build: Callable[[Any], Function]) -> Factory:
    """TensorFlow's form, compiled by XLA; `build` is given TensorFlow in NumPy's spelling."""

    def factory() -> Function:
        import tensorflow

        function: Function = tensorflow.function(
            build(TensorFlowAsNumPy(tensorflow)), jit_compile=True
        )
        return function

    return factory


def array_forms(
    jax: Callable[[Any], Function],
    torch: Callable[[Any], Function],
    tensorflow: Callable[[Any], Function] | None = None,
) -> Mapping[str, Factory]:
    """The forms that most workloads have; TensorFlow's is JAX's in its spelling by default."""
    return {
        "jax": jax_form(jax),
        "torch.compile": torch_form(torch, compiled=True),
        "torch": torch_form(torch, compiled=False),
        "tensorflow": tensorflow_form(tensorflow or jax),
    }


def collect(*families: Sequence[Workload]) -> Mapping[str, Workload]:
    """One table by name. Raises ValueError when two workloads share a name."""
    table: dict[str, Workload] = {}
    for family in families:
        for workload in family:
            if workload.name in table:
                raise ValueError(f"two workloads are named {workload.name}")
            table[workload.name] = workload
    return table
