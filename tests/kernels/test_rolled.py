"""Loops inside kernels: elementwise bodies compute bit for bit what trips one by one do.

Not here: loops as rows of a plan (test_flow_plans.py).
"""

from __future__ import annotations

import numpy as np
import pytest

import tracemill as tm
from plan_runner import run_plan
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.passes import PIPELINE
from tracemill.compiler.passes.base import run_passes
from tracemill.compiler.plan import ExecutionPlan, Launch, Loop

FOR = """graph @f(%x: DT[n], %y: DT[n], %a: i64[], %b: i64[], %s: DT[]) -> DT[n], DT[n] {
  %u, %v = for %a, %b, %x, %y, %s {carried=2} : DT[n], DT[n] \
(%i: i64[], %p: DT[n], %q: DT[n], %k: DT[]) {
    %j = cast %i {dtype=DT} : DT[]
    %m = mul %p, %k : DT[n]
    %r = add %m, %j : DT[n]
    yield %q, %r
  }
  return %u, %v
}
"""
WHILE = """graph @f(%x: DT[], %s: DT[], %k: i64[]) -> DT[], i64[] {
  %c = less 0:i64, %k : bool[]
  %u, %v = while %c, %x, 0:i64, %s, %k {carried=2} : DT[], i64[] \
(%p: DT[], %n: i64[], %s: DT[], %k: i64[]) {
    %m = mul %p, %s : DT[]
    %r = sub %m, %p : DT[]
    %o = add %n, 1 : i64[]
    %more = less %o, %k : bool[]
    yield %more, %r, %o
  }
  return %u, %v
}
"""
DTYPES = {
    "i8": np.int8, "u16": np.uint16, "i64": np.int64, "f16": np.float16, "f32": np.float32,
    "f64": np.float64, "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip


def plan_of(text: str, dtype: str) -> ExecutionPlan:
    plan = compile_graph(run_passes(parse_graph(text.replace("DT", dtype)), PIPELINE).graph)
    assert not any(isinstance(row, Loop) for row in plan.rows)
    return plan


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_element_makes_all_its_trips_in_registers(dtype: str, rng) -> None:
    plan, graph = plan_of(FOR, dtype), parse_graph(FOR.replace("DT", dtype))
    assert [isinstance(row, Launch) for row in plan.rows].count(True) == 1
    for begin, end in ((0, 0), (0, 1), (2, 7), (5, 3), (-4, 2)):
        for n in (0, 1, 9):
            x, y, s = (rng.integers(0, 4, shape).astype(DTYPES[dtype]) for shape in (n, n, ()))
            args = [x, y, np.array(begin), np.array(end), np.asarray(s)]
            for got, want in zip(run_plan(plan, args), evaluate(graph, args), strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_while_over_numbers_is_one_kernel(dtype: str, rng) -> None:
    plan, graph = plan_of(WHILE, dtype), parse_graph(WHILE.replace("DT", dtype))
    for trips in (-1, 0, 1, 2, 11):
        x, s = (np.asarray(rng.integers(0, 4)).astype(DTYPES[dtype]) for _ in range(2))
        args = [x, s, np.array(trips)]
        for got, want in zip(run_plan(plan, args), evaluate(graph, args), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", list(DTYPES.values()))
def test_machine_code_of_such_loops_gives_the_same_bits(dtype: type, rng) -> None:
    def body(i, carry):
        a, b = carry
        return b, (a * b + a).astype(dtype)

    @tm.jit
    def arrays(a, b, n):
        return tm.fori_loop(0, n, body, (a, b))

    @tm.jit
    def numbers(a, b, n):
        def trip(carry):
            return body(0, carry[:2]) + (carry[2] + 1,)

        return tm.while_loop(lambda c: c[2] < n, trip, (a, b, 0))

    for size in (0, 1, 8, 33, 1000):
        for trips in (0, 1, 2, 5):
            a, b = rng.integers(0, 3, (2, size)).astype(dtype)
            with tm.disable_jit(), np.errstate(all="ignore"):
                want = arrays(a, b, trips)
            for got, right in zip(arrays(a, b, trips), want, strict=True):
                np.testing.assert_array_equal(got, right)
            if size:
                got = numbers(a[0], b[0], trips)
                np.testing.assert_array_equal(got[0], want[0][0])
                np.testing.assert_array_equal(got[1], want[1][0])
                assert got[2] == trips
    rows = arrays.lower(a, b, 1).plan.rows
    assert not any(isinstance(row, Loop) for row in rows)


def test_a_condition_over_arrays_and_a_sum_keep_their_rows() -> None:
    text = """graph @f(%x: f64[n], %k: i64[]) -> f64[n] {
  %y = for 0:i64, %k, %x {carried=1} : f64[n] (%i: i64[], %c: f64[n]) {
    %s = sum %c {axes=[0]} : f64[]
    %d = sub %c, %s : f64[n]
    yield %d
  }
  return %y
}
"""
    plan = compile_graph(run_passes(parse_graph(text), PIPELINE).graph)
    assert any(isinstance(row, Loop) for row in plan.rows)
