"""Runs a plan with the kernel interpreter: slow, and strict about memory.

Temporaries are ranges of one real arena that is filled with garbage first, so two live values in
one place, or a value read before it is written, show as wrong results.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

import numpy as np

from tracemill.compiler.kernel.interpreter import interpret
from tracemill.compiler.kernel.kernel import Kernel
from tracemill.compiler.plan import (
    Branch,
    CommitPoint,
    Copy,
    ErrorPlace,
    ExecutionPlan,
    HostCall,
    Launch,
    Loop,
    Origin,
    Row,
)

Array = np.ndarray[Any, Any]
Store = MutableMapping[str, Array]


class PlanFailed(Exception):
    """A kernel reported a failure."""

    def __init__(self, place: ErrorPlace) -> None:
        super().__init__(f"{place.op} {place.code}")
        self.place = place


class PlanRun:
    """One call of a plan."""

    def __init__(self, plan: ExecutionPlan, args: Sequence[Array], store: Store, seed: int) -> None:
        self.plan = plan
        self.args = args
        self.store = store
        self.shuffle = random.Random(seed)
        self.sizes: list[int] = []
        for row in plan.sizes:
            self.sizes.append(self._size(row.op, row.a, row.b))
        rng = np.random.default_rng(seed)
        self.arena = rng.integers(1, 255, self.sizes[plan.arena_bytes] + 64, dtype=np.uint8)
        self.arrays = [self._array(at) for at in range(len(plan.buffers))]
        self.committed = False
        self.launches = 0

    def _size(self, op: str, a: int, b: int) -> int:
        sizes = self.sizes
        if op == "const":
            return a
        if op == "extent":
            buffer = self.plan.buffers[a]
            assert buffer.origin is Origin.ARGUMENT
            return int(self.args[buffer.index].shape[b])
        if op == "align":
            return -(-sizes[a] // 64) * 64
        x, y = sizes[a], sizes[b]
        return {
            "add": lambda: x + y,
            "sub": lambda: x - y,
            "mul": lambda: x * y,
            "floordiv": lambda: x // y,
            "mod": lambda: x % y,
            "max": lambda: max(x, y),
            "min": lambda: min(x, y),
        }[op]()

    def _array(self, at: int) -> Array:
        spec = self.plan.buffers[at]
        shape = tuple(self.sizes[s] for s in spec.shape)
        if spec.origin is Origin.ARGUMENT:
            array = self.args[spec.index]
            assert spec.strided or array.flags.c_contiguous
            return array
        if spec.origin is Origin.VARIABLE:
            return self.store[self.plan.variables[spec.index]]
        if spec.origin is Origin.CONSTANT:
            return np.asarray(self.plan.constants[spec.index])
        if spec.origin in (Origin.OUTPUT, Origin.VIEW):
            return np.full(shape, 77, spec.dtype.numpy)
        assert spec.origin is Origin.TEMPORARY
        assert spec.offset is not None
        start = self.sizes[spec.offset]
        end = start + int(np.prod(shape, dtype=np.int64)) * spec.dtype.itemsize
        assert start % 64 == 0
        assert end <= self.sizes[self.plan.arena_bytes], "a temporary outside the arena"
        return self.arena[start:end].view(spec.dtype.numpy).reshape(shape)

    def run(self, host: Callable[..., None] | None = None) -> list[Array]:
        """All rows; the results."""
        self._rows(self.plan.rows, host)
        assert self.committed
        return [self.arrays[result.buffer] for result in self.plan.results]

    def _rows(self, rows: Sequence[Row], host: Callable[..., None] | None) -> None:
        for row in rows:
            match row:
                case Branch():
                    chosen = row.then if self.arrays[row.test] else row.otherwise
                    self._rows(chosen, host)
                case Loop():
                    self._loop(row, host)
                case CommitPoint():
                    assert not self.committed
                    self.committed = True
                case Copy():
                    self._written(row.target)
                    source = self.arrays[row.source]
                    assert source.size == self.arrays[row.target].size
                    self.arrays[row.target][...] = source.reshape(self.arrays[row.target].shape)
                case HostCall():
                    if host is not None:
                        shapes = [[self.sizes[s] for s in shape] for shape in row.shapes]
                        arrays = [self.arrays[b].copy() for b in row.buffers]
                        host(
                            self.plan.callbacks[row.callback],
                            *[a.reshape(shape) for a, shape in zip(arrays, shapes)],
                        )
                case Launch():
                    self._launch(row)

    def _loop(self, row: Loop, host: Callable[..., None] | None) -> None:
        """Trips as the plan describes them; what moves are entries of `arrays`."""
        assert not self.committed, "a loop could not be interrupted"
        arrays = self.arrays
        for turn in row.turns:
            arrays[turn.current], arrays[turn.following] = arrays[turn.first], arrays[turn.result]
        for at in self._trips(row):
            for slice in row.slices:
                whole = arrays[slice.whole]
                arrays[slice.view] = whole[whole.shape[0] - 1 - at if row.reverse else at, ...]
            self._rows(row.body, host)
            for turn in row.turns:
                written = arrays[turn.following]
                idle = turn.other if written is arrays[turn.result] else turn.result
                arrays[turn.current], arrays[turn.following] = written, arrays[idle]
        for turn in row.turns:
            arrays[turn.result][...] = arrays[turn.current].reshape(arrays[turn.result].shape)

    def _trips(self, row: Loop) -> Iterator[int]:
        arrays = self.arrays
        if row.condition is not None:
            at = 0
            while arrays[row.condition]:
                yield at
                at += 1
        elif row.bounds is not None:
            assert row.index is not None
            for value in range(*[int(arrays[bound]) for bound in row.bounds]):
                arrays[row.index][...] = value
                yield value
        else:
            assert row.length is not None
            yield from range(self.sizes[row.length])

    def _written(self, buffer: int) -> None:
        spec = self.plan.buffers[buffer]
        assert spec.written, f"{spec.name} is written and does not say so"
        if spec.origin in (Origin.ARGUMENT, Origin.VARIABLE):
            assert self.committed, f"{spec.name} is written before the commit point"

    def _launch(self, row: Launch) -> None:
        if self.sizes[row.extent] == 0:
            return  # nothing to do, or a way not taken
        self.launches += 1
        kernel = self.plan.kernels[row.kernel]
        dims = dict(zip(kernel.dims, [self.sizes[s] for s in row.sizes], strict=True))
        assert self.sizes[row.work] >= 0
        arrays = []
        for param, at in zip(kernel.params, row.buffers, strict=True):
            if param.mode != "in":
                self._written(at)
            shape = tuple(d if isinstance(d, int) else d.evaluate(dims) for d in param.shape)
            array = self.arrays[at]
            assert param.strided == self.plan.buffers[at].strided
            view = array if array.shape == shape else array.view().reshape(shape)
            assert np.shares_memory(view, array) or not array.size
            arrays.append(view)
        failed = self.kernel(kernel, arrays, dims, self.sizes[row.extent])
        if failed is not None:
            raise PlanFailed(self.plan.error_places[row.errors + failed])

    def kernel(
        self, kernel: Kernel, arrays: list[Array], dims: dict[str, int], extent: int
    ) -> int | None:
        """Run one kernel in place; the number of its first failure."""
        return interpret(kernel, arrays, dims, self.shuffle.shuffle)


def run_plan(
    plan: ExecutionPlan, args: Sequence[Array], store: Store | None = None, seed: int = 0
) -> list[Array]:
    """The results of a plan for `args`; variables are updated in `store`."""
    return PlanRun(plan, args, store if store is not None else {}, seed).run()


def near(a: Array, b: Array) -> None:
    """Assert equality: exact for integers and bools, up to rounding for floats."""
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    if a.dtype.kind not in "fc" and a.dtype.kind != "V":
        assert np.array_equal(a, b)
        return
    loose = a.dtype.itemsize == 2
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            a, b, rtol=2e-2 if loose else 1e-4, atol=1e-2 if loose else 1e-5, equal_nan=True
        )
