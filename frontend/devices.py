"""Devices of this process, and `tm.device` to say where operations run.

CPU devices are separate queues and memory arenas over the same processor; ``cpu:1`` exists as
soon as it is named.

Invariants: a device runs one segment at a time; ``cpu:0`` is home: arguments and results are
there.
Not here: choosing devices (compiler/passes/place.py).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from .compiler.device import DeviceName, parse_device
from .compiler.errors import error
from .runtime.forks import held_across_forks
from .switches import jit_disabled
from .tracing.state import running

HOME = DeviceName("cpu", 0)
_MOST = 64

_lock = held_across_forks()
_queues: dict[DeviceName, ThreadPoolExecutor] = {}
os.register_at_fork(after_in_child=_queues.clear)  # their threads are the parent's


def queue_of(device: DeviceName) -> ThreadPoolExecutor:
    """The thread that runs what is placed on `device`."""
    with _lock:
        found = _queues.get(device)
        if found is None:
            found = _queues[device] = ThreadPoolExecutor(1, f"tracemill {device}")
        return found


def devices_for(constraints: set[str]) -> tuple[DeviceName, ...]:
    """Home and every device that a constraint names."""
    named = {_existing(text) for text in constraints}
    full = sorted(d for d in named if d.index is not None)
    return (HOME, *(d for d in full if d != HOME))


@contextlib.contextmanager
def device(name: str) -> Iterator[None]:
    """Place the operations of a block on a device such as ``cpu:1`` (inside a jitted function).

    Under `disable_jit` they run where everything does. Raises DeviceError for a kind of device
    there is not.
    """
    _existing(name)
    if jit_disabled():
        yield
        return
    builder = running().builder
    before, builder.device = builder.device, name
    try:
        yield
    finally:
        builder.device = before


def _existing(text: str) -> DeviceName:
    if not isinstance(text, str):
        raise TypeError(f"a device is named by a string such as 'cpu:1', got {text!r}")
    found = parse_device(text)
    if found.kind != "cpu" or (found.index or 0) >= _MOST:
        raise error(
            "TM520",
            f"there is no device {text!r}",
            hint=f"there are cpu:0 to cpu:{_MOST - 1}",
        )
    return found
