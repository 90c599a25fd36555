"""Sorting: long rows, many short ones, and places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..workload import Function, Workload, array_forms, between, named_sizes


def numbers(dtype: str) -> Any:
    """`n` rows of `m` normal numbers."""

    def make(rng: np.random.Generator, sizes: Mapping[str, int]) -> tuple[Any, ...]:
        return (rng.standard_normal((sizes["n"], sizes["m"])).astype(dtype),)

    return make


def sorting(library: Any) -> Function:
    """The rows in order."""
    return lambda x: library.sort(x, axis=-1)


def places(library: Any) -> Function:
    """Where the elements of the rows in order were, equal ones in order."""
    return lambda x: library.argsort(x, axis=-1, stable=True)


def moved(size: int, result: int) -> Any:
    """Bytes that must move, for elements of so many bytes."""
    return lambda s: s["n"] * s["m"] * (size + result)


ORDER = (
    Workload(
        "sort-long", named_sizes(n=lambda rng: 1, m=between(800_000, 1_500_000)), numbers("f8"),
        sorting(np),
        array_forms(sorting, lambda torch: lambda x: torch.sort(x, dim=-1).values),
        traffic=moved(8, 8),
    ),
    Workload(
        "sort-rows", named_sizes(n=between(8_000, 12_000), m=between(80, 120)), numbers("f4"),
        sorting(np),
        array_forms(sorting, lambda torch: lambda x: torch.sort(x, dim=-1).values),
        traffic=moved(4, 4),
    ),
    Workload(
        "argsort-long", named_sizes(n=lambda rng: 1, m=between(800_000, 1_500_000)),
        numbers("f4"), places(np),
        array_forms(
            places, lambda torch: lambda x: torch.argsort(x, dim=-1, stable=True), places
        ),
        traffic=moved(4, 8),
    ),
)  # fmt: skip
