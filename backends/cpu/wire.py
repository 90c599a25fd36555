"""What a process that compiles and its parent say to each other.

Messages are frames: eight bytes of length, then the bytes. The parent sends pickled kernels; both
ends are the same program of the same user, so this is no way in for anybody. Answers are plain
bytes, so that nothing a dying process writes is ever unpickled: `DONE` and the linked code, or
`FAILED` where the parent should compile the kernel itself to see why.

Invariants: nothing here needs LLVM: a parent that only hands work out never loads it.
Not here: the process (`worker`) and its parent's side (`hands`).
"""

from __future__ import annotations

import enum
import io
import os
import pickle
import struct
from typing import TYPE_CHECKING, NamedTuple

from ...compiler.kernel.kernel import Kernel
from ...compiler.types import DType, dtype_named

if TYPE_CHECKING:
    from ..llvm.machine import Machine

DONE, FAILED = b"d", b"f"
LENGTH = struct.Struct("<Q")


class Effort(enum.Enum):
    """How good code shall be: soon, or for good. It computes the same bits."""

    QUICK = "quick"
    BEST = "best"


class Request(NamedTuple):
    """A kernel to compile. machine: None for the processor of the process that is asked."""

    kernel: Kernel
    machine: Machine | None
    effort: Effort = Effort.BEST


class _Pickler(pickle.Pickler):
    """Element types travel by name: each exists once in a process."""

    def persistent_id(self, thing: object) -> str | None:
        return thing.name if isinstance(thing, DType) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: str) -> DType:
        return dtype_named(name)


def packed(request: Request) -> bytes:
    """A request as bytes."""
    to = io.BytesIO()
    _Pickler(to, pickle.HIGHEST_PROTOCOL).dump(tuple(request))
    return to.getvalue()


def unpacked(data: bytes) -> Request:
    """The inverse, for the process that is asked."""
    return Request(*_Unpickler(io.BytesIO(data)).load())


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
