"""The cpu back end: kernels to mapped machine code, through a store of compiled bytes.

A kernel's code is stored under the fingerprint of its text and the target's key, so equal
kernels of any graph compile once, and of many that differ in constants only one (`templates`).
LLVM is imported when the first kernel has to be compiled: a process whose kernels are all in the
store never loads it.

Invariants: one address per distinct kernel and process; safe from several threads.
Not here: code generation (backends/llvm), schedules (compiler/kernel), running plans (native).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...compiler.kernel.fingerprint import dims_in_order, fingerprint
from ...compiler.kernel.kernel import Kernel
from ...runtime.backend import CodeStore, LoadedKernels
from ...runtime.forks import held_across_forks
from ..llvm.native.loader import Loaded, load
from ..llvm.native.objects import LinkError
from .target import CpuTarget, host_key, host_target
from .templates import Family, families, filled

if TYPE_CHECKING:
    from ..llvm.machine import Machine

# Grows when code generation changes what it makes of a kernel.
CODE_VERSION = 3

_COMPILING = held_across_forks()
_MANY = 4  # kernels, from which on it is asked whether workers pay


@dataclass(frozen=True, slots=True)
class _Code:
    address: int
    loaded: Loaded


class CpuBackend:
    """Code for the host, or for `machine` (another feature level, for tests).

    workers: whether other processes may be asked to compile (`crew` says when it pays).
    """

    name = "cpu"

    def __init__(
        self,
        machine: Machine | None = None,
        target: CpuTarget | None = None,
        *,
        workers: bool = True,
    ) -> None:
        self._machine = machine
        self._workers = workers
        self.target = target or host_target()
        self._codes: dict[str, _Code] = {}

    @property
    def key(self) -> str:
        """What compiled bytes depend on."""
        chosen = host_key() if self._machine is None else self._machine.key
        return f"cpu {CODE_VERSION} {chosen}"

    def compile_kernels(
        self, kernels: Sequence[Kernel], store: CodeStore | None = None
    ) -> LoadedKernels:
        """Addresses of `kernels`, compiled together where neither process nor store has them."""
        keys = [self.fingerprint(kernel) for kernel in kernels]
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
                compiled = self._compile(needed, store)
            codes = [self._codes[key] for key in keys]
        return LoadedKernels(
            tuple(c.address for c in codes), tuple(c.loaded for c in codes), compiled
        )

    def fingerprint(self, kernel: Kernel) -> str:
        """The kernel's key: its canonical text, the order of its sizes, and the target."""
        order = [kernel.dims.index(name) for name in dims_in_order(kernel)]
        text = f"{self.key}\0{len(kernel.dims)} {order}\0{fingerprint(kernel)}"
        return hashlib.sha256(text.encode()).hexdigest()

    def texts(self, kernels: Sequence[Kernel]) -> Mapping[str, str]:
        """The ``llvm`` and ``asm`` text of kernels."""
        made: Mapping[str, str] = _llvm().texts(kernels, self._chosen())
        return made

    def _restored(self, needed: Mapping[str, Family], store: CodeStore | None) -> list[str]:
        """Map what the store has; its keys."""
        found: list[str] = []
        if store is None:
            return found
        for key, family in needed.items():
            code = store.get(key)
            if code is not None:
                try:
                    self._map(family, code)
                except LinkError:
                    continue
                found.append(key)
        return found

    def _map(self, family: Family, code: bytes) -> None:
        for key, words in family.members:
            loaded = load(filled(code, words))
            self._codes[key] = _Code(loaded.address_of("k0"), loaded)

    def _compile(self, needed: Mapping[str, Family], store: CodeStore | None) -> int:
        """Compile, store and map, with workers where that is sooner; how many there were."""
        keys, chosen = list(needed), list(needed.values())
        kernels = [family.kernel for family in chosen]

        def done(position: int, code: bytes) -> None:
            if store is not None:
                store.put(keys[position], code)
            self._map(chosen[position], code)

        if not kernels:
            return 0
        machine = self._chosen()
        if self._workers and len(kernels) >= _MANY and _crew().pays(kernels):
            _crew().compile_all(kernels, machine, done)
            return len(kernels)
        for position, kernel in enumerate(kernels):
            done(position, _worker().compiled(kernel, machine))
        return len(kernels)

    def _chosen(self) -> Machine:
        if self._machine is not None:
            return self._machine
        host: Machine = _machines().host_machine()
        return host


# The modules that import llvmlite, loaded at their first use (see the docstring).
def _llvm() -> Any:
    return import_module("..llvm.module", __package__)


def _machines() -> Any:
    return import_module("..llvm.machine", __package__)


def _worker() -> Any:
    return import_module(".worker", __package__)


def _crew() -> Any:
    return import_module(".crew", __package__)
