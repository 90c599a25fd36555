"""Better code for kernels that were compiled quickly, made while they run.

Worker processes of the lowest priority compile, one thread of this process each hands out the
kernels and takes the code in: it is stored for processes to come, mapped, and takes the place of
the quick code wherever that is called (`mapped`).

Invariants: nobody waits for any of this: a kernel that cannot be improved keeps its quick code.
No thread or process outlives the interpreter, and a forked child leaves the work to its parent.
LLVM is not loaded here.
Not here: which kernels are compiled quickly first (`effort`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...runtime.forks import tell_after_forks
from . import hands, wire
from .hands import Worker, WorkerDied
from .wire import Request

if TYPE_CHECKING:
    from ...compiler.kernel.kernel import Kernel
    from ..llvm.machine import Machine

NICE = 19
MOST = 4  # workers; each takes some 100 MB


class Job(NamedTuple):
    """A kernel to improve. take: stores and maps its code; the words that were rewritten."""

    kernel: Kernel
    machine: Machine | None
    take: Callable[[bytes], int]


class Improved(NamedTuple):
    """How far it is. waiting: kernels to come or under way. done, failed: since the beginning.
    rewritten: places where better code is called now."""

    waiting: int
    done: int
    failed: int
    rewritten: int


class Improver:
    """The background work of one back end. report: told in words what happens."""

    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self._report = report or (lambda text: None)
        self._begin()
        tell_after_forks(self)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._busy = 0
        self._threads = 0
        self._done = self._failed = self._rewritten = 0

    def after_fork(self) -> None:
        """In the child: the work is the parent's."""
        self._begin()

    @property
    def possible(self) -> bool:
        """Whether there can be workers."""
        return hands.can_hire()

    @property
    def state(self) -> Improved:
        """How far it is."""
        with self._changed:
            waiting = len(self._jobs) + self._busy
            return Improved(waiting, self._done, self._failed, self._rewritten)

    def wait(self, seconds: float | None = None) -> bool:
        """Until nothing waits any more; False if that takes longer than `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs and not self._busy, seconds)

    def add(self, jobs: Iterable[Job]) -> None:
        """Begin with these when there is time."""
        with self._changed:
            before = len(self._jobs)
            self._jobs.extend(jobs)
            added = len(self._jobs) - before
            most = max(1, min(hands.processors() - 1, MOST))
            missing = min(most - self._threads, len(self._jobs))
            self._threads += missing
        self._report(f"{added} kernels were compiled quickly, better code is on its way")
        for _ in range(missing):
            threading.Thread(target=self._serve, daemon=True, name="tm-improve").start()

    def _serve(self) -> None:
        """The life of a worker, seen from here."""
        changed = self._changed  # a fork makes new ones
        worker: Worker | None = None
        while (job := self._next(changed)) is not None:
            rewritten: int | None = None
            try:
                worker = worker or Worker(NICE)
                worker.send(wire.packed(Request(job.kernel, job.machine)))
                code = worker.receive()
                rewritten = None if code is None else job.take(code)
            except WorkerDied as problem:
                if worker is None or problem.outside:
                    self._drop(str(problem))
                else:
                    self._report(f"{job.kernel.name} keeps its quick code: {problem}")
                    worker.end()
                worker = None
            except Exception as problem:  # noqa: BLE001 - the quick code is as right
                self._report(f"{job.kernel.name} keeps its quick code: {problem}")
            self._count(changed, rewritten)
        if worker is not None:
            worker.end()

    def _next(self, changed: threading.Condition) -> Job | None:
        """The next kernel; None when there is none, and the thread ends."""
        with changed:
            if self._jobs:
                self._busy += 1
                return self._jobs.popleft()
            self._threads -= 1
            return None

    def _count(self, changed: threading.Condition, rewritten: int | None) -> None:
        with changed:
            self._busy -= 1
            self._failed += rewritten is None
            self._done += rewritten is not None
            self._rewritten += rewritten or 0
            last = not self._jobs and not self._busy
            changed.notify_all()
        if last and not hands.ending():
            state = self.state
            self._report(
                f"{state.done} kernels have better code, {state.failed} keep their quick code; "
                f"{state.rewritten} calls go to better code now"
            )

    def _drop(self, why: str) -> None:
        """Nothing more can be done: all that waits keeps its quick code."""
        with self._changed:
            self._failed += len(self._jobs)
            self._jobs.clear()
        if not hands.ending():
            self._report(f"no better code is made any more: {why}")
