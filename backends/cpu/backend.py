"""The cpu back end: kernels to mapped machine code, through a store of compiled bytes.

A kernel's code is stored under the fingerprint of its text and the target's key, so equal
kernels of any graph compile once. LLVM is imported when the first kernel has to be compiled: a
process whose kernels are all in the store never loads it.

Invariants: one address per distinct kernel and process; safe from several threads.
Not here: code generation (backends/llvm), schedules (compiler/kernel), running plans (native).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...compiler.kernel.fingerprint import dims_in_order, fingerprint
from ...compiler.kernel.kernel import Kernel
from ...runtime.backend import CodeStore, LoadedKernels
from ..llvm.native.loader import Loaded, load
from ..llvm.native.objects import CodeBlob, LinkError
from .target import CpuTarget, host_key, host_target

if TYPE_CHECKING:
    from ..llvm.machine import Machine

# Grows when code generation changes what it makes of a kernel.
CODE_VERSION = 2


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
        self._lock = threading.Lock()

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
        with self._lock:
            missing = {key: kernel for key, kernel in zip(keys, kernels) if key not in self._codes}
            if store is not None:
                for key in [k for k in missing if self._restore(k, store)]:
                    del missing[key]
            if missing:
                self._compile(missing, store)
            codes = [self._codes[key] for key in keys]
        return LoadedKernels(
            tuple(c.address for c in codes), tuple(c.loaded for c in codes), len(missing)
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

    def _restore(self, key: str, store: CodeStore) -> bool:
        stored = store.get(key)
        if stored is None:
            return False
        try:
            self._map(key, CodeBlob.from_bytes(stored))
        except LinkError:
            return False
        return True

    def _map(self, key: str, blob: CodeBlob) -> None:
        loaded = load(blob)
        self._codes[key] = _Code(loaded.address_of("k0"), loaded)

    def _compile(self, missing: Mapping[str, Kernel], store: CodeStore | None) -> None:
        """Compile, store and map; with workers where that is sooner."""
        keys, kernels = list(missing), list(missing.values())

        def done(position: int, code: bytes) -> None:
            if store is not None:
                store.put(keys[position], code)
            self._map(keys[position], CodeBlob.from_bytes(code))

        machine, crew = self._chosen(), _crew()
        if self._workers and crew.pays(kernels):
            crew.compile_all(kernels, machine, done)
            return
        for position, kernel in enumerate(kernels):
            done(position, crew.worker.compiled(kernel, machine))

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


def _crew() -> Any:
    return import_module(".crew", __package__)
