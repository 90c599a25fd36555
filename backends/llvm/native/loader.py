"""Executable memory: map a `CodeBlob` so that it can run, give addresses, unmap it when
unreachable.

Invariants: memory is never writable and executable at once (written first, sealed after); code
unmaps only when its `Loaded` is collected, never at interpreter exit, because pool threads may
still stand in it.
Not here: reading object code (`objects`); LLVM is not imported, so a warm start never loads it.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections.abc import Mapping
from functools import cache
from typing import Any

from .objects import CodeBlob

_PROT_READ, _PROT_WRITE, _PROT_EXEC = 1, 2, 4
_MAP_PRIVATE_ANONYMOUS = 0x22
_MAP_FAILED = ctypes.c_void_p(-1).value


class LoadError(OSError):
    """The system refused executable memory; the message carries its reason."""


class Loaded:
    """Mapped code, as long as this object lives: whoever keeps an address keeps this."""

    def __init__(self, base: int, size: int, symbols: Mapping[str, int]) -> None:
        self.base = base
        self.size = size
        self._symbols = symbols
        self._finalizer = weakref.finalize(self, _unmap, base, size)
        self._finalizer.atexit = False

    def address_of(self, name: str) -> int:
        """The address of an offered name; `KeyError` if the code does not offer it."""
        return self.base + self._symbols[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names this code offers."""
        return tuple(self._symbols)


def load(blob: CodeBlob) -> Loaded:
    """Map the blob into fresh memory, readable and executable."""
    if blob.alignment > mmap.PAGESIZE:
        raise LoadError(f"code wants alignment {blob.alignment}, a page gives {mmap.PAGESIZE}")
    system = _libc()
    size = max(-(-len(blob.code) // mmap.PAGESIZE), 1) * mmap.PAGESIZE
    base = system.mmap(None, size, _PROT_READ | _PROT_WRITE, _MAP_PRIVATE_ANONYMOUS, -1, 0)
    if base in (None, _MAP_FAILED):
        raise LoadError(ctypes.get_errno(), f"no memory for {size} bytes of code")
    ctypes.memmove(base, blob.code, len(blob.code))
    if system.mprotect(base, size, _PROT_READ | _PROT_EXEC) != 0:
        reason = ctypes.get_errno()
        _unmap(base, size)
        raise LoadError(reason, "the system does not allow executable memory")
    return Loaded(base, size, blob.symbols)


@cache
def _libc() -> Any:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    ]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library


def _unmap(base: int, size: int) -> None:
    _libc().munmap(base, size)
