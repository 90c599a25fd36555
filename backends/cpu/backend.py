"""The cpu back end: kernels to mapped machine code, through a store of compiled bytes.

A kernel's code is stored under the fingerprint of its text and the target's key, so equal
kernels of any graph compile once, and of many that differ in constants only one (`templates`).
LLVM is imported when the first kernel has to be compiled: a process whose kernels are all in the
store never loads it.

Where many kernels are missing, those that are short in the call at hand are compiled quickly, so
that the call can begin, and again while it runs (`effort` says which, `improving` does it).

Invariants: one address per distinct kernel and process; safe from several threads.
Not here: code generation (backends/llvm), schedules (compiler/kernel), running plans (native).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...compiler.kernel.fingerprint import identity
from ...compiler.kernel.kernel import Kernel
from ...compiler.uncollected import here_to_stay
from ...runtime.backend import CodeStore, LoadedKernels, StoredCode
from ...runtime.forks import held_across_forks
from ..llvm.native.objects import LinkError
from .effort import quick_first
from .improving import Improver, Job
from .mapped import MappedCode
from .target import CpuTarget, host_key, host_target
from .templates import Family, families
from .wire import Effort, Request

if TYPE_CHECKING:
    from ..llvm.machine import Machine

# Grows when code generation changes what it makes of a kernel.
CODE_VERSION = 6

_COMPILING = held_across_forks()
_MANY = 4  # kernels, from which on it is asked whether workers pay


class CpuBackend:
    """Code for the host, or for `machine` (another feature level, for tests).

    workers: whether other processes may be asked to compile (`crew` says when it pays).
    codes: where mapped code is found, by default a table of its own. report: told in words of
    what is compiled in the background; `improving` says how far that is and can be waited for.
    """

    name = "cpu"

    def __init__(
        self,
        machine: Machine | None = None,
        target: CpuTarget | None = None,
        *,
        workers: bool = True,
        codes: MappedCode | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self._machine = machine
        self._workers = workers
        self.target = target or host_target()
        self._codes = MappedCode() if codes is None else codes
        self.improving = Improver(report)

    @property
    def key(self) -> str:
        """What compiled bytes depend on."""
        chosen = host_key() if self._machine is None else self._machine.key
        return f"cpu {CODE_VERSION} {chosen}"

    def compile_kernels(
        self,
        kernels: Sequence[Kernel],
        store: CodeStore | None = None,
        times: Sequence[int | None] | None = None,
    ) -> LoadedKernels:
        """Addresses of `kernels`, compiled together where neither process nor store has them."""
        keys = [self.fingerprint(kernel) for kernel in kernels]
        known = {} if times is None else dict(zip(keys, times, strict=True))
        compiled = 0
        with _COMPILING:
            missing = {key: kernel for key, kernel in zip(keys, kernels) if key not in self._codes}
            needed = {k: Family(v, [(k, b"")]) for k, v in missing.items()}
            for key in self._restored(needed, store):
                del missing[key]
            if missing:
                needed = families(missing, self.fingerprint)
                shared = {key: needed[key] for key in needed.keys() - missing.keys()}
                for key in self._restored(shared, store):
                    del needed[key]
                compiled = self._compile(needed, store, known)
            return self._codes.loaded(keys, compiled)

    def fingerprint(self, kernel: Kernel) -> str:
        """The kernel's key: its canonical text, the order of its sizes, and the target."""
        canonical, order = identity(kernel)
        text = f"{self.key}\0{len(kernel.dims)} {list(order)}\0{canonical}"
        return hashlib.sha256(text.encode()).hexdigest()

    def texts(self, kernels: Sequence[Kernel]) -> Mapping[str, str]:
        """The ``llvm`` and ``asm`` text of kernels."""
        made: Mapping[str, str] = _llvm().texts(kernels, self._chosen())
        return made

    def _restored(
        self,
        needed: Mapping[str, Family],
        store: CodeStore | None,
        effort: Effort = Effort.BEST,
    ) -> list[str]:
        """Map what the store has; its keys."""
        found: list[str] = []
        if store is None:
            return found
        for key, family in needed.items():
            code = store.get(_entry(key, effort))
            if code is not None:
                try:
                    self._map(key, family, code, effort)
                except LinkError:
                    continue
                found.append(key)
        return found

    def _map(self, key: str, family: Family, code: bytes, effort: Effort) -> None:
        table = self._codes
        map_code = table.map_quick if effort is Effort.QUICK else table.map
        for kernel, words in family.members:
            map_code(StoredCode(kernel, key, words), code)

    def _compile(
        self, needed: Mapping[str, Family], store: CodeStore | None, times: Mapping[str, int | None]
    ) -> int:
        """Compile, store and map, with workers where that is sooner; how many there were."""
        quick = self._quick(needed, times)
        there = set(self._restored({key: needed[key] for key in quick}, store, Effort.QUICK))
        keys = [key for key in needed if key not in there]
        efforts = [Effort.QUICK if key in quick else Effort.BEST for key in keys]

        def done(position: int, code: bytes) -> None:
            key, effort = keys[position], efforts[position]
            if store is not None:
                store.put(_entry(key, effort), code)
            self._map(key, needed[key], code, effort)

        if keys:
            machine = self._chosen()
            requests = [Request(needed[k].kernel, machine, e) for k, e in zip(keys, efforts)]
            if self._workers and len(requests) >= _MANY and _crew().pays(requests):
                _crew().compile_all(requests, done)
            else:
                for position, request in enumerate(requests):
                    done(position, _worker().answer(request))
        if quick:
            self.improving.add([self._job(key, needed[key], store) for key in sorted(quick)])
        return len(keys)

    def _quick(
        self, needed: Mapping[str, Family], times: Mapping[str, int | None]
    ) -> frozenset[str]:
        """Which of these to compile quickly first."""
        if not self._workers or not self.improving.possible:
            return frozenset()
        longest = {
            key: _longest([times.get(kernel) for kernel, _ in family.members])
            for key, family in needed.items()
        }
        return quick_first({key: family.kernel for key, family in needed.items()}, longest)

    def _job(self, key: str, family: Family, store: CodeStore | None) -> Job:
        return Job(family.kernel, self._machine, partial(self._improved, key, family, store))

    def _improved(self, key: str, family: Family, store: CodeStore | None, code: bytes) -> int:
        """Take in the best code of a kernel; how many calls go to it now."""
        if store is not None:
            store.put(_entry(key, Effort.BEST), code)
        stored = [StoredCode(kernel, key, words) for kernel, words in family.members]
        return sum(self._codes.improve(one, code) for one in stored)

    def _chosen(self) -> Machine:
        if self._machine is not None:
            return self._machine
        host: Machine = _machines().host_machine()
        return host


def _longest(times: Sequence[int | None]) -> int | None:
    """None where one of them is not known, and those that are known are 0."""
    longest = max([time or 0 for time in times], default=0)
    return None if longest == 0 and None in times else longest


def _entry(key: str, effort: Effort) -> str:
    """The name of a kernel's code in a store."""
    return key if effort is Effort.BEST else f"{key} quick"


# The modules that import llvmlite, loaded at their first use (see the docstring).
def _llvm() -> Any:
    return _loaded("..llvm.module")


def _machines() -> Any:
    return _loaded("..llvm.machine")


def _worker() -> Any:
    return _loaded(".worker")


def _crew() -> Any:
    return _loaded(".crew")


def _loaded(name: str) -> Any:
    with here_to_stay():
        return import_module(name, __package__)
