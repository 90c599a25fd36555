"""Which outputs are stored past the caches, and that what is there is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.backends.llvm.machine import host_machine

pytestmark = pytest.mark.cpu

Array = np.ndarray[Any, Any]


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def centred(x: Array) -> Array:
    return x - x.mean(axis=1, keepdims=True)


def poly(x: Array) -> Array:
    return (x * 0.5 + 1.25) * x - 0.75


@pytest.mark.skipif("x86" not in host_machine().triple, reason="nothing streams elsewhere")
@pytest.mark.parametrize(("function", "streams"), [(softmax, False), (centred, True), (poly, True)])
def test_an_output_streams_unless_the_kernel_reads_it(function: Any, streams: bool) -> None:
    x = np.ones((5000, 1100), np.float32)
    assert ("!nontemporal" in tm.jit(function).lower(x).llvm) is streams


@pytest.mark.parametrize("rows", [3000, 6500])
@pytest.mark.parametrize("function", [softmax, centred, poly])
def test_small_and_large_outputs_are_numpy_s(function: Any, rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 1024), np.float32)
    for array in (x, x[:, 3:1000]):
        np.testing.assert_allclose(tm.jit(function)(array), function(array), rtol=1e-4, atol=1e-5)
