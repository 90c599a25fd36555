"""Plans compute what graphs say: random graphs through fusion, lowering, schedules and memory,
run by the kernel interpreter in a real arena, against the reference evaluator.

Not here: machine code.
"""

from __future__ import annotations

import numpy as np
import pytest

import mill
from plan_runner import PlanFailed, near, run_plan
from random_graphs import random_graph
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.errors import TracemillError
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.graph import Graph
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.passes import PIPELINE
from tracemill.compiler.passes.base import run_passes
from tracemill.compiler.passes.fuse import Fuse
from tracemill.compiler.passes.fuse_group import Limits


def agree(graph: Graph, compiled: Graph, seed: int) -> None:
    """Results, variables and failures of the compiled graph's plan are the graph's."""
    args, store = mill.inputs_for(graph, seed)
    kept = {name: array.copy() for name, array in store.items()}
    code = None
    want: tuple[np.ndarray, ...] = ()
    try:
        want = evaluate(graph, args, kept, show=lambda text: None)
    except TracemillError as problem:
        code = problem.code
    mine = {name: array.copy() for name, array in store.items()}
    plan = compile_graph(compiled, fuse=False)
    if code is not None:
        with pytest.raises(PlanFailed) as caught:
            run_plan(plan, args, mine, seed)
        assert caught.value.place.code == code
        kept = store
    else:
        got = run_plan(plan, args, mine, seed)
        assert len(got) == len(want)
        for a, b in zip(got, want):
            near(a, b)
    for name, array in kept.items():
        near(mine[name], array)


@pytest.mark.parametrize("seed", range(0, 120))
def test_a_fused_random_graph_computes_the_same(seed: int) -> None:
    graph = random_graph(seed, 20 + seed % 60)
    optimised = run_passes(graph, PIPELINE).graph if seed % 2 else graph
    limits = Limits(nodes=3) if seed % 5 == 0 else Limits()
    fused = Fuse(limits).run(optimised)
    verify(fused, "fuse")
    agree(graph, fused, seed)


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_an_unfused_random_graph_computes_the_same(seed: int) -> None:
    graph = random_graph(seed, 40)
    agree(graph, graph, seed)
