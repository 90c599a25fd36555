"""A process that compiles kernels for another one: what runs in it.

Messages are frames: eight bytes of length, then the bytes. The parent sends a pickled kernel and
machine; both ends are the same program of the same user, so this is no way in for anybody. Answers
are plain bytes, so that nothing a dying process writes is ever unpickled: `DONE` and the linked
code, or `FAILED` where the parent should compile the kernel itself to see why.

Invariants: standard output belongs to messages alone; Ctrl-C is the parent's business. The process
ends when the parent closes its end, is gone, or asks for nothing in `IDLE_SECONDS`.
Not here: the parent's side (`crew`).
"""

from __future__ import annotations

import io
import os
import pickle
import select
import signal
import struct
from typing import TYPE_CHECKING

from ...compiler.kernel.kernel import For, Kernel, Loop, Parallel, Reduce, Scan, walk
from ...compiler.types import DType, dtype_named
from ..llvm.module import compile_module
from ..llvm.native.objects import link

if TYPE_CHECKING:
    from ..llvm.machine import Machine

_FEW_ITERATIONS = 16
DONE, FAILED = b"d", b"f"
IDLE_SECONDS = 60.0
_LOOK_SECONDS = 2.0  # how often an idle process looks whether its parent is alive
LENGTH = struct.Struct("<Q")


def compiled(kernel: Kernel, machine: Machine) -> bytes:
    """The linked code of one kernel, as a store keeps it."""
    level = 0 if is_light(kernel) else 2
    return link(compile_module([kernel], machine, level=level).code).to_bytes()


def is_light(kernel: Kernel) -> bool:
    """Whether it does so little that optimising it takes longer than all its runs: a few scalars
    or a few iterations, whatever the sizes of the call."""
    iterations = 1
    for statement in walk(kernel.body):
        if isinstance(statement, Parallel | For | Loop | Reduce | Scan):
            extent = statement.extent
            if not isinstance(extent, int):
                return False
            iterations *= max(extent, 1)
    return iterations <= _FEW_ITERATIONS


def serve(parent: int) -> None:
    """Answer requests from standard input until there will be no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    os.close(nowhere)
    write_frame(answers, DONE + __file__.encode())
    while _awaited(requests, parent):
        request = read_frame(requests)
        if request is None:
            return
        write_frame(answers, _answer(request))


class _Pickler(pickle.Pickler):
    """Element types travel by name: each exists once in a process."""

    def persistent_id(self, thing: object) -> str | None:
        return thing.name if isinstance(thing, DType) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: str) -> DType:
        return dtype_named(name)


def packed(kernel: Kernel, machine: Machine) -> bytes:
    """A request."""
    to = io.BytesIO()
    _Pickler(to, pickle.HIGHEST_PROTOCOL).dump((kernel, machine))
    return to.getvalue()


def _answer(request: bytes) -> bytes:
    try:
        kernel, machine = _Unpickler(io.BytesIO(request)).load()
        return DONE + compiled(kernel, machine)
    except Exception:  # noqa: BLE001 - whatever it is, the parent meets it again and says it
        return FAILED


def _awaited(requests: int, parent: int) -> bool:
    """Wait for a request; false if there will be none."""
    waited = 0.0
    while waited < IDLE_SECONDS and os.getppid() == parent:
        if select.select([requests], [], [], _LOOK_SECONDS)[0]:
            return True
        waited += _LOOK_SECONDS
    return False


def write_frame(to: int, message: bytes) -> None:
    """Send one message."""
    rest = memoryview(LENGTH.pack(len(message)) + message)
    while rest:
        rest = rest[os.write(to, rest) :]


def read_frame(source: int) -> bytes | None:
    """Receive one message; None where the other end is gone."""
    head = _read(source, LENGTH.size)
    return None if head is None else _read(source, LENGTH.unpack(head)[0])


def _read(source: int, size: int) -> bytes | None:
    parts = []
    while size > 0:
        part = os.read(source, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
