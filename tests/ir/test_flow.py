"""Graphs with control flow: text and back, equal and different fingerprints, passes.

Not here: what makes them well-formed (verifier/flow.mill).
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import mill
from flow_graphs import random_flow_graph
from tracemill.compiler.errors import GraphError
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.fingerprint import fingerprint
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.printer import print_graph
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.ops.definition import SignatureError
from tracemill.compiler.passes import PASSES
from tracemill.compiler.passes.base import run_passes


@pytest.mark.parametrize("seed", range(40))
def test_the_text_reads_back_to_the_same_graph(seed: int) -> None:
    graph = random_flow_graph(seed)
    text = print_graph(graph)
    again = parse_graph(text)
    verify(again)
    assert print_graph(again) == text


@pytest.mark.parametrize("seed", range(40))
def test_passes_in_any_order_keep_the_meaning_of_bodies(seed: int, rng) -> None:
    graph = random_flow_graph(1000 + seed)
    names = rng.permutation([name for name in PASSES if name != "fuse"])
    made = run_passes(graph, [PASSES[name] for name in (*names, "prune", "fuse")]).graph
    args, _ = mill.inputs_for(graph, seed)
    for got, want in zip(evaluate(made, args), evaluate(graph, args), strict=True):
        np.testing.assert_array_equal(got, want)


BODY = """graph @f(%x: f32[n], %k: i64[]) -> f32[n] {
  %y = for 0:i64, %k, %x {carried=1} : f32[n] (%i: i64[], %c: f32[n]) {
    %d = neg %c : f32[n]
    yield %d
  }
  return %y
}
"""


def test_fingerprints_see_bodies_and_no_names() -> None:
    found = fingerprint(parse_graph(BODY))
    renamed = re.sub(r"%c\b", "%carry", BODY).replace("%d", "%down")
    assert fingerprint(parse_graph(renamed)) == found
    assert fingerprint(parse_graph(BODY.replace("neg", "square"))) != found
    assert fingerprint(parse_graph(BODY.replace("yield %d", "yield %c"))) != found


def test_a_counting_loop_may_say_how_many_trips_it_makes_at_most() -> None:
    text = BODY.replace("{carried=1}", "{carried=1, most=max(0, n - 1)}")
    graph = parse_graph(text)
    verify(graph)
    assert print_graph(graph) == text
    assert fingerprint(graph) != fingerprint(parse_graph(BODY))
    (y,) = evaluate(graph, [np.ones(4, np.float32), np.int64(3)])
    np.testing.assert_array_equal(y, -np.ones(4))
    for wrong in ("most=1.5", "most=-1", "least=3"):
        with pytest.raises((GraphError, SignatureError)):
            verify(parse_graph(BODY.replace("{carried=1}", f"{{carried=1, {wrong}}}")))
