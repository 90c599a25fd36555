"""Where the time of a call goes: every row of its plan, timed on its own.

Not here: the plan, its execution in a call (native).
"""

from __future__ import annotations

import ctypes
import html
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import engine
from .calls.arguments import flat_call
from .compiler.plan import ExecutionPlan, Launch, Origin, all_rows
from .compiler.records import dataclass
from .runtime.cells import aligned

if TYPE_CHECKING:
    from .calls.dispatch import Dispatcher, Version

_REPEATS = 15


@dataclass(frozen=True, slots=True)
class KernelTime:
    """One launch: seconds (the best of several), bytes of its buffers, the user's line."""

    kernel: str
    seconds: float
    bytes: int
    location: str

    @property
    def bandwidth(self) -> float:
        """Bytes a second, each buffer counted once."""
        return self.bytes / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """Kernels of one call in order; prints as a table."""

    rows: tuple[KernelTime, ...]

    def __str__(self) -> str:
        total = sum(row.seconds for row in self.rows) or 1.0
        lines = [f"{'kernel':28s} {'us':>9s} {'share':>6s} {'GB/s':>7s}  line"]
        for row in self.rows:
            lines.append(
                f"{row.kernel[:28]:28s} {row.seconds * 1e6:9.2f} {row.seconds / total:6.1%} "
                f"{row.bandwidth / 1e9:7.2f}  {row.location}"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        total = sum(row.seconds for row in self.rows) or 1.0
        cells = "".join(
            f"<tr><td>{html.escape(row.kernel)}</td>"
            f"<td style='text-align:right'>{row.seconds * 1e6:.2f}</td>"
            f"<td><div style='background:#06789b;height:0.7em;width:{row.seconds / total:.0%}'>"
            f"</div></td><td>{html.escape(os.path.basename(row.location))}</td></tr>"
            for row in self.rows
        )
        head = "<tr><th>kernel</th><th>µs</th><th style='width:40%'>share</th><th>line</th></tr>"
        return f"<table style='font:13px monospace;width:100%'>{head}{cells}</table>"


def profile_call(dispatcher: Dispatcher, args: Sequence[Any], keywords: dict[str, Any]) -> Profile:
    """Run the kernels of the version that serves these arguments, on scratch memory.

    Arguments and variables are copied first, so nothing the caller can see is written.
    """
    call = flat_call(dispatcher.signature.bind(args, keywords), dispatcher.signature.names)
    version = next((v for v in dispatcher.versions if v.traced.mismatch(call) is None), None)
    if version is None:
        version = dispatcher.compile(call)
    try:
        return Profile(tuple(_Replay(version, call.leaves).run()))
    finally:
        if version.traced.changed:
            dispatcher.give_up(version)


class _Replay:
    """A plan's buffers and sizes, evaluated in Python for one call."""

    def __init__(self, version: Version, leaves: Sequence[Any]) -> None:
        assert version.built is not None, "functions over several devices have no one plan"
        self.plan: ExecutionPlan = version.built.plan
        self.addresses = engine.codes().best(version.built.loaded.addresses)
        self.inputs = version.traced.trace.inputs
        self.variables = version.traced.trace.variables
        self.leaves = leaves
        self.sizes = self._sizes()
        self.buffers = [self._buffer(i) for i in range(len(self.plan.buffers))]

    def run(self) -> list[KernelTime]:
        """Time every launch in order, those of a loop for one trip, but for those that these sizes
        leave nothing to do."""
        launches = [row for row in all_rows(self.plan.rows) if isinstance(row, Launch)]
        return [self._time(row) for row in launches if self.sizes[row.extent] > 0]

    def _source(self, index: int) -> np.ndarray[Any, Any] | None:
        """The array a buffer is filled from, for those that have one."""
        buffer = self.plan.buffers[index]
        if buffer.origin in (Origin.ARGUMENT, Origin.SCALAR, Origin.CAPTURED):
            item = self.inputs[buffer.index]
            return np.asarray(item.value if item.leaf is None else self.leaves[item.leaf])
        if buffer.origin is Origin.CONSTANT:
            return np.asarray(self.plan.constants[buffer.index])
        if buffer.origin is Origin.VARIABLE:
            variable = self.variables[self.plan.variables[buffer.index]]
            return np.asarray(variable)
        return None

    def _sizes(self) -> list[int]:
        values: list[int] = []
        for row in self.plan.sizes:
            if row.op == "const":
                values.append(row.a)
            elif row.op == "extent":
                source = self._source(row.a)
                assert source is not None
                values.append(source.shape[row.b])
            else:
                values.append(OPERATIONS[row.op](values[row.a], values[row.b]))
        return values

    def _buffer(self, index: int) -> np.ndarray[Any, Any]:
        buffer = self.plan.buffers[index]
        shape = tuple(self.sizes[slot] for slot in buffer.shape)
        made = aligned(shape, buffer.dtype.numpy)
        source = self._source(index)
        if source is None:
            made.fill(0)
        else:
            np.copyto(made, source.reshape(shape), casting="unsafe")
        return made

    def _time(self, row: Launch) -> KernelTime:
        words: list[int] = []
        for index in row.buffers:
            words.append(self.buffers[index].ctypes.data)
            if self.plan.buffers[index].strided:
                words += self.buffers[index].strides
        words += [self.sizes[slot] for slot in row.sizes]
        args = (ctypes.c_int64 * len(words))(*words)
        runtime, control = engine.native(), engine.native().control_block()
        kernel, extent = self.addresses[row.kernel], self.sizes[row.extent]
        grain, threads = runtime.spread(extent, row.grain, self.sizes[row.work])

        def once(end: int) -> float:
            began = time.perf_counter()
            runtime.launch(control, kernel, ctypes.addressof(args), end, grain, threads)
            return time.perf_counter() - began

        from_python = min(once(0) for _ in range(_REPEATS))
        seconds = min(once(extent) for _ in range(_REPEATS)) - from_python
        moved = sum(self.buffers[index].nbytes for index in set(row.buffers))
        name = self.plan.kernel_names[row.kernel]
        where = "" if row.location is None else str(row.location)
        return KernelTime(name, max(seconds, 1e-9), moved, where)


OPERATIONS: Mapping[str, Callable[[int, int], int]] = {
    "align": lambda a, _: -(-a // 64) * 64,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}
