"""Plans run by machine code, launch by launch in shuffled chunks, compute what graphs say.

Not here: the native walker, the interpreter's run of the same plans (test_plans.py).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import mill
from kernel_runner import Compiled
from plan_runner import PlanFailed, PlanRun, near
from random_graphs import random_graph
from tracemill.backends.llvm.machine import host_machine
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.errors import TracemillError
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.kernel.kernel import Kernel, failures
from tracemill.compiler.kernel.target import Target
from tracemill.compiler.passes import PIPELINE
from tracemill.compiler.passes.base import run_passes
from tracemill.compiler.plan import Launch

pytestmark = pytest.mark.cpu
_CODE: dict[str, Compiled] = {}


def code_of(kernel: Kernel) -> Compiled:
    key = repr(kernel)
    if key not in _CODE:
        _CODE[key] = Compiled(kernel)
    return _CODE[key]


class NativeRun(PlanRun):
    """One call, its kernels as machine code."""

    def _launch(self, row: Launch) -> None:
        extent = self.sizes[row.extent]
        if extent == 0:
            return
        kernel = self.plan.kernels[row.kernel]
        for param, at in zip(kernel.params, row.buffers, strict=True):
            if param.mode != "in":
                self._written(at)
        cuts = sorted({0, extent, *(self.shuffle.randint(0, extent) for _ in range(2))})
        chunks = list(pairwise(cuts))
        self.shuffle.shuffle(chunks)
        dims = dict(zip(kernel.dims, [self.sizes[s] for s in row.sizes], strict=True))
        outcome = code_of(kernel)(*[self.arrays[at] for at in row.buffers], chunks=chunks, **dims)
        if outcome.failures:
            number = min(code for code, _, _ in outcome.failures) - 1
            assert number < len(failures(kernel))
            raise PlanFailed(self.plan.error_places[row.errors + number])


@pytest.mark.parametrize("seed", range(2000, 2015))
def test_machine_code_computes_the_same(seed: int) -> None:
    graph = random_graph(seed, 30)
    args, store = mill.inputs_for(graph, seed)
    kept = {name: array.copy() for name, array in store.items()}
    mine = {name: array.copy() for name, array in store.items()}
    target = Target(host_machine().vector_bits, 2)
    plan = compile_graph(run_passes(graph, PIPELINE).graph, target=target)
    code = None
    want: tuple[np.ndarray, ...] = ()
    try:
        want = evaluate(graph, args, kept, show=lambda text: None)
    except TracemillError as problem:
        code = problem.code
    if code is not None:
        with pytest.raises(PlanFailed) as caught:
            NativeRun(plan, args, mine, seed).run()
        assert caught.value.place.code == code
        return
    for a, b in zip(NativeRun(plan, args, mine, seed).run(), want, strict=True):
        near(np.asarray(a), b)
    for name, array in kept.items():
        near(mine[name], array)
