"""Which loops are one kernel, and that the interpreter runs it as the graph says.

Not here: machine code (compiled/test_nests.py), loops over whole arrays (test_rolled.py).
"""

from __future__ import annotations

import numpy as np
import pytest

from nest_graphs import CHOICES, EXCHANGE, HALVES
from plan_runner import PlanFailed, run_plan
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.kernel import kernel as kernel_ir
from tracemill.compiler.kernel.kernel import walk
from tracemill.compiler.kernel.symbols import map_body
from tracemill.compiler.kernel.verifier import complaints_about
from tracemill.compiler.passes import PIPELINE
from tracemill.compiler.passes.base import run_passes
from tracemill.compiler.plan import Branch, ExecutionPlan, Launch, Loop
from tracemill.compiler.records import replace

DTYPES = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "f64": np.float64,
          "c128": np.complex128}  # fmt: skip


def plan_of(text: str, *, fuse: bool = True) -> ExecutionPlan:
    graph = parse_graph(text)
    return compile_graph(run_passes(graph, PIPELINE).graph if fuse else graph, fuse=fuse)


def loops(plan: ExecutionPlan) -> list[object]:
    return [row for row in plan.rows if isinstance(row, Loop | Branch)]


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", [EXCHANGE, CHOICES, HALVES], ids=["exchange", "choices", "halves"])
def test_a_loop_around_numbers_is_one_launch(text: str, dtype: str, fuse, rng) -> None:
    text = text.replace("DT", dtype)
    plan, graph = plan_of(text, fuse=fuse), parse_graph(text)
    assert not loops(plan)
    assert [type(row) for row in plan.rows].count(Launch) == 1
    for n in (0, 1, 2, 5, 9):
        for trips in {0, min(n, 1), n}:
            args = [rng.integers(-3, 4, n).astype(DTYPES[dtype]), np.array(trips)]
            for got, want in zip(run_plan(plan, args), evaluate(graph, args)):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("text", [EXCHANGE, CHOICES, HALVES], ids=["exchange", "choices", "halves"])
def test_an_index_out_of_range_fails_where_the_node_says(text: str) -> None:
    plan = plan_of(text.replace("DT", "f64"))
    with pytest.raises(PlanFailed) as caught:
        run_plan(plan, [np.zeros(3), np.array(9)])
    wanted = "gather" if text is EXCHANGE else "scatter"
    assert str(caught.value) == f"{wanted} TM230"


def body(lines: str, carried: str = "%x", yields: str = "%e, %o") -> str:
    """A loop over `n` trips that carries one array."""
    return f"""graph @f(%x: f64[n], %k: i64[]) -> f64[n], token {{
  %y, %t = for 0:i64, %k, {carried} {{carried=1}} : f64[n], token (%i: i64[], %c: f64[n]) {{
    {lines}
    yield {yields}
  }}
  return %y, %t
}}
"""


def test_what_was_there_before_a_loop_may_be_read_in_it(rng) -> None:
    text = """graph @f(%x: f64[n], %k: i64[]) -> f64[n], token {
  %y, %t = for 0:i64, %k, %x, %x {carried=1} : f64[n], token \
(%i: i64[], %c: f64[n], %old: f64[n]) {
    %a, %p = gather %old, 0:i64 {axes=[0]} : f64[], token
    %b, %q = gather %c, %i {axes=[0]} : f64[], token
    %s = add %a, %b : f64[]
    %e, %o = scatter %c, %s, %i {axes=[0]} : f64[n], token
    yield %e, %p, %q, %o
  }
  return %y, %t
}
"""
    plan = plan_of(text)
    assert not loops(plan)
    x = rng.random(5)
    np.testing.assert_array_equal(run_plan(plan, [x, np.array(5)])[0], x + x[0])


@pytest.mark.parametrize(
    "text",
    [
        body(
            "%d, %o = scatter %c, 1.0:f64, %i {axes=[0]} : f64[n], token\n"
            "    %a, %p = gather %c, %i {axes=[0]} : f64[], token\n"
            "    %e, %q = scatter %c, %a, 0:i64 {axes=[0]} : f64[n], token\n"
            "    %b, %r = gather %d, 0:i64 {axes=[0]} : f64[], token\n"
            "    %g, %s = scatter %e, %b, %i {axes=[0]} : f64[n], token",
            yields="%g, %o, %p, %q, %r, %s",
        ),
        body(
            "%a = cast %i {dtype=f64} : f64[]\n"
            "    %d, %o = scatter %c, %a, %i {axes=[0]} : f64[n], token\n"
            "    %e = mul %d, 2.0 : f64[n]",
        ),
        body("%e = add %c, 1.0 : f64[n]\n    %a, %o = gather %e, %i {axes=[0]} : f64[], token"),
        body("%s = sum %c {axes=[0]} : f64[]\n"
             "    %e, %o = scatter %c, %s, %i {axes=[0]} : f64[n], token"),
    ],
    ids=["two_versions_at_once", "a_whole_array", "an_element_of_a_formula", "a_sum"],
)  # fmt: skip
def test_other_loops_keep_their_rows(text: str, rng) -> None:
    plan, graph = plan_of(text), parse_graph(text)
    assert loops(plan)
    for trips in (0, 1, 4):
        args = [rng.random(6), np.array(trips)]
        for got, want in zip(run_plan(plan, args), evaluate(graph, args)):
            np.testing.assert_array_equal(got, want)


def test_arrays_that_change_places_keep_their_rows(rng) -> None:
    text = """graph @f(%x: f64[n], %y: f64[n], %k: i64[]) -> f64[n], f64[n], token {
  %u, %v, %t = for 0:i64, %k, %x, %y {carried=2} : f64[n], f64[n], token \
(%i: i64[], %a: f64[n], %b: f64[n]) {
    %s, %p = gather %a, %i {axes=[0]} : f64[], token
    %e, %o = scatter %b, %s, 0:i64 {axes=[0]} : f64[n], token
    yield %e, %a, %p, %o
  }
  return %u, %v, %t
}
"""
    plan, graph = plan_of(text), parse_graph(text)
    assert loops(plan)
    for trips in (0, 1, 2, 3):
        args = [*rng.random((2, 6)), np.array(trips)]
        for got, want in zip(run_plan(plan, args), evaluate(graph, args)):
            np.testing.assert_array_equal(got, want)


def test_the_verifier_looks_at_both_sides_of_a_choice_and_at_the_first_trip() -> None:
    (kernel,) = plan_of(CHOICES.replace("DT", "f64")).kernels
    assert complaints_about(kernel) == []
    (choice,) = [s for s in walk(kernel.body) if isinstance(s, kernel_ir.If)]

    def with_choice(changed: kernel_ir.If) -> str:
        body = map_body(kernel.body, lambda s: changed if isinstance(s, kernel_ir.If) else s)
        return "\n".join(complaints_about(replace(kernel, body=body)))

    assert "differ in number" in with_choice(replace(choice, others=()))
    swapped = replace(choice, yields=choice.others, others=choice.yields)
    assert "is not defined here" in with_choice(swapped)
    assert "BOOL" in with_choice(replace(choice, condition="i")).upper()
    body = map_body(
        kernel.body, lambda s: replace(s, when="k0") if isinstance(s, kernel_ir.Loop) else s
    )
    assert "bool is needed" in "\n".join(complaints_about(replace(kernel, body=body)))
