"""Branches and loops as rows: random ones compute what the evaluator computes, in a real arena and
in machine code; what a loop carries or a branch hands on is not copied, and no memory depends on
the number of trips.

Not here: tracing control flow (tests/compiled/test_control_flow.py).
"""

from __future__ import annotations

import numpy as np
import pytest

import mill
from flow_graphs import random_flow_graph
from plan_runner import near, run_plan
from tracemill.calls.graph_function import GraphFunction
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.passes import PIPELINE
from tracemill.compiler.passes.base import run_passes
from tracemill.compiler.plan import (
    Branch,
    CommitPoint,
    Copy,
    ExecutionPlan,
    Launch,
    Loop,
    Origin,
    all_rows,
)
from tracemill.tracing.state import Input


@pytest.mark.parametrize("seed", range(120))
def test_the_rows_of_random_control_flow_compute_what_the_graph_says(seed: int) -> None:
    graph = random_flow_graph(seed, nodes=6 + seed % 9)
    verify(graph)
    optimised = run_passes(graph, PIPELINE).graph if seed % 2 else graph
    plan = compile_graph(optimised, fuse=seed % 3 != 0)
    for inputs in (seed, seed + 1):
        args, _ = mill.inputs_for(graph, inputs)
        for got, want in zip(run_plan(plan, args, seed=seed), evaluate(graph, args), strict=True):
            near(got, want)


@pytest.mark.cpu
@pytest.mark.parametrize("seed", range(500, 520))
def test_machine_code_runs_random_control_flow(seed: int) -> None:
    graph = random_flow_graph(seed, nodes=5, depth=2)
    inputs = [Input("argument", value.name, at) for at, value in enumerate(graph.params)]
    function = GraphFunction(
        run_passes(graph, PIPELINE).graph, inputs, [None] * len(inputs), len(graph.results), {}
    )
    for number in range(4):
        args, _ = mill.inputs_for(graph, seed + number)
        for got, want in zip(function(*args), evaluate(graph, args), strict=True):
            near(np.asarray(got), want)


def plan_of(text: str) -> ExecutionPlan:
    return compile_graph(run_passes(parse_graph(text), PIPELINE).graph)


def the_loop(plan: ExecutionPlan) -> Loop:
    (loop,) = [row for row in plan.rows if isinstance(row, Loop)]
    return loop


def test_what_is_carried_is_written_over_itself_where_the_kernel_allows_it() -> None:
    plan = plan_of("""graph @f(%x: f64[n], %w: f64[9], %k: i64[]) -> f64[n] {
  %y = for 0:i64, %k, %x, %w {carried=1} : f64[n] (%i: i64[], %c: f64[n], %v: f64[9]) {
    %s = sum %v {axes=[0]} : f64[]
    %t = mul %c, %s : f64[n]
    yield %t
  }
  return %y
}
""")
    loop = the_loop(plan)
    assert not loop.turns
    assert not any(isinstance(row, Copy) for row in all_rows(loop.body))


def test_two_buffers_take_turns_where_it_does_not() -> None:
    plan = plan_of("""graph @f(%x: f64[n], %k: i64[]) -> f64[n] {
  %y = for 0:i64, %k, %x {carried=1} : f64[n] (%i: i64[], %c: f64[n]) {
    %r = slice %c {size=[n], start=[n - 1], step=[-1]} : f64[n]
    %t = add %c, %r : f64[n]
    yield %t
  }
  return %y
}
""")
    loop = the_loop(plan)
    assert len(loop.turns) == 1
    assert not any(isinstance(row, Copy) for row in all_rows(loop.body))
    x = np.arange(5.0)
    for trips in range(4):
        want = x
        for _ in range(trips):
            want = want + want[::-1]
        np.testing.assert_array_equal(run_plan(plan, [x, np.array(trips)])[0], want)


def test_values_that_change_places_cost_an_exchange_of_addresses() -> None:
    plan = plan_of("""graph @f(%x: f64[n], %y: f64[n], %k: i64[]) -> f64[n], f64[n] {
  %a, %b = for 0:i64, %k, %x, %y {carried=2} : f64[n], f64[n] (%i: i64[], %u: f64[n], %v: f64[n]) {
    %s = add %u, %v : f64[n]
    yield %v, %s
  }
  return %a, %b
}
""")
    x, y = np.arange(4.0), np.ones(4)
    for trips in range(5):
        u, v = x, y
        for _ in range(trips):
            u, v = v, u + v
        got = run_plan(plan, [x, y, np.array(trips)])
        np.testing.assert_array_equal(got[0], u)
        np.testing.assert_array_equal(got[1], v)


def test_a_scan_reads_and_writes_rows_where_they_lie() -> None:
    plan = plan_of("""graph @f(%h: f64[4], %xs: f64[n, 4]) -> f64[4], f64[n, 4] {
  %e, %ys = scan %h, %xs {carried=1, length=n, reverse=false, stacked=1} : f64[4], f64[n, 4] \
(%c: f64[4], %x: f64[4]) {
    %a = add %c, %x : f64[4]
    %b = mul %c, %x : f64[4]
    yield %a, %b
  }
  return %e, %ys
}
""")
    loop = the_loop(plan)
    assert {plan.buffers[s.whole].origin for s in loop.slices} == {Origin.ARGUMENT, Origin.OUTPUT}
    assert not any(isinstance(row, Copy) for row in all_rows(loop.body))
    assert plan.sizes[plan.arena_bytes].a == 0


