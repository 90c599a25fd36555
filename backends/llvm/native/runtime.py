"""The native runtime of this process: code mapped, process addresses filled in, pool and type
ready.

    runtime = native_runtime(blob)                 # once; `native_blob` gives the blob
    f = runtime.new_function(parameters, slow, raiser)
    f.install(encode(specialisation))

Invariants: one runtime per process, never unmapped, because workers and objects outlive everything
else. After a fork the child's pool restarts on first use. Nothing here reads the environment: how
many threads to use is said by the caller.
Not here: compiling the native code (`build`), making specialisations (`encoder`).
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from .control import Control, Pool
from .encoder import Encoded
from .layout import CHUNKS_PER_THREAD, MAX_PARAMETERS, SERIAL_NS
from .loader import Loaded, load
from .memory import Record
from .memory_handler import (
    MemoryUse,
    handler_unsupported,
    keep_forever,
    new_capsule,
    new_memory,
)
from .objects import CodeBlob
from .process import fill_process
from .python_type import make_type

_SPINS = 2_000  # some 50-100 us awake before an idle thread sleeps

_NEVER = 2**63 - 1
_MAX_THREADS = 4096

_object, _address, _long = ctypes.py_object, ctypes.c_void_p, ctypes.c_int64


class Parameter(NamedTuple):
    """A parameter of a compiled function. `default` is a one-tuple where there is one."""

    name: str
    default: tuple[object] | None = None
    keyword_only: bool = False


class NativeRuntime:
    """Makes native functions; owns the pool."""

    def __init__(self, blob: CodeBlob, threads: int) -> None:
        self.code: Loaded = load(blob)
        self._pool = Record(Pool)
        self._pool["spins"] = _SPINS
        self._memory = new_memory()
        self._process = fill_process(self._pool.address, self._memory.address)
        self._memory["process"] = self._process.address
        self._refused = handler_unsupported()
        if self._refused is None:
            self._process["mem_handler"] = id(new_capsule(self.code, self._memory))
        keep_forever(self)
        self.set_num_threads(threads)
        self.function_type: Any = make_type(
            "tracemill.Function",
            {
                name: self.code.address_of(name)
                for name in ("traverse", "clear", "dealloc", "descr_get")
            },
        )
        self._new = self._prototype(
            "new_function",
            _object,
            [_address, _object, _object, _long, _long, _object, _object, _object, _object, _object],
        )
        self._install = self._prototype("install", None, [_object, _address])
        self._remove = self._prototype("remove", None, [_object, _address])
        self._release = self._prototype("release_blocks", None, [_address, _address])
        os.register_at_fork(
            before=lambda: self._lock_memory(self._memory.address),
            after_in_parent=lambda: self._unlock_memory(self._memory.address),
            after_in_child=self._after_fork,
        )

    # Made at first use: each is a class of its own, and few processes need them.

    @cached_property
    def _limit(self) -> Callable[..., Any]:
        return self._prototype("set_time_limit", None, [_object, _long])

    @cached_property
    def _let_pass(self) -> Callable[..., Any]:
        return self._prototype("let_pass", None, [_object])

    @cached_property
    def _lock(self) -> Callable[..., Any]:
        return self._prototype("lock_cell", None, [_address, _address, _long])

    @cached_property
    def _unlock(self) -> Callable[..., Any]:
        return self._prototype("unlock_cell", None, [_address, _long])

    @cached_property
    def _trim(self) -> Callable[..., Any]:
        return self._prototype("trim", None, [_address, _long])

    @cached_property
    def _lock_memory(self) -> Callable[..., Any]:
        return self._prototype("lock", None, [_address])

    @cached_property
    def _unlock_memory(self) -> Callable[..., Any]:
        return self._prototype("unlock", None, [_address])

    def _prototype(self, name: str, result: Any, parameters: list[Any]) -> Callable[..., Any]:
        return ctypes.PYFUNCTYPE(result, *parameters)(self.code.address_of(name))

    def _after_fork(self) -> None:
        self._process["generation"] = self._process["generation"] + 1
        for name in ("state", "next", "owner", "started", "sleepers", "joining"):
            self._pool[name] = 0
        self._memory["lock"] = 0

    @property
    def memory_use(self) -> MemoryUse:
        """What the memory of large results and temporaries has done so far."""
        memory = self._memory
        return MemoryUse(
            kept=memory["kept"],
            limit=memory["limit"],
            mapped=memory["mapped"],
            reused=memory["reused"],
            refused=self._refused,
        )

    def set_memory_limit(self, most: int) -> None:
        """Keep at most so many bytes of freed large arrays for later calls; 0 keeps none."""
        if most < 0:
            raise ValueError(f"expected a number of bytes, got {most}")
        self._memory["limit"] = most
        self._trim(self._memory.address, most)

    def spread(self, extent: int, grain: int, work: int) -> tuple[int, int]:
        """The chunk and the threads with which a call launches a kernel of `work` nanoseconds."""
        if work < SERIAL_NS:
            return max(extent, 1), 1
        threads = min(1 + work // SERIAL_NS, self.num_threads)
        return max(-(-extent // (threads * CHUNKS_PER_THREAD)), grain), threads

    def trim_memory(self) -> None:
        """Give the memory kept for later calls back to the system."""
        self._trim(self._memory.address, 0)

    @property
    def num_threads(self) -> int:
        """Threads a kernel may use, the caller's included."""
        return self._pool["size"]

    def set_num_threads(self, threads: int) -> None:
        """Use this many threads from the next kernel on; workers too many stay asleep."""
        if not 1 <= threads <= _MAX_THREADS:
            raise ValueError(f"expected 1 to {_MAX_THREADS} threads, got {threads}")
        self._pool["size"] = threads

    def new_function(
        self,
        parameters: Sequence[Parameter],
        slow: Callable[..., object],
        raiser: Callable[..., object],
        keepalive: object = None,
    ) -> Any:
        """A callable of `function_type` without specialisations: every call reaches `slow`.

        `slow` gets the arguments as they were given. `raiser(owner, code, node, word0, word1,
        word2)` must raise. `keepalive` is any object the function shall hold and the garbage
        collector see.
        """
        if len(parameters) > MAX_PARAMETERS:
            raise ValueError(f"expected at most {MAX_PARAMETERS} parameters, got {len(parameters)}")
        missing = object()
        names = tuple(sys.intern(parameter.name) for parameter in parameters)
        defaults = tuple(
            missing if parameter.default is None else parameter.default[0]
            for parameter in parameters
        )
        positional = sum(not parameter.keyword_only for parameter in parameters)
        made: Any = self._new(
            self._process.address,
            self.function_type,
            names,
            positional,
            len(names),
            defaults,
            missing,
            slow,
            raiser,
            keepalive,
        )
        made._installed = []
        return made

    def install(self, function: Any, encoded: Encoded) -> None:
        """Put a specialisation first in the table, which keeps it. An `Encoded` serves once."""
        if encoded.installed:
            raise ValueError("this specialisation is or was installed; encode another")
        encoded.installed = True
        function._installed.append(encoded)
        self._install(function, encoded.address)
        freed = weakref.finalize(encoded, _free, self._release, self._process, encoded.record)
        freed.atexit = False

    def remove(self, function: Any, encoded: Encoded) -> None:
        """Take a specialisation out of the table; calls of it in flight go on."""
        self._remove(function, encoded.address)
        function._installed.remove(encoded)

    def rest(self, change: int) -> None:
        """Count blocks of code in which calls of native functions go to their slow path."""
        self._process["resting"] = self._process["resting"] + change

    def call(self, function: Any, args: Sequence[Any], names: Mapping[str, Any]) -> Any:
        """Call a native function from its slow path, whoever rests."""
        if self._process["resting"]:
            self._let_pass(function)
        return function(*args, **names)

    def set_time_limit(self, function: Any, seconds: float | None) -> None:
        """Calls longer than this fail with `Failure.DEADLINE`."""
        self._limit(function, 0 if seconds is None else int(seconds * 1e9))

    def control_block(self) -> Record:
        """A control block to call a kernel directly from Python, on this thread.

        Its calls hold no GIL, so they never look at signals; a deadline works.
        """
        record = Record(Control)
        begin = ctypes.CFUNCTYPE(None, _address, _address)(self.code.address_of("begin_control"))
        begin(record.address, self._process.address)
        record["next_look"] = _NEVER
        return record

    def acquire(self, address: int, write: bool) -> None:
        """Take the lock of a Variable's cell (`runtime.cells.CellLocks`); waits without the GIL."""
        self._lock(self._process.address, address, int(write))

    def release(self, address: int, write: bool) -> None:
        """Give the lock of a Variable's cell back."""
        self._unlock(address, int(write))

    def launch(
        self, ctl: Record, kernel: int, args: int, end: int, grain: int, threads: int = 0
    ) -> None:
        """Run a kernel over [0, end) on the pool, without the GIL; for tests and benchmarks."""
        prototype = ctypes.CFUNCTYPE(None, _address, _address, _address, _long, _long, _long)
        run = prototype(self.code.address_of("launch"))
        run(ctl.address, kernel, args, end, grain, threads)


def _free(release: Callable[[int, int], None], process: Record, specialisation: Record) -> None:
    """Give back what a specialisation nobody holds any more kept between calls."""
    release(process.address, specialisation.address)
