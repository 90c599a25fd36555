"""What the machine can do, measured in the same run: copy bandwidth and FMA peak.

Copy bandwidth: two threads copy disjoint halves of a buffer far larger than the last cache;
bytes read and written are counted. FMA peak: Numba's vectorised fused multiply-adds on
registers, on every core.
"""

from __future__ import annotations

import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

COPY_BYTES = 256 << 20


@dataclass(frozen=True)
class Machine:
    """name: processor. copy: bytes/s read plus written. fma32: float32 operations/s."""

    name: str
    cores: int
    copy: float
    fma32: float


def measure() -> Machine:
    """Measure both limits; takes about two seconds."""
    cores = len(os.sched_getaffinity(0))
    return Machine(platform.processor() or platform.machine(), cores, _copy(cores), _fma(cores))


def _copy(cores: int) -> float:
    source = np.ones(COPY_BYTES // 8)
    target = np.empty_like(source)
    parts = list(zip(np.array_split(source, cores), np.array_split(target, cores), strict=True))
    best = float("inf")
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(7):
            began = time.perf_counter()
            list(pool.map(lambda part: np.copyto(part[1], part[0]), parts))
            best = min(best, time.perf_counter() - began)
    return 2 * source.nbytes / best


def _fma(cores: int) -> float:
    import numba

    lanes, rounds = 16 * 10, 100_000  # ten vector registers of 16 floats hide the latency

    @numba.njit(fastmath=True, nogil=True)
    def spin(state: np.ndarray, a: np.float32, b: np.float32) -> None:  # type: ignore[type-arg]
        local = state.copy()
        for _ in range(rounds):
            for lane in range(lanes):
                local[lane] = local[lane] * a + b
        state[:] = local

    def run(_: int) -> None:
        spin(np.ones(lanes, np.float32), np.float32(0.999), np.float32(0.001))

    run(0)
    best = float("inf")
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(5):
            began = time.perf_counter()
            list(pool.map(run, range(cores)))
            best = min(best, time.perf_counter() - began)
    return 2.0 * lanes * rounds * cores / best
