"""Time: the one place below which a clock is read.

Invariants: `monotonic` never goes back; `now` may (somebody sets the clock), so nothing that must
be right depends on it.
Not here: deadlines inside kernels (the control block's word, polled by native code).
"""

from __future__ import annotations

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits."""

    def now(self) -> float:
        """Seconds since 1970, as the machine believes."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment, never going back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """See `Clock`."""
        return time.time()

    def monotonic(self) -> float:
        """See `Clock`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        time.sleep(seconds)


class ManualClock:
    """A clock that moves only when told: a sleeper returns when `advance` has passed its time."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self._now = now
        self._elapsed = 0.0
        self._moved = threading.Condition()

    def now(self) -> float:
        """See `Clock`."""
        with self._moved:
            return self._now

    def monotonic(self) -> float:
        """See `Clock`."""
        with self._moved:
            return self._elapsed

    def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        with self._moved:
            until = self._elapsed + seconds
            self._moved.wait_for(lambda: self._elapsed >= until)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._moved:
            self._now += seconds
            self._elapsed += seconds
            self._moved.notify_all()

    def set_back(self, seconds: float) -> None:
        """Set the wall clock back; monotonic time does not notice."""
        with self._moved:
            self._now -= seconds
