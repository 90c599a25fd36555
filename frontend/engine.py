"""The composition root: back end, native runtime, cache and store of this process.

Everything below the frontend is handed what it needs; here it is made, once, at first use.

Invariants: one engine per process; making it loads neither LLVM nor Numba while the cache has
what is asked for.
Not here: what is compiled, when.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING

from .backends.cpu.mapped import MappedCode
from .backends.cpu.target import host_target
from .backends.llvm.native.build import NativeCode
from .backends.llvm.native.runtime import NativeRuntime
from .calls import doors
from .codestamp import code_stamp
from .compiler.kernel.target import Target
from .runtime.cache import CompileCache, cache_key
from .runtime.forks import held_across_forks
from .settings import log, settings

if TYPE_CHECKING:
    from .backends.cpu.backend import CpuBackend

_lock = held_across_forks()


class _CacheMapping(MutableMapping[str, bytes]):
    """The compile cache, or this process's memory where it is off, as a mapping."""

    def __init__(self, cache: CompileCache | None) -> None:
        self._cache = cache
        self._memory: dict[str, bytes] = {}

    def __getitem__(self, key: str) -> bytes:
        found = self._memory.get(key)
        if found is None and self._cache is not None:
            found = self._cache.get(cache_key([code_stamp(), key]))
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: str, value: bytes) -> None:
        if self._cache is None or not self._cache.put(cache_key([code_stamp(), key]), value):
            self._memory[key] = value

    def __delitem__(self, key: str) -> None:
        self._memory.pop(key, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._memory)

    def __len__(self) -> int:
        return len(self._memory)

    def put(self, key: str, payload: bytes) -> None:
        """Same as setting an item; what back ends call."""
        self[key] = payload


@functools.cache
def compile_cache() -> CompileCache | None:
    """The cache on disk; None when it is switched off."""
    folder = settings().cache_dir
    return None if folder is None else CompileCache(str(folder))


@functools.cache
def code_store() -> _CacheMapping:
    """Where compiled bytes are looked for and kept."""
    return _CacheMapping(compile_cache())


def begin() -> None:
    """Have native code made, where the cache has none, while other things are loaded."""
    with _lock:
        _native_code()


def native() -> NativeRuntime:
    """The native runtime, made at first use."""
    with _lock:
        return _native()


@functools.cache
def _native_code() -> NativeCode:
    return NativeCode(code_store())


@functools.cache
def _native() -> NativeRuntime:
    code = _native_code()
    if code.is_being_made:
        doors.load_compiler()  # nothing is kept here yet: it will be needed next
    return NativeRuntime(code.blob(), settings().threads)


@functools.cache
def codes() -> MappedCode:
    """The machine code of this process."""
    return MappedCode()


@functools.cache
def backend() -> CpuBackend:
    """The back end that compiles for this processor; loaded with the compiler at first use."""
    return doors.cpu_backend(codes(), functools.partial(log, "background"))


@functools.cache
def target() -> Target:
    """What schedules know of this machine."""
    return host_target().for_schedules(settings().threads)


def set_num_threads(threads: int) -> None:
    """Let kernels use this many threads, the caller's included. Raises ValueError below 1."""
    native().set_num_threads(threads)


def num_threads() -> int:
    """How many threads kernels may use."""
    return native().num_threads
