"""Transport: how a value gets from a Send to its Recv.

A rendezvous pairs them by key: the edge they were made for, the step, and the iteration of the
loops around it. Either may come first. Receiving takes a continuation, so a thousand waiting
receives need no thousand threads; `receive` is the blocking form for those who have a thread.

Invariants: a key is sent once and received once; a continuation is called exactly once, outside
every lock, on the thread that completed the pair or aborted the step; after `abort` all receives
of the step, waiting or later, fail with its error, and sent values are dropped.
Not here: sockets (a transport between processes), device copies (a backend makes the value that
is sent), which edges exist (the partition pass).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from ..compiler.records import dataclass

# Called with (value, None) or (None, error).
Continuation = Callable[[Any, BaseException | None], None]


@dataclass(frozen=True, slots=True)
class Key:
    """One transfer: the edge's name, the step, and the iterations of its loops, outer first."""

    edge: str
    step: int
    iterations: tuple[int, ...] = ()


class Transport(Protocol):
    """What a dataflow executor sends and receives through."""

    def send(self, key: Key, value: Any) -> None:
        """Hand over `value`; returns at once. The sender does not change it afterwards."""
        ...

    def receive_then(self, key: Key, continuation: Continuation) -> None:
        """Call `continuation` with the value once it is there; maybe before this returns."""
        ...

    def abort(self, step: int, error: BaseException) -> None:
        """Fail every transfer of `step`, now and later, with `error`."""
        ...

    def finish(self, step: int) -> None:
        """Forget `step`: no further transfer of it will come."""
        ...


class DuplicateTransferError(RuntimeError):
    """A key was sent, or received, a second time: a fault of the partition, not of the user."""


class LocalTransport:
    """Transport inside one process: values are handed over as they are, without a copy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[int, dict[Key, Any]] = {}
        self._waiting: dict[int, dict[Key, Continuation]] = {}
        self._sent: dict[int, set[Key]] = {}
        self._received: dict[int, set[Key]] = {}
        self._aborted: dict[int, BaseException] = {}
        self._bytes: Counter[str] = Counter()
        self._transfers: Counter[str] = Counter()

    def send(self, key: Key, value: Any) -> None:
        """See `Transport`."""
        with self._lock:
            if key.step in self._aborted:
                return
            self._once(self._sent, key, "sent")
            self._transfers[key.edge] += 1
            self._bytes[key.edge] += getattr(value, "nbytes", 0)
            continuation = self._waiting.get(key.step, {}).pop(key, None)
            if continuation is None:
                self._values.setdefault(key.step, {})[key] = value
                return
        continuation(value, None)

    def receive_then(self, key: Key, continuation: Continuation) -> None:
        """See `Transport`."""
        value = None
        with self._lock:
            error = self._aborted.get(key.step)
            if error is None:
                self._once(self._received, key, "received")
                values = self._values.get(key.step, {})
                if key not in values:
                    self._waiting.setdefault(key.step, {})[key] = continuation
                    return
                value = values.pop(key)
        continuation(value, error)

    def receive(self, key: Key, timeout: float | None = None) -> Any:
        """Wait for the value; TimeoutError naming the key after `timeout` seconds."""
        arrived = threading.Event()
        outcome: list[tuple[Any, BaseException | None]] = []

        def keep(value: Any, error: BaseException | None) -> None:
            outcome.append((value, error))
            arrived.set()

        self.receive_then(key, keep)
        if not arrived.wait(timeout) and self._withdraw(key):
            raise TimeoutError(f"nothing was sent for {key} within {timeout} s")
        arrived.wait()
        value, error = outcome[0]
        if error is not None:
            raise error
        return value

    def abort(self, step: int, error: BaseException) -> None:
        """See `Transport`."""
        with self._lock:
            self._aborted.setdefault(step, error)
            self._values.pop(step, None)
            waiting = self._waiting.pop(step, {})
        for continuation in waiting.values():
            continuation(None, error)

    def finish(self, step: int) -> None:
        """See `Transport`. A receive that still waits fails: its step ended without it."""
        with self._lock:
            waiting = self._waiting.pop(step, {})
            for table in (self._values, self._sent, self._received, self._aborted):
                table.pop(step, None)
        for key, continuation in waiting.items():
            continuation(None, RuntimeError(f"the step of {key} ended before it was sent"))

    def traffic(self) -> dict[str, tuple[int, int]]:
        """(transfers, bytes) so far for each edge."""
        with self._lock:
            return {edge: (n, self._bytes[edge]) for edge, n in sorted(self._transfers.items())}

    def _withdraw(self, key: Key) -> bool:
        """Stop waiting for `key`; False when its continuation has been taken already."""
        with self._lock:
            taken = self._waiting.get(key.step, {}).pop(key, None) is None
            if not taken:
                self._received[key.step].discard(key)
            return not taken

    @staticmethod
    def _once(seen: dict[int, set[Key]], key: Key, what: str) -> None:
        keys = seen.setdefault(key.step, set())
        if key in keys:
            raise DuplicateTransferError(f"{key} was {what} twice")
        keys.add(key)
