"""`compile_graph`: origins, strides, written arguments, returned values, host calls, sharing.

Not here: random graphs (test_plans.py), machine code.
"""

from __future__ import annotations

import itertools

import numpy as np

from plan_runner import PlanRun, run_plan
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.graph import Graph
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.kernel.target import Target
from tracemill.compiler.plan import CommitPoint, Copy, ExecutionPlan, HostCall, Launch, Origin
from tracemill.compiler.plan_text import plan_text
from tracemill.compiler.types import F32, TensorType

N, M = Dim.symbol("n"), Dim.symbol("m")
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def rows(plan: ExecutionPlan, kind: type) -> list:
    return [row for row in plan.rows if isinstance(row, kind)]


WRITE = """graph @write(%x: f32[n], %v: f32[2]) -> f32[n], f32[n] {
  %y = update_slice %x, %v {start=[1], step=[1]} : f32[n]
  %z = add %y, 1.0 : f32[n]
  return %z, %y
}
"""


def test_an_argument_is_written_in_place() -> None:
    plan = compile_graph(parse_graph(WRITE), writes={0: 1}, returns=[0, -1])
    x = np.zeros(5, np.float32)
    z, same = run_plan(plan, [x, np.array([3, 4], np.float32)])
    assert x.tolist() == [0, 3, 4, 0, 0]
    assert z.tolist() == [1, 4, 5, 1, 1]
    assert same is x
    assert not rows(plan, Copy)


def test_a_strided_argument_is_written_through_a_kernel() -> None:
    plan = compile_graph(parse_graph(WRITE), writes={0: 1}, returns=[0], strided=frozenset([0]))
    x = np.zeros(10, np.float32)[::2]
    run_plan(plan, [x, np.array([3, 4], np.float32)])
    assert x.tolist() == [0, 3, 4, 0, 0]


def test_an_old_value_that_is_returned_is_saved_before_it_is_overwritten() -> None:
    plan = compile_graph(parse_graph(WRITE.replace("return %z, %y", "return %x, %y")),
                         writes={0: 1}, returns=[0])  # fmt: skip
    x = np.ones(5, np.float32)
    (old,) = run_plan(plan, [x, np.array([3, 4], np.float32)])
    assert old.tolist() == [1] * 5
    assert x.tolist() == [1, 3, 4, 1, 1]


def test_an_argument_is_returned_itself_only_where_that_is_asked_for() -> None:
    b = Builder("same")
    x = b.param("x", TensorType(F32, (N, M)))
    graph = b.finish((x, b.reshape(x, shape=(N * M,))))
    itself, a, again, flat = run_plan(compile_graph(graph, returns=[-1, 0, 0, 1]), [X])
    assert itself is X
    for one, other in itertools.combinations((X, a, again, flat), 2):
        assert not np.shares_memory(one, other)
        assert one.ravel().tolist() == other.ravel().tolist()


SWAP = """var @a: f32[2]
var @b: f32[2]

graph @swap() -> token, token {
  %a = read @a : f32[2]
  %b = read @b : f32[2]
  %t = assign @a, %b : token after %a
  %u = assign @b, %a : token after %b
  return %t, %u
}
"""


def test_variables_exchange_their_contents() -> None:
    plan = compile_graph(parse_graph(SWAP))
    store = {"a": np.array([1, 2], np.float32), "b": np.array([3, 4], np.float32)}
    run_plan(plan, [], store)
    assert store["a"].tolist() == [3, 4]
    assert store["b"].tolist() == [1, 2]


COUNT = """var @c: f32[2]

graph @count(%i: i64[1], %x: f32[9]) -> f32[1], token, token {
  %c = read @c : f32[2]
  %d = add %c, 1.0 : f32[2]
  %t = assign @c, %d : token after %c
  %y, %ok = gather %x, %i {axes=[0]} : f32[1], token
  return %y, %t, %ok
}
"""


def test_what_can_fail_runs_before_what_is_seen() -> None:
    plan = compile_graph(parse_graph(COUNT))
    commit = [isinstance(row, CommitPoint) for row in plan.rows].index(True)
    assert [isinstance(row, Launch) for row in plan.rows] == [True, False, True]
    assert commit == 1
    assert plan.error_places[0].op == "gather"
    assert plan.error_places[0].code == "TM230"


PRINT = """graph @show(%x: f32[n]) -> f32[n], token {
  %y = add %x, 1.0 : f32[n]
  %p = print %y {text="y = {}"} : token
  %z = mul %y, 2.0 : f32[n]
  return %z, %p
}
"""


def test_a_print_sees_the_value() -> None:
    plan = compile_graph(parse_graph(PRINT))
    seen = []
    run = PlanRun(plan, [X[0]], {}, 0)
    run.run(lambda attrs, *arrays: seen.append((attrs["text"], arrays[0].tolist())))
    assert seen == [("y = {}", [1, 2, 3, 4])]
    assert len(rows(plan, HostCall)) == 1


def layers(count: int) -> Graph:
    b = Builder("layers")
    x = b.param("x", TensorType(F32, (N, M)))
    w = b.param("w", TensorType(F32, (M, M)))
    mean = b.param("mean", TensorType(F32, (M,)))
    for _ in range(count):
        x = b.add(x, b.tanh(b.sub(b.contract(x, w, axes=((1, 0),), batch=()), mean)))
    return b.finish((x,))


def test_equal_layers_share_kernels_and_memory() -> None:
    small, large = compile_graph(layers(3)), compile_graph(layers(100))
    assert len(small.kernels) == len(large.kernels)
    assert len(large.rows) - 1 == 100 * ((len(small.rows) - 1) // 3)
    temporary = [b for b in large.buffers if b.origin is Origin.TEMPORARY]
    assert len(temporary) <= 3
    assert len(small.sizes) == len(large.sizes)


def test_a_long_chain_is_cut_into_few_different_kernels() -> None:
    b = Builder("chain")
    x = b.param("x", TensorType(F32, (N,)))
    for _ in range(5000):
        x = b.mul(b.add(x, 1.5), 0.5)
    plan = compile_graph(b.finish((x,)))
    assert len(plan.kernels) <= 3
    assert 100 <= len(rows(plan, Launch)) <= 120
    assert not [c for c in plan.buffers if c.origin is Origin.TEMPORARY]


def test_the_text_of_a_plan() -> None:
    text = plan_text(compile_graph(parse_graph(COUNT), target=Target(512)))
    assert [line.partition("  //")[0] for line in text.splitlines()] == [
        "plan @count {",
        "  buffer i: i64[1] argument 0",
        "  buffer x: f32[9] argument 1",
        "  buffer c: f32[2] variable written",
        "  buffer y: f32[1] output 0",
        "  launch 0 @gather(x, i, y) over 1",
        "  commit",
        "  launch 1 @add(c, c) over 2",
        "  return y",
        "}",
        "arena: 0 bytes",
    ]
