"""Tiny calls: what it costs to call at all, for one to eight arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..workload import Factory, Function, Workload, array_forms, named_sizes

# Written out, so that every contender sees an ordinary function of that many arguments.
SUMS: Mapping[int, Function] = {
    1: lambda a: a + 1.0,
    2: lambda a, b: a + b,
    3: lambda a, b, c: a + b + c,
    4: lambda a, b, c, d: a + b + c + d,
    6: lambda a, b, c, d, e, f: a + b + c + d + e + f,
    8: lambda a, b, c, d, e, f, g, h: a + b + c + d + e + f + g + h,
}


def numba_form(count: int) -> Factory:
    """A Numba dispatcher over array expressions."""

    def factory() -> Function:
        import numba

        compiled: Function = numba.njit(SUMS[count])
        return compiled

    return factory


def vectors(count: int) -> Any:
    """`count` vectors of eight float64."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
        return tuple(rng.standard_normal(8) for _ in range(count))

    return make


CALLS = tuple(
    Workload(
        f"tiny-{count}",
        named_sizes(n=lambda rng: 8),
        vectors(count),
        add,
        {
            **array_forms(lambda jnp, f=add: f, lambda torch, f=add: f),
            "numba": numba_form(count),
        },
        tolerance=1e-12,
    )
    for count, add in SUMS.items()
)
