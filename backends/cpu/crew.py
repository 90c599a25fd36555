"""Compiling many kernels at once: the calling thread and a few worker processes share a queue.

LLVM is reached through one lock, so threads would wait for each other; processes do not, and one
that LLVM ends is only a kernel that could not be compiled. The calling thread works too: a short
list is done before a worker has started, and nobody waits for one that does not come.

Workers are started by a thread each when there is work that pays for it. A worker has the next
kernels before it is done with one, so that it need not wait for this process, which compiles too.
A thread whose worker was asked for nothing for a while closes it and ends.

Invariants: a kernel is compiled once, by whoever takes it; the code is the same wherever it is
made. A forked child has a crew of its own.
Not here: what a worker does (`worker`), the process (`hands`), which kernels are missing
(`backend`), what is compiled when nobody waits for it (`improving`).
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from ...compiler.errors import error
from ...compiler.kernel.kernel import Kernel
from ...compiler.records import dataclass
from ...compiler.uncollected import set_aside
from . import hands, wire, worker
from .effort import quick_seconds, seconds
from .hands import Worker, WorkerDied
from .wire import Effort, Request

IDLE_SECONDS = 20.0
MOST = 8  # workers; each takes some 100 MB
_START_SECONDS = 0.8  # work a new worker must find to be worth its start
_SHARE_SECONDS = 0.1  # work worth sharing with workers there are
_AHEAD = {Effort.QUICK: 4, Effort.BEST: 2}  # kernels a worker has at a time
_SMALL = 16 << 10  # bytes of a request that is sent ahead: four of them fit a pipe


class _Job(NamedTuple):
    """One kernel; the answer goes to `answers` with the number."""

    number: int
    request: Request
    answers: queue.SimpleQueue[tuple[int, bytes | Exception | None]]


@dataclass(slots=True)
class _Crew:
    """The workers of this process, and what there is to do."""

    jobs: queue.SimpleQueue[_Job] = field(default_factory=queue.SimpleQueue)
    threads: int = 0  # one for each worker
    broken: bool = False  # a worker could not be started: there will be no more
    lock: threading.Lock = field(default_factory=threading.Lock)


_crew = _Crew()


def pays(requests: Sequence[Request]) -> bool:
    """Whether compiling these is worth the trouble of asking workers."""
    if _hands() == 0:
        return False
    return _estimate(requests) >= (_SHARE_SECONDS if _crew.threads else _START_SECONDS)


def _estimate(requests: Sequence[Request]) -> float:
    best = [r.kernel for r in requests if r.effort is Effort.BEST]
    quick = [r.kernel for r in requests if r.effort is Effort.QUICK]
    return seconds(best) + quick_seconds(quick)


def _hands() -> int:
    """How many workers there may be: the other processors."""
    if _crew.broken or not hands.can_hire():
        return 0
    return min(hands.processors() - 1, MOST)


def compile_all(requests: Sequence[Request], done: Callable[[int, bytes], None]) -> None:
    """Compile kernels; `done(position, code)` is called on this thread as they get ready.

    Raises CompileError naming the kernel that ended a worker, and what code generation raises.
    """
    _hire(min(_hands(), int(_estimate(requests) / _START_SECONDS) + 1))
    answers: queue.SimpleQueue[tuple[int, bytes | Exception | None]] = queue.SimpleQueue()
    for number, request in enumerate(requests):
        _crew.jobs.put(_Job(number, request, answers))
    try:
        with set_aside():
            for _ in requests:
                number, code = _next_answer(answers)
                if isinstance(code, WorkerDied):
                    raise _stopped(requests[number].kernel, code)
                if isinstance(code, Exception):
                    raise code
                done(number, code or worker.answer(requests[number]))
    finally:
        _withdraw(answers)


def _stopped(kernel: Kernel, why: WorkerDied) -> Exception:
    text = f"the compiler stopped while it made machine code of kernel {kernel.name}"
    return error("TM402", text, detail=str(why), hint="please report this kernel")


def _next_answer(answers: Any) -> tuple[int, bytes | Exception | None]:
    """An answer that is there; else one this thread makes; else the next to arrive."""
    while True:
        try:
            answer: tuple[int, bytes | Exception | None] = answers.get_nowait()
            return answer
        except queue.Empty:
            pass
        try:
            job = _crew.jobs.get_nowait()
        except queue.Empty:
            answer = answers.get()
            return answer
        try:
            code: bytes | Exception = worker.answer(job.request)
        except Exception as problem:  # noqa: BLE001 - raised where the kernel was asked for
            code = problem
        except BaseException:  # this list ends here, but the kernel may be another one's
            _crew.jobs.put(job)
            raise
        job.answers.put((job.number, code))


def _withdraw(answers: Any) -> None:
    """Take what is left of a list out of the queue, when it ends early."""
    others = []
    with contextlib.suppress(queue.Empty):
        while True:
            job = _crew.jobs.get_nowait()
            if job.answers is not answers:
                others.append(job)
    for job in others:
        _crew.jobs.put(job)


def _hire(count: int) -> None:
    """Have at least this many workers, or soon."""
    with _crew.lock:
        missing = count - _crew.threads
        _crew.threads += max(missing, 0)
    for _ in range(missing):
        threading.Thread(target=_employ, args=(_crew,), daemon=True, name="tm-compile").start()


def _employ(crew: _Crew) -> None:
    """The life of a worker, seen from here."""
    process = None
    given: deque[_Job] = deque()
    try:
        process = Worker()
        while True:
            _give(crew, process, given)
            if given:
                code = process.receive()
                job = given.popleft()
                job.answers.put((job.number, code))
    except queue.Empty:
        pass
    except WorkerDied as problem:
        if process is None:  # not started: the others do the work
            crew.broken = True
        elif given and not problem.outside:
            blamed = given.popleft()
            blamed.answers.put((blamed.number, problem))
    except (OSError, ValueError):
        crew.broken = True
    for job in given:  # compiled where they are waited for
        job.answers.put((job.number, None))
    with crew.lock:
        crew.threads -= 1
    if process is not None:
        process.end()


def _give(crew: _Crew, process: Worker, given: deque[_Job]) -> None:
    """Hand the worker the next kernels. Raises queue.Empty if none came for long."""
    while True:
        if given and len(given) >= _AHEAD[given[0].request.effort]:
            return
        try:
            job = crew.jobs.get_nowait() if given else crew.jobs.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            if given:
                return
            raise
        try:
            request = wire.packed(job.request)
        except Exception:  # noqa: BLE001 - a kernel that cannot be sent is compiled here
            job.answers.put((job.number, None))
            continue
        if given and len(request) > _SMALL:  # two pipes that are full would wait for each other
            crew.jobs.put(job)
            return
        try:
            process.send(request)
        except WorkerDied:
            crew.jobs.put(job)
            if given:  # what it died of is said where the first of them is waited for
                return
            raise
        given.append(job)


def _forget() -> None:
    """In a forked child: the workers are the parent's."""
    global _crew
    _crew = _Crew()


os.register_at_fork(after_in_child=_forget)
