"""The op that calls Python functions, in text: names are functions of NumPy.

Not here: functions of users (tests/compiled/test_host_calls.py).
"""

from __future__ import annotations

import numpy as np
import pytest

from tracemill.compiler.errors import GraphError
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.printer import print_graph
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.ops.definition import SignatureError

CALL = 'host_call %x {dtypes=[f64, f64], function="modf", shapes=[[n], [n]]}'
TEXT = f"""graph @f(%x: f64[n]) -> f64[n], f64[n], token {{
  %whole, %part, %t = {CALL} : f64[n], f64[n], token
  return %whole, %part, %t
}}
"""


def test_it_is_what_the_function_gives() -> None:
    graph = parse_graph(TEXT)
    verify(graph)
    assert print_graph(graph) == TEXT
    for n in (3, 0):
        x = np.arange(n) * 1.25
        made = evaluate(graph, [x])
        for mine, theirs in zip(made, np.modf(x), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('"modf"', "3", "needs the name of a function"),
        ("[f64, f64]", "[f64, 2]", "needs a tuple of dtypes"),
        ("[[n], [n]]", "[[n]]", "needs a shape for each of 2 dtypes"),
        ("[[n], [n]]", "[[n], [-1]]", "negative size"),
    ],
)
def test_what_is_no_call_is_refused(before: str, after: str, problem: str) -> None:
    with pytest.raises(GraphError, match=problem):
        verify(parse_graph(TEXT.replace(before, after)))


def test_other_names_are_functions_of_the_process_that_traced_them() -> None:
    graph = parse_graph(TEXT.replace("modf", "mine#3"))
    with pytest.raises(SignatureError, match="not here: 'mine#3'"):
        evaluate(graph, [np.zeros(2)])
