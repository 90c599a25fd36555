"""A process that compiles, seen from its parent: started, asked, ended.

Workers are this interpreter running `worker`. The program's main module is not run again, so
scripts without a guard, notebooks and embedded test runners can use them.

Invariants: no worker outlives its parent: its input ends with it. A forked child forgets the
workers of its parent. Nothing here loads LLVM.
Not here: what it is asked for, and when (`crew`, `improving`).
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from . import wire

_SOURCE = str(Path(__file__).with_name("worker.py"))
_FROM_OUTSIDE = (-signal.SIGKILL, -signal.SIGTERM)  # memory short, or somebody's wish
_PROGRAM = (
    "import json, os, sys; parent, nice, sys.path[:] = json.loads(sys.argv[1]); "
    "os.environ['OPENBLAS_NUM_THREADS'] = os.environ['OMP_NUM_THREADS'] = '1'; "
    f"from {__package__}.worker import serve; serve(parent, nice)"
)

_alive: set[Worker] = set()
_ending = threading.Event()


class WorkerDied(Exception):
    """The process ended without an answer; the message is what it said last.

    outside: it was ended by somebody, so what it was asked for is not to blame.
    """

    def __init__(self, said: str, outside: bool = False) -> None:
        super().__init__(said)
        self.outside = outside


def can_hire() -> bool:
    """Whether this is a plain interpreter, which can be run once more."""
    plain = os.path.basename(sys.executable or "").startswith("python")
    return plain and not getattr(sys, "frozen", False) and not _ending.is_set()


def ending() -> bool:
    """Whether the interpreter ends."""
    return _ending.is_set()


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


class Worker:
    """One process. nice: how far it steps back behind others."""

    def __init__(self, nice: int = 0) -> None:
        """Raises OSError or WorkerDied where it cannot be started."""
        if _ending.is_set():
            raise WorkerDied("the interpreter ends", outside=True)
        paths = [entry or os.getcwd() for entry in sys.path if isinstance(entry, str)]
        self.process = subprocess.Popen(
            [sys.executable, *_flags(), "-c", _PROGRAM, json.dumps([os.getpid(), nice, paths])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            process_group=0,  # Ctrl-C in a terminal is for the parent
        )
        _alive.add(self)
        try:
            ready = self._frame() == wire.DONE + _SOURCE.encode()
        except WorkerDied:
            self.end()
            raise
        if not ready:
            self.end()
            raise WorkerDied("another installation answered")

    def send(self, request: bytes) -> None:
        """Ask for code. Raises WorkerDied where it was gone before it was asked."""
        assert self.process.stdin is not None
        try:
            wire.write_frame(self.process.stdin.fileno(), request)
        except (OSError, ValueError):
            raise WorkerDied("it was gone", outside=True) from None

    def receive(self) -> bytes | None:
        """The code; None where this process should compile the kernel itself. Raises WorkerDied."""
        answer = self._frame()
        return answer[1:] if answer[:1] == wire.DONE else None

    def end(self) -> None:
        """End the process and wait for it."""
        _alive.discard(self)
        self.process.kill()
        self.process.wait()
        self._close()

    def forget(self) -> None:
        """Leave the process to its parent, in a forked child."""
        self.process.returncode = 0
        self._close()

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def _frame(self) -> bytes:
        assert self.process.stdout is not None
        try:
            answer = wire.read_frame(self.process.stdout.fileno())
        except (OSError, ValueError):
            answer = None
        if answer is None:
            raise self._last_words()
        return answer

    def _last_words(self) -> WorkerDied:
        """What a process that has closed its output said, and how it ended."""
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode(errors="replace").strip()
        text = f"a worker process ended with {how}\n{said[-2000:]}".strip()
        return WorkerDied(text, code in _FROM_OUTSIDE)


def _flags() -> list[str]:
    flags = {"-I": sys.flags.isolated, "-E": sys.flags.ignore_environment}
    flags |= {"-s": sys.flags.no_user_site, "-S": sys.flags.no_site}
    return [flag for flag, given in flags.items() if given] + ["-W", "ignore"]


def end_all() -> None:
    """At the end of the interpreter: no new ones, and none left."""
    _ending.set()
    workers = list(_alive)
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.wait()


def _forget() -> None:
    for worker in list(_alive):
        worker.forget()
    _alive.clear()


atexit.register(end_all)
os.register_at_fork(after_in_child=_forget)
