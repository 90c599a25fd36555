"""What a call and a fork-join cost, with room for a busy machine; `benchmarks/` has the figures."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from native_kernels import KERNELS, addition, function
from tracemill.backends.llvm.native.control import Control
from tracemill.backends.llvm.native.language import Ptr, i64, pause, stack
from tracemill.backends.llvm.native.pool import launch


def least(*calls: Callable[[int], None], rounds: int = 300, turns: int = 1000) -> list[float]:
    """Seconds one turn of each takes in its best round; rounds alternate."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for number, call in enumerate(calls):
            began = time.perf_counter()
            call(turns)
            best[number] = min(best[number], (time.perf_counter() - began) / turns)
    return best


def test_a_small_call_costs_less_than_half_of_numpy(runtime: Any, compiled: Any) -> None:
    f = function(runtime, "xy", addition(compiled(*KERNELS)))
    x, y = np.arange(8.0), np.ones(8)

    def ours(turns: int) -> None:
        for _ in range(turns):
            f(x, y)

    def numpys(turns: int) -> None:
        for _ in range(turns):
            x + y

    mine, theirs = least(ours, numpys)
    assert mine < 0.5 * theirs


def spin(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    for _ in range(args[0]):
        pause()


def fork_joins(
    ctl: Control,
    kernel: Callable[[Control, Ptr[i64], i64, i64], None],
    args: Ptr[i64],
    count: i64,
    threads: i64,
) -> i64:
    """Nanoseconds of the fastest of so many jobs of one chunk per thread."""
    clock = stack(i64, 2)
    least: i64 = 1 << 60
    for _ in range(count):
        ctl.process.clock_gettime(1, clock)
        began = clock[0] * 1_000_000_000 + clock[1]
        launch(ctl, kernel, args, threads, 1, threads)
        ctl.process.clock_gettime(1, clock)
        took = clock[0] * 1_000_000_000 + clock[1] - began
        if took < least:
            least = took
    return least


def test_a_fork_join_takes_less_than_five_microseconds(runtime: Any, compiled: Any) -> None:
    code = compiled(spin, fork_joins)
    run = ctypes.CFUNCTYPE(
        ctypes.c_int64,
        *[ctypes.c_void_p] * 3,
        *[ctypes.c_int64] * 2,
    )(code.address_of("fork_joins"))
    work = (ctypes.c_int64 * 1)(20)
    ctl = runtime.control_block()
    alone = run(ctl.address, code.address_of("spin"), ctypes.addressof(work), 2000, 1)
    both = run(ctl.address, code.address_of("spin"), ctypes.addressof(work), 2000, 2)
    assert both < alone + 5000
