"""What a long compilation is doing: one line on stderr that is kept up to date.

    with compiling("train_step"):
        phase("tracing")
        ...
        phase("machine code", 40)
        kernel_done()

A compilation of less than `DELAY` seconds shows nothing. Where stderr is a terminal the line is
rewritten in place; elsewhere a new one is written for each phase.

Invariants: a compilation made within another belongs to the outer one's line; when `compiling`
ends, nothing more is written.
Not here: log topics (settings.py), where the time of a call goes (profile.py).
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

DELAY = 2.0  # seconds before the first line
INTERVAL = 0.2  # seconds between two


class Progress:
    """The line of one compilation.

    clock, stream: what it is timed by and written to. wait: pauses for some seconds; True as
    soon as the compilation has ended.
    """

    def __init__(
        self,
        name: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        stream: TextIO | None = None,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self.name = name
        self.phase = "starting"
        self.total = 0
        self.count = 0
        self._ended = threading.Event()
        self._clock = clock
        self._stream = stream
        self._wait = wait or self._ended.wait
        self._began = clock()
        self._shown = ""

    def begin(self, phase: str, total: int = 0) -> None:
        """Enter a phase; total: how many kernels it makes."""
        self.phase, self.total, self.count = phase, total, 0

    def watch(self) -> None:
        """Show the line from `DELAY` on until the compilation has ended."""
        if self._wait(DELAY):
            return
        while True:
            self._show()
            if self._wait(INTERVAL):
                break
        self._close()

    def end(self) -> None:
        """Let `watch` return."""
        self._ended.set()

    @property
    def line(self) -> str:
        """What is being done, and for how long."""
        return f"{self._doing}, {self._clock() - self._began:.1f} s"

    @property
    def _doing(self) -> str:
        done = f", {self.count} of {self.total} kernels" if self.total else ""
        return f"tracemill: compiling {self.name}: {self.phase}{done}"

    def _show(self) -> None:
        stream = self._stream or sys.stderr
        if stream is None:  # a process without a console
            return
        if stream.isatty():
            stream.write(f"\r{self.line:{len(self._shown)}}")
            self._shown = self.line
        elif self._shown != self.phase:
            stream.write(f"{self.line}\n")
            self._shown = self.phase
        stream.flush()

    def _close(self) -> None:
        stream = self._stream or sys.stderr
        if stream is not None:
            text = f"tracemill: compiling {self.name}: {self._clock() - self._began:.1f} s in all"
            stream.write(f"\r{text:{len(self._shown)}}\n" if stream.isatty() else f"{text}\n")
            stream.flush()


class _Current(threading.local):
    progress: Progress | None = None


_CURRENT = _Current()


@contextlib.contextmanager
def compiling(name: str) -> Iterator[None]:
    """Show what is done in this block if it takes long."""
    if _CURRENT.progress is not None:
        yield
        return
    progress = Progress(name)
    watcher = threading.Thread(target=progress.watch, name="tracemill progress", daemon=True)
    watcher.start()
    _CURRENT.progress = progress
    try:
        yield
    finally:
        _CURRENT.progress = None
        progress.end()
        watcher.join()


def phase(name: str, total: int = 0) -> None:
    """Say what this thread's compilation does now; total: kernels it will make."""
    if _CURRENT.progress is not None:
        _CURRENT.progress.begin(name, total)


def counter() -> Callable[[], None]:
    """What counts a kernel of this thread's compilation as done; may be called in any thread."""
    progress = _CURRENT.progress

    def count() -> None:
        if progress is not None:
            progress.count += 1

    return count
