"""Runs contenders side by side: alternating blocks, one process each.

Invariants: every contender gets the same inputs and the same number of blocks; blocks alternate
so that drift of the machine falls on all alike; a contender that is missing or fails is
reported and its line counts as not met.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .statistics import Estimate, median_of, ratio_of
from .workload import Workload

BASE_CONTENDERS = ("tracemill", "numpy")
IDLE_ANSWER_SECONDS = 600


class Worker:
    """A contender's process."""

    def __init__(self, contender: str) -> None:
        self.contender = contender
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", contender],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request: Any) -> Mapping[str, Any]:
        """Send one request, wait for its answer; a dead process answers ``failed``."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return {"failed": f"process ended with status {self.process.wait()}"}
        answer: Mapping[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


@dataclass
class Measurement:
    """One contender on one workload. unequal: with looser numerics, so never compared."""

    contender: str
    failed: str | None = None
    first_call: float | None = None
    error: float | None = None
    accurate: bool = False
    unequal: bool = False
    time: Estimate | None = None
    blocks: list[list[float]] = field(default_factory=list)


@dataclass
class Outcome:
    """All contenders on one workload. ratio: best peer's time over ours, paired by block."""

    workload: str
    sizes: Mapping[str, int]
    measurements: list[Measurement]
    best_peer: str | None = None
    ratio: Estimate | None = None
    bandwidth_fraction: float | None = None
    flops_fraction: float | None = None

    @property
    def missing(self) -> Sequence[str]:
        """Peers that gave no time."""
        return [m.contender for m in self.measurements[1:] if m.time is None and not m.unequal]

    @property
    def met(self) -> bool:
        """Whether all peers were there and none was faster, interval included."""
        return self.ratio is not None and self.ratio.low >= 1.0 and not self.missing

    @property
    def roofline(self) -> tuple[float, str] | None:
        """The share of the limit that is nearer, and its name; None for a call too small."""
        known = [
            (fraction, limit)
            for fraction, limit in (
                (self.bandwidth_fraction, "copy bandwidth"), (self.flops_fraction, "FMA peak"),
            )
            if fraction is not None
        ]  # fmt: skip
        return max(known, default=None)

    def as_json(self) -> Mapping[str, Any]:
        """Plain data, without the raw blocks."""
        data = asdict(self)
        for measurement in data["measurements"]:
            del measurement["blocks"]
        return {**data, "missing": self.missing, "met": self.met}


def run_workload(
    workload: Workload, peers: Sequence[str], seed: int, blocks: int, seconds: float
) -> Outcome:
    """Measure `workload` once with sizes drawn from `seed`."""
    sizes = workload.draw(np.random.default_rng(seed))
    unequal = [p for p in workload.unequal if p.split()[0] in peers]
    chosen = [*BASE_CONTENDERS, *(p for p in peers if p in workload.peers), *unequal]
    workers = [Worker(contender) for contender in chosen]
    try:
        results = [_prepared(worker, workload, sizes, seed) for worker in workers]
        for measurement in results:
            measurement.unequal = measurement.contender in unequal
        alive = [(w, m) for w, m in zip(workers, results, strict=True) if m.failed is None]
        for _ in range(blocks):
            for worker, measurement in alive:
                answer = worker.ask(action="block", seconds=seconds)
                if "failed" in answer:
                    measurement.failed = answer["failed"]
                else:
                    measurement.blocks.append(answer["samples"])
    finally:
        for worker in workers:
            worker.close()
    return judged(workload, sizes, results)


def _prepared(
    worker: Worker, workload: Workload, sizes: Mapping[str, int], seed: int
) -> Measurement:
    answer = worker.ask(action="prepare", workload=workload.name, sizes=dict(sizes), seed=seed)
    measurement = Measurement(worker.contender)
    if "failed" in answer:
        measurement.failed = answer["failed"]
        return measurement
    measurement.first_call = answer["first_call"]
    measurement.error = answer["error"]
    measurement.accurate = answer["accurate"]
    return measurement


def judged(workload: Workload, sizes: Mapping[str, int], results: list[Measurement]) -> Outcome:
    """Medians, the best peer and the ratio to it. results: ours first."""
    for measurement in results:
        if measurement.failed is None and measurement.blocks:
            measurement.time = median_of([s for block in measurement.blocks for s in block])
    outcome = Outcome(workload.name, dict(sizes), results)
    ours = results[0]
    peers = [m for m in results[1:] if m.time is not None and m.accurate and not m.unequal]
    if ours.time is not None and peers:
        best = min(peers, key=lambda m: m.time.median if m.time else float("inf"))
        outcome.best_peer = best.contender
        outcome.ratio = ratio_of(best.blocks, ours.blocks)
    return outcome
