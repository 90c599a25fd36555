"""Passes on whole random graphs: in the pipeline's order, in any order, and again.

Not here: single rules (*.mill).
"""

from __future__ import annotations

import numpy as np
import pytest

import mill
from random_graphs import random_graph
from tracemill.compiler.errors import BrokenGraph
from tracemill.compiler.ir.graph import Graph
from tracemill.compiler.ir.printer import print_graph
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.passes import PASSES, PIPELINE
from tracemill.compiler.passes.base import run_passes

GRAPHS = 30


def test_the_pipeline_keeps_the_meaning(seed: int) -> None:
    for i in range(GRAPHS):
        graph = random_graph(seed + i)
        text = print_graph(graph)
        after = run_passes(graph, PIPELINE).graph
        assert print_graph(graph) == text, "the argument was changed"
        check(graph, after, seed + i)


def test_any_order_keeps_the_meaning(seed: int, rng: np.random.Generator) -> None:
    passes = list(PASSES.values())
    for i in range(GRAPHS):
        graph = random_graph(seed + i)
        order = [passes[k] for k in rng.integers(len(passes), size=6)]
        check(graph, run_passes(graph, order).graph, seed + i)


def test_each_pass_alone_comes_to_rest(seed: int) -> None:
    for i in range(GRAPHS):
        for step in PASSES.values():
            once = run_passes(random_graph(seed + i), [step]).graph
            assert step.run(once) is once or print_graph(step.run(once)) == print_graph(once), (
                step.name,
                seed + i,
            )


def check(before: Graph, after: Graph, seed: int) -> None:
    for k in range(2):
        args, store = mill.inputs_for(before, seed + k)
        left, right = mill.outcome(before, args, store), mill.outcome(after, args, store)
        assert mill.same(left, right), (seed, k, print_graph(before), print_graph(after))


def test_a_pass_that_breaks_a_graph_is_named() -> None:
    class Careless:
        name = "careless"

        def run(self, graph: Graph) -> Graph:
            return Graph(graph.name, graph.params, graph.nodes[1:], graph.results)

    graph = random_graph(1)
    verify(graph)
    with pytest.raises(BrokenGraph, match="after the pass careless"):
        run_passes(graph, [Careless()])
