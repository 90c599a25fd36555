"""Signals are put off while LLVM's objects are made and dropped.

An exception raised by a signal's handler (Ctrl-C) between two steps of llvmlite's bookkeeping makes
it free an object twice, or keep its lock.

Invariants: a signal that was put off is raised again at the end; handlers are what they were.
Not here: what native code does when it is interrupted (native/control.py).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """No handler runs in this block. Only the main thread runs them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    raising = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in raising:
            signal.signal(number, lambda number, frame: arrived.append(number))
        yield
    finally:
        for number, handler in raising.items():
            signal.signal(number, handler)
        for late in dict.fromkeys(arrived):
            signal.raise_signal(late)