def test_the_branches_of_a_cond_share_memory() -> None:
    plan = plan_of("""graph @f(%p: bool[], %x: f64[64], %w: f64[64, 64]) -> f64[64] {
  %y = cond %p, %x, %w : f64[64] (%u: f64[64], %m: f64[64, 64]) {
    %a = contract %u, %m {axes=[[0, 0]], batch=[]} : f64[64]
    %b = contract %a, %m {axes=[[0, 0]], batch=[]} : f64[64]
    yield %b
  } (%u: f64[64], %m: f64[64, 64]) {
    %a = contract %u, %m {axes=[[0, 1]], batch=[]} : f64[64]
    %b = contract %a, %m {axes=[[0, 1]], batch=[]} : f64[64]
    yield %b
  }
  return %y
}
""")
    assert plan.sizes[plan.arena_bytes].a == 64 * 8


PARTLY = """graph @f(%x: f64[n], %t: f64[]) -> f64[n], f64[n] {
  %y = mul %x, 2.0 : f64[n]
  %v = reshape %t {shape=[1]} : f64[1]
  %p = greater %t, 0.0 : bool[]
  %z = cond %p, %y, %v : f64[n] (%c: f64[n], %e: f64[1]) {
    %d = update_slice %c, %e {start=[1], step=[1]} : f64[n]
    %g = update_slice %d, %e {start=[0], step=[1]} : f64[n]
    yield %g
  } (%c: f64[n], %e: f64[1]) {
    yield %c
  }
  return %z, SECOND
}
"""


def test_a_branch_writes_over_what_nothing_needs_afterwards() -> None:
    plan = plan_of(PARTLY.replace(", SECOND", "").replace(", f64[n] {", " {", 1))
    (branch,) = [row for row in plan.rows if isinstance(row, Branch)]
    assert not branch.otherwise
    assert not any(isinstance(row, Copy) for row in all_rows(plan.rows))
    x = np.arange(4.0)
    for t, want in ((5.0, [5, 5, 4, 6]), (-1.0, [0, 2, 4, 6])):
        np.testing.assert_array_equal(run_plan(plan, [x, np.array(t)])[0], want)


def test_a_branch_copies_what_is_needed_afterwards() -> None:
    plan = plan_of(PARTLY.replace("SECOND", "%y"))
    x = np.arange(4.0)
    for t, want in ((5.0, [5, 5, 4, 6]), (-1.0, [0, 2, 4, 6])):
        z, y = run_plan(plan, [x, np.array(t)])
        np.testing.assert_array_equal(z, want)
        np.testing.assert_array_equal(y, x * 2)


def test_a_stencil_writes_its_inner_part_from_one_buffer_to_the_other() -> None:
    plan = plan_of("""graph @f(%x: f64[n], %k: i64[]) -> f64[n] {
  %y = for 0:i64, %k, %x {carried=1} : f64[n] (%i: i64[], %c: f64[n]) {
    %l = slice %c {size=[n - 2], start=[0], step=[1]} : f64[n - 2]
    %r = slice %c {size=[n - 2], start=[2], step=[1]} : f64[n - 2]
    %m = add %l, %r : f64[n - 2]
    %d = update_slice %c, %m {start=[1], step=[1]} : f64[n]
    %e = slice %d {size=[1], start=[1], step=[1]} : f64[1]
    %g = update_slice %d, %e {start=[0], step=[1]} : f64[n]
    yield %g
  }
  return %y
}
""")
    loop = the_loop(plan)
    assert len(loop.turns) == 1
    assert not any(isinstance(row, Copy) for row in all_rows(loop.body))
    x = np.arange(7.0)
    for trips in range(5):
        want = x.copy()
        for _ in range(trips):
            want[1:-1] = want[:-2] + want[2:]
            want[0] = want[1]
        np.testing.assert_array_equal(run_plan(plan, [x, np.array(trips)])[0], want)


def test_one_element_a_trip_is_written_in_place() -> None:
    plan = plan_of("""graph @f(%x: f64[n], %k: i64[]) -> f64[n], token {
  %y, %t = for 0:i64, %k, %x {carried=1} : f64[n], token (%i: i64[], %c: f64[n]) {
    %v = cast %i {dtype=f64} : f64[]
    %d, %ok = scatter %c, %v, %i {axes=[0]} : f64[n], token
    yield %d, %ok
  }
  return %y, %t
}
""")
    copy, launch = [row for row in plan.rows if not isinstance(row, CommitPoint)]
    assert isinstance(copy, Copy)
    assert isinstance(launch, Launch)
    got = run_plan(plan, [np.zeros(6), np.array(4)])[0]
    np.testing.assert_array_equal(got, [0, 1, 2, 3, 0, 0])
