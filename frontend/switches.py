"""Switches for a block of code: `disable_jit`.

Not here: settings of the process (settings.py).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from . import engine
from .runtime.forks import held_across_forks


class _State(threading.local):
    disabled = 0


_state = _State()
_lock = held_across_forks()


def jit_disabled() -> bool:
    """True inside `disable_jit` in this thread."""
    return _state.disabled > 0


@contextlib.contextmanager
def disable_jit() -> Iterator[None]:
    """Run compiled functions as the plain Python they are, so that pdb and print work in them."""
    native = engine.native()
    with _lock:
        native.rest(1)
    _state.disabled += 1
    try:
        yield
    finally:
        _state.disabled -= 1
        with _lock:
            native.rest(-1)
