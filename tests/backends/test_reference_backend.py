"""The reference back end answers the kernel ABI and agrees with machine code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from kernel_runner import _FAIL, _KERNEL, _POLL, Control, sym
from tracemill.backends.cpu.backend import CpuBackend
from tracemill.backends.reference.backend import ReferenceBackend
from tracemill.compiler.kernel.kernel import Checked, Kernel, Load, Parallel, Parameter, Store
from tracemill.compiler.types import F32, I64


def take_kernel():
    """o = t[k], `t` strided."""
    n, m, i = sym("n"), sym("m"), sym("i")
    body = (
        Load("v", "k", (i,), I64),
        Load("a", "t", (Checked("v", m),), F32),
        Store("o", (i,), "a"),
    )
    params = (
        Parameter("t", F32, (m,), "in", strided=True),
        Parameter("k", I64, (n,), "in"),
        Parameter("o", F32, (n,), "out"),
    )
    loop = Parallel("i", n, body, vector=16, threads=True)
    return Kernel("take", params, ("n", "m"), (loop,))


def run(address, t, k, o):
    """Launch at `address` in two chunks; the failures."""
    failures = []
    fail = _FAIL(lambda _, code, node, a, b, c: failures.append(code))
    control = Control(0, _POLL(lambda _: 0), fail)
    words = (ctypes.c_int64 * 6)(
        t.ctypes.data, t.strides[0], k.ctypes.data, o.ctypes.data, len(k), len(t)
    )
    half = len(k) // 2
    for begin, end in ((0, half), (half, len(k))):
        _KERNEL(address)(ctypes.addressof(control), ctypes.addressof(words), begin, end)
    return failures


@pytest.mark.cpu
def test_both_back_ends_agree():
    rng = np.random.default_rng(1)
    t = rng.standard_normal(40).astype(np.float32)[::-2]
    k = rng.integers(-20, 20, 33)
    results = []
    for backend in (ReferenceBackend(), CpuBackend()):
        loaded = backend.compile_kernels([take_kernel()])
        o = np.zeros(33, np.float32)
        assert run(loaded.addresses[0], t, k, o) == []
        bad = k.copy()
        bad[3] = 20
        assert run(loaded.addresses[0], t, bad, np.zeros(33, np.float32)) == [1]
        results.append(o)
    np.testing.assert_array_equal(results[0], t[k])
    np.testing.assert_array_equal(results[0], results[1])


def test_equal_kernels_share_a_callback():
    backend = ReferenceBackend()
    loaded = backend.compile_kernels([take_kernel(), take_kernel()])
    assert loaded.compiled == 1
    assert loaded.addresses[0] == loaded.addresses[1]
    assert "kernel @take" in backend.texts([take_kernel()])["kernel"]
