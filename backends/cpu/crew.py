"""Compiling many kernels at once: the calling thread and a few worker processes share a queue.

LLVM is reached through one lock, so threads would wait for each other; processes do not, and one
that LLVM ends is only a kernel that could not be compiled. The calling thread works too: a short
list is done before a worker has started, and nobody waits for one that does not come.

Workers are this interpreter running `worker`, started by a thread each when there is work that
pays for it. The program's main module is not run again, so scripts without a guard, notebooks and
embedded test runners can use them. A thread whose worker was asked for nothing for a while closes
it and ends.

Invariants: a kernel is compiled once, by whoever takes it; the code is the same wherever it is
made. No worker outlives its parent: its input ends with it. A forked child forgets the workers of
its parent.
Not here: what a worker does (`worker`), which kernels are missing (`backend`).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...compiler.errors import error
from ...compiler.kernel.kernel import Kernel, walk
from ..llvm.machine import Machine
from . import worker

IDLE_SECONDS = 20.0
MOST = 8  # workers; each takes some 100 MB
_START_SECONDS = 0.8  # work a new worker must find to be worth its start
_SHARE_SECONDS = 0.1  # work worth sharing with workers there are
_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)  # memory short, or somebody's wish
_PROGRAM = (
    "import json, os, sys; parent, sys.path[:] = json.loads(sys.argv[1]); "
    "os.environ['OPENBLAS_NUM_THREADS'] = os.environ['OMP_NUM_THREADS'] = '1'; "
    f"from {worker.__name__} import serve; serve(parent)"
)


class WorkerDied(Exception):
    """The process ended without an answer; the message is what it said last."""


class _Job(NamedTuple):
    """One kernel; the answer goes to `answers` with the number."""

    number: int
    kernel: Kernel
    machine: Machine
    answers: queue.SimpleQueue[tuple[int, bytes | Exception | None]]


@dataclass(slots=True)
class _Crew:
    """The workers of this process, and what there is to do."""

    jobs: queue.SimpleQueue[_Job] = field(default_factory=queue.SimpleQueue)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    threads: int = 0  # one for each worker
    broken: bool = False  # a worker could not be started: there will be no more
    lock: threading.Lock = field(default_factory=threading.Lock)


_crew = _Crew()


def pays(kernels: Sequence[Kernel]) -> bool:
    """Whether compiling these is worth the trouble of asking workers."""
    if _hands() == 0:
        return False
    return _estimate(kernels) >= (_SHARE_SECONDS if _crew.threads else _START_SECONDS)


def _estimate(kernels: Sequence[Kernel]) -> float:
    """Seconds these take one after the other, roughly: by the statements of their text."""
    return sum(0.005 + 0.001 * sum(1 for _ in walk(kernel.body)) for kernel in kernels)


def _hands() -> int:
    """How many workers there may be: the other processors, where this is a plain interpreter."""
    plain = os.path.basename(sys.executable or "").startswith("python")
    if _crew.broken or not plain or getattr(sys, "frozen", False):
        return 0
    return min(len(os.sched_getaffinity(0)) - 1, MOST)


def compile_all(
    kernels: Sequence[Kernel], machine: Machine, done: Callable[[int, bytes], None]
) -> None:
    """Compile kernels; `done(position, code)` is called on this thread as they get ready.

    Raises CompileError naming the kernel that ended a worker, and what code generation raises.
    """
    _hire(min(_hands(), int(_estimate(kernels) / _START_SECONDS) + 1))
    answers: queue.SimpleQueue[tuple[int, bytes | Exception | None]] = queue.SimpleQueue()
    for number, kernel in enumerate(kernels):
        _crew.jobs.put(_Job(number, kernel, machine, answers))
    try:
        for _ in kernels:
            number, code = _next_answer(answers)
            if isinstance(code, WorkerDied):
                raise _stopped(kernels[number], code)
            if isinstance(code, Exception):
                raise code
            done(number, code or worker.compiled(kernels[number], machine))
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
            code: bytes | Exception = worker.compiled(job.kernel, job.machine)
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


# -- workers


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
    try:
        process = _start(crew)
        while True:
            job = crew.jobs.get(timeout=IDLE_SECONDS)
            answer = _ask(process, job)
            job.answers.put((job.number, answer))
            if process.poll() is not None:
                break
    except queue.Empty:
        pass
    except (OSError, ValueError, WorkerDied):  # not started: the others do the work
        crew.broken = True
    with crew.lock:
        crew.threads -= 1
        if process in crew.processes:
            crew.processes.remove(process)
    if process is not None:
        _end(process)


def _start(crew: _Crew) -> subprocess.Popen[bytes]:
    paths = [entry or os.getcwd() for entry in sys.path if isinstance(entry, str)]
    process = subprocess.Popen(
        [sys.executable, *_flags(), "-c", _PROGRAM, json.dumps([os.getpid(), paths])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        process_group=0,  # Ctrl-C in a terminal is for the parent
    )
    with crew.lock:
        crew.processes.append(process)
    if _receive(process) != worker.DONE + worker.__file__.encode():
        raise WorkerDied("another installation answered")
    return process


def _flags() -> list[str]:
    flags = {"-I": sys.flags.isolated, "-E": sys.flags.ignore_environment}
    flags |= {"-s": sys.flags.no_user_site, "-S": sys.flags.no_site}
    return [flag for flag, given in flags.items() if given] + ["-W", "ignore"]


def _ask(process: subprocess.Popen[bytes], job: _Job) -> bytes | WorkerDied | None:
    """The code; None where this process should compile the kernel itself."""
    try:
        request = worker.packed(job.kernel, job.machine)
    except Exception:  # noqa: BLE001 - a kernel that cannot be sent is compiled here
        return None
    assert process.stdin is not None
    try:
        worker.write_frame(process.stdin.fileno(), request)
    except (OSError, ValueError):  # it was gone before it had the kernel
        process.kill()
        process.wait()
        return None
    try:
        answer = _receive(process)
    except WorkerDied as problem:
        return None if process.returncode in _FROM_OUTSIDE else problem
    return answer[1:] if answer[:1] == worker.DONE else None


def _receive(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    answer = worker.read_frame(process.stdout.fileno())
    if answer is None:
        raise WorkerDied(_last_words(process))
    return answer


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """What a process that has closed its output said, and how it ended."""
    try:
        code = process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    how = signal.Signals(-code).name if code < 0 else f"status {code}"
    assert process.stderr is not None
    said = process.stderr.read().decode(errors="replace").strip()
    return f"a worker process ended with {how}\n{said[-2000:]}".strip()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _end_all() -> None:
    """At the end of the interpreter."""
    _crew.broken = True
    with _crew.lock:
        processes = list(_crew.processes)
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


def _forget() -> None:
    """In a forked child: the workers are the parent's."""
    global _crew
    left, _crew = _crew, _Crew()
    for process in left.processes:
        process.returncode = 0
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget)
