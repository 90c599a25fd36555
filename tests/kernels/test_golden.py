"""The text of kernels for the main shapes: graph, then the plan's kernels for 512 bit vectors.

Not here: whether they compute the right thing (test_plans.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

import mill
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.kernel.printer import kernel_text
from tracemill.compiler.kernel.target import Target

PATH = Path(__file__).parent / "shapes.txt"
CASES = mill.read_cases(PATH)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_of_a_graph(case: mill.Case, bless: bool) -> None:
    graph, _, expected = case.body.partition("\nkernels\n")
    plan = compile_graph(parse_graph(graph.strip() + "\n"), target=Target(512, 2))
    text = "".join(kernel_text(kernel) for kernel in plan.kernels)
    if text.strip() != expected.strip() and bless:
        made = f"{graph.strip()}\nkernels\n{text}"
        PATH.write_text(PATH.read_text().replace(case.body.strip(), made.strip()))
        return
    assert text.strip() == expected.strip(), case.title
