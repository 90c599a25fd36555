"""The judge of Python control flow in compiled functions: plain Python.

Not here: the programs.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import tracemill as tm


def same(function: Callable[..., Any], *calls: tuple[Any, ...], versions: int = 1) -> Any:
    """Compiled and plain calls give equal values of equal types and leave arguments equal; calls
    after the first need no further compilation, but for `versions`."""
    compiled = tm.jit(function)
    for args in calls:
        plain, own = copy.deepcopy(args), copy.deepcopy(args)
        with np.errstate(all="ignore"):
            want = function(*plain)
            got = compiled(*own)
        assert_same(got, want)
        assert_same(own, plain)
    assert len(compiled.explain_recompiles()) <= versions
    return compiled


def assert_same(got: Any, want: Any) -> None:
    """Nested values are equal to a few roundings, of the same types."""
    assert type(got) is type(want), f"{got!r} is no {type(want).__name__}: {want!r}"
    if isinstance(want, list | tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want):
            assert_same(a, b)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            assert_same(got[key], want[key])
    elif dataclasses.is_dataclass(want):
        for field in dataclasses.fields(want):
            assert_same(getattr(got, field.name), getattr(want, field.name))
    elif isinstance(want, np.ndarray | np.generic | float | complex):
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    else:
        assert got == want


def drawn(*shape: int, seed: int = 0) -> Any:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape)


def loops(compiled: Any, *args: Any, kind: str = "for") -> int:
    """How many loops of a kind the graph of this call has."""
    return operations(compiled.lower(*args).text).count(f" = {kind} ")


def operations(text: str) -> str:
    """A printed graph or plan without its source lines, whose paths may hold any word."""
    return re.sub(r"  // .*", "", text)
