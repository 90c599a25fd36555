"""Several threads, a forked child, Ctrl-C: the process and the next call are always fine."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tracemill as tm


def test_threads_that_call_a_fresh_function_share_its_versions():
    f = tm.jit(lambda x, y: np.tanh(x) * y + x.sum())
    dtypes = (np.float32, np.float64, np.int64)
    calls = [(dtype, n) for dtype in dtypes for n in range(2, 22)] * 2
    barrier = threading.Barrier(8)

    def run(part):
        barrier.wait()
        return [f(np.ones(n, d), np.full(n, 2, d)) for d, n in calls[part::8]]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(run, range(8)))
    for part, got in enumerate(results):
        for (dtype, n), result in zip(calls[part::8], got, strict=True):
            want = f.__wrapped__(np.ones(n, dtype), np.full(n, 2, dtype))
            np.testing.assert_allclose(result, want, rtol=1e-6)
    assert len(f.explain_recompiles()) == len(dtypes)


def test_parallel_kernels_may_be_called_from_many_threads():
    f = tm.jit(lambda x: np.exp(x).sum())
    x = np.linspace(0, 1, 300_000)
    want = f(x)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(f, [x] * 40)) == {want}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_computes():
    f = tm.jit(lambda x: np.exp(x).sum())
    x = np.linspace(0, 1, 300_000)
    want = f(x)
    child = os.fork()
    if child == 0:
        fresh = tm.jit(lambda x: x.sum() + 1)
        os._exit(0 if f(x) == want and fresh(np.ones(3)) == 4 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert f(x) == want


def test_ctrl_c_stops_a_long_kernel_and_the_next_call_works():
    f = tm.jit(lambda x: np.sin(np.exp(np.cos(x[:, None] + x[None, :]))).sum())
    small = np.linspace(0, 1, 10)
    f(small)
    x = np.linspace(0, 1, 120_000)  # 14e9 elements: minutes of work
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(x)
    timer.join()
    np.testing.assert_allclose(f(small), f.__wrapped__(small), rtol=1e-12)


def test_results_have_the_same_bits_with_any_number_of_threads():
    rng = np.random.default_rng(5)
    x = rng.standard_normal((700, 900)).astype(np.float32)
    f = tm.jit(lambda x: (x.sum(), x.sum(axis=0), x.sum(axis=1), (x * x).mean(), x @ x.T))
    before = tm.num_threads()
    try:
        found = []
        for threads in (1, 2, 3, 8):
            tm.set_num_threads(threads)
            found.append([np.asarray(r).tobytes() for r in f(x)])
    finally:
        tm.set_num_threads(before)
    assert all(bits == found[0] for bits in found)
