"""Every pass case: parse, verify, run, verify, compare; run again, evaluate before and after.

Not here: the cases (*.mill), whole pipelines on random graphs (test_pipeline.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import mill
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.printer import print_graph
from tracemill.compiler.mill import pass_named
from tracemill.compiler.passes import PASSES
from tracemill.compiler.passes.base import run_passes

FILES = sorted(Path(__file__).parent.glob("*.mill"))
CASES = [case for path in FILES for case in mill.read_cases(path)]
SEEDS = range(8)


def split(case: mill.Case) -> tuple[str, str, str | None]:
    """The names of the passes, the text before, and after (None: unchanged)."""
    head, _, text = case.body.partition("\n")
    assert head.startswith("passes: "), f"{case}: write the passes first"
    if text.rstrip().endswith("\nunchanged"):
        return head[8:], text.rstrip().removesuffix("unchanged"), None
    before, found, after = text.partition("\nbecomes\n")
    assert found, f"{case}: write `becomes` and a graph, or `unchanged`"
    return head[8:], before + "\n", after


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(case: mill.Case, request: pytest.FixtureRequest) -> None:
    names, before_text, after_text = split(case)
    passes = [pass_named(name) for name in names.split(", ")]
    before = parse_graph(before_text)
    assert print_graph(before) == before_text.strip("\n") + "\n", "write it as it is printed"
    after = run_passes(before, passes).graph
    expected = before_text if after_text is None else after_text
    if print_graph(after).strip() != expected.strip():
        if request.config.getoption("--bless"):
            bless(case, before_text, print_graph(after))
        else:
            assert print_graph(after).strip() == expected.strip(), case.title
    again = run_passes(after, passes).graph
    assert print_graph(again) == print_graph(after), "not idempotent"
    for seed in SEEDS:
        args, store = mill.inputs_for(before, seed)
        left, right = mill.outcome(before, args, store), mill.outcome(after, args, store)
        assert mill.same(left, right), (seed, left, right)


def bless(case: mill.Case, before: str, after: str) -> None:
    """Write today's output into the case's file."""
    end = "unchanged\n" if after.strip() == before.strip() else f"becomes\n{after}"
    head = case.body.partition("\n")[0]
    made = f"{head}\n{before.strip()}\n{end}"
    text = case.path.read_text()
    assert text.count(case.body.strip()) == 1
    case.path.write_text(text.replace(case.body.strip(), made.strip()))


def test_every_pass_has_cases_and_one_that_changes_nothing() -> None:
    for name in PASSES:
        path = Path(__file__).parent / f"{name}.mill"
        if not path.exists():
            pytest.fail(f"{name} has no cases: write {path.name}")
        endings = [split(case)[2] for case in mill.read_cases(path)]
        assert None in endings, name
        assert any(endings), name
