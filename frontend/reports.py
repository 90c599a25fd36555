"""What `TRACEMILL_LOG` shows of a compilation: graph, passes, kernels, cache.

Invariants: text is made only where its topic is switched on; reporting changes nothing that is
compiled.
Not here: the topic `recompiles` (calls/dispatch.py), which topics there are (settings.py),
progress of a long compilation (progress.py, told here of each kernel).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from . import engine
from .compiler.ir.graph import Graph
from .compiler.ir.printer import print_graph
from .compiler.kernel.kernel import Kernel
from .compiler.kernel.printer import kernel_text
from .progress import counter
from .runtime.backend import CodeStore
from .settings import log, logs


def report_graph(graph: Graph) -> None:
    """Topic ``graph``: the traced graph, with the user's line behind each node."""
    if logs("graph"):
        log("graph", "\n" + print_graph(graph, locations=True).rstrip())


def report_kernels(kernels: Sequence[Kernel]) -> None:
    """Topic ``kernels``: the scheduled loop nests."""
    if logs("kernels"):
        for kernel in kernels:
            log("kernels", "\n" + kernel_text(kernel).rstrip())


class PassReport:
    """Topic ``passes``: nodes before and after each pass, and its time with verification."""

    def __init__(self, graph: Graph, clock: Callable[[], float] = time.perf_counter) -> None:
        self._name = graph.name
        self._count = len(graph.nodes)
        self._clock = clock
        self._began = clock()

    def __call__(self, name: str, made: Graph) -> None:
        """Report a pass that has just run."""
        now = self._clock()
        spent, before, after = now - self._began, self._count, len(made.nodes)
        log("passes", f"{self._name} {name}: {before} -> {after} nodes, {spent * 1e3:.2f} ms")
        self._count, self._began = after, self._clock()


class ReportingStore:
    """A store of compiled code that reports under ``cache`` and counts kernels as they get done."""

    def __init__(self, store: CodeStore, kernels: Sequence[Kernel]) -> None:
        self._store = store
        self._count = counter()
        self._names: dict[str, str] = {}
        if logs("cache"):
            self._names = {engine.backend().fingerprint(kernel): kernel.name for kernel in kernels}
        self._unasked = set(self._names)

    def get(self, key: str) -> bytes | None:
        """What is stored under the key."""
        found = self._store.get(key)
        if found is not None:
            self._count()
        if key in self._names:
            self._unasked.discard(key)
            log("cache", f"{'miss' if found is None else 'hit'} {self._names[key]} {key[:12]}")
        return found

    def put(self, key: str, payload: bytes) -> None:
        """Store under the key."""
        self._count()
        self._store.put(key, payload)

    def close(self) -> None:
        """Report the kernels that this process had already, for which nobody asked. What is put
        later is made in the background."""
        self._count = _nothing
        for key, name in self._names.items():
            if key in self._unasked:
                log("cache", f"hit {name} {key[:12]}, in this process")


def _nothing() -> None:
    pass
