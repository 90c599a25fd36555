"""The verifier's cases: the complaint stands on the guilty line, and no other is reported.

Not here: the cases (verifier/*.mill).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mill
from tracemill.compiler.errors import BrokenGraph, GraphError
from tracemill.compiler.ir.graph import Node
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.verifier import RULES, complaints, verify

FILES = sorted((Path(__file__).parent / "verifier").glob("*.mill"))
CASES = [case for path in FILES for case in mill.read_cases(path)]
HEADER = "graph"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: mill.Case) -> None:
    wanted = mill.notes_of(case.body)
    header = next(i for i, text in enumerate(case.body.split("\n"), 1) if text.startswith(HEADER))
    found = [
        (c.node.location.line if c.node and c.node.location else header, c.code, c.text)
        for c in complaints(parse_graph(case.body))
    ]
    assert sorted(f[:2] for f in found) == sorted(w[:2] for w in wanted), found
    for line, code, fragment in wanted:
        assert any(f[:2] == (line, code) and fragment in f[2] for f in found), (fragment, found)


def test_every_rule_that_text_can_break_has_a_case() -> None:
    codes = {code for case in CASES for _, code, _ in mill.notes_of(case.body)}
    only_in_memory = {"V103", "V105"}
    assert codes == set(RULES) - only_in_memory


def test_what_text_cannot_say() -> None:
    graph = parse_graph("graph @f(%a: f32[4]) -> f32[4] {\n %b = neg %a : f32[4]\n return %b\n}")
    (node,) = graph.nodes
    node.results[0].index = 3
    node.attrs = {"b": [1], "a": np.zeros(2)}
    codes = [complaint.code for complaint in complaints(graph)]
    assert codes.count("V105") == 1
    assert codes.count("V103") == 3


BROKEN = "graph @f(%a: f32[4]) -> f32[5] {\n  %b = neg %a : f32[5]\n  return %b\n}\n"


def test_the_error_holds_the_printed_graph_with_the_complaint() -> None:
    with pytest.raises(GraphError) as caught:
        verify(parse_graph(BROKEN))
    assert "%b = neg %a : f32[5]  // error[V102]: is f32[5], expected f32[4]" in str(caught.value)


def test_a_broken_pass_is_named() -> None:
    with pytest.raises(BrokenGraph, match=r"TM303\] at text:2, in f\n  after the pass tidy, @f"):
        verify(parse_graph(BROKEN), made_by="tidy")


def test_a_node_found_right_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = parse_graph(BROKEN.replace("5", "4"))
    verify(graph)
    judged: list[Node] = []
    name = "tracemill.compiler.ir.verifier.result_types"
    monkeypatch.setattr(name, lambda *node: judged.append(node))
    verify(graph)
    assert judged == []
