"""Schedules and splits change no value, and refuse what would.

Not here: whether they are fast.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import mill
from random_graphs import random_graph
from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.kernel.interpreter import interpret
from tracemill.compiler.kernel.kernel import Kernel, Parallel, Reduce, walk
from tracemill.compiler.kernel.lowering import lower
from tracemill.compiler.kernel.peel import peel
from tracemill.compiler.kernel.region import Region, region_of
from tracemill.compiler.kernel.schedule import (
    IllegalSchedule,
    Target,
    default_schedule,
    parallelize,
    unroll,
    vectorize,
)
from tracemill.compiler.kernel.split import split_reduction
from tracemill.compiler.kernel.transposed import turn_operands
from tracemill.compiler.kernel.verifier import complaints_about, verify_kernel
from tracemill.compiler.ops.definition import Structure
from tracemill.compiler.passes.fuse import Fuse
from tracemill.compiler.types import TensorType

QUIET = (Structure.STATE, Structure.TRANSFER, Structure.EFFECT)


def kernel_of(text: str) -> Kernel:
    graph = parse_graph(text)
    results = tuple(r for r in graph.results if isinstance(r.type, TensorType))
    return lower(Region(graph.params, graph.nodes, results)).kernel


def arrays_for(kernel: Kernel, dims: dict[str, int], seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    found = []
    for param in kernel.params:
        type = TensorType(param.dtype, param.shape)
        found.append(mill.random_array(rng, type, dims))
    return found


def run(kernel: Kernel, arrays: list[np.ndarray], dims: dict[str, int], seed: int | None) -> list:
    copies = [a.copy() for a in arrays]
    shuffle = None if seed is None else random.Random(seed).shuffle
    failed = interpret(kernel, copies, dims, shuffle)
    return [failed, *[c.tobytes() for c in copies]]


@pytest.mark.parametrize("seed", range(40))
def test_a_scheduled_kernel_computes_the_same_bits_in_any_order(seed: int) -> None:
    graph = Fuse().run(random_graph(seed + 500, 40))
    rng = np.random.default_rng(seed)
    for node in graph.nodes:
        if node.op.structure in QUIET or "value" in node.attrs:
            continue
        lowered = lower(region_of(node))
        kernel = lowered.kernel
        verify_kernel(kernel)
        scheduled = default_schedule(kernel, Target(int(rng.choice([0, 128, 256, 512])), 2))
        verify_kernel(scheduled)
        dims = {name: int(rng.integers(0, 6)) for name in ("n", "m", *kernel.dims)}
        for name, size in lowered.bound.items():
            dims[name] = size.evaluate(dims) if isinstance(size, Dim) else size
        arrays = arrays_for(kernel, dims, seed)
        if any(p.mode == "out" for p in kernel.params):
            assert run(kernel, arrays, dims, None) == run(scheduled, arrays, dims, seed)


TOTAL = """graph @f(%x: f32[n]) -> f32[], f32[] {
  %q = mul %x, %x : f32[n]
  %s = sum %q {axes=[0]} : f32[]
  %r = mul %s, 2.0 : f32[]
  %t = sum %x {axes=[0]} : f32[]
  return %r, %t
}
"""
NESTED = """graph @f(%x: f32[n, m], %c: f32[m]) -> f32[] {
  %a = add %x, %c : f32[n, m]
  %s = sum %a {axes=[0, 1]} : f32[]
  return %s
}
"""
ARGMAX = """graph @f(%x: i32[n]) -> i64[] {
  %s = argmax %x {axes=[0]} : i64[]
  return %s
}
"""
COLUMNS = """graph @f(%x: f32[n, m]) -> f32[m] {
  %s = sum %x {axes=[0]} : f32[m]
  %y = neg %s : f32[m]
  return %y
}
"""


@pytest.mark.parametrize("text", [TOTAL, NESTED, ARGMAX, COLUMNS])
@pytest.mark.parametrize("columns", [3, 100])
@pytest.mark.parametrize("n", [0, 1, 100, 4096, 9001])
def test_a_split_reduction_gives_the_same_bits(text: str, n: int, columns: int) -> None:
    kernel = kernel_of(text)
    halves = split_reduction(kernel, {"n": 10**6, "m": columns})
    assert halves is not None
    dims = {"n": n, "m": 3 if text == COLUMNS else 2}
    if text == ARGMAX and n == 0:
        return  # no value
    arrays = arrays_for(kernel, dims, n)
    buffers = {p.name: a.copy() for p, a in zip(kernel.params, arrays)}
    for p in halves.partial:
        shape = tuple(s.evaluate(dims) if isinstance(s, Dim) else s for s in p.shape)
        buffers[p.name] = np.full(shape, 7, p.dtype.numpy)
    for half in (halves.first, halves.second):
        verify_kernel(half)
        scheduled = default_schedule(half, Target(512, 2))
        verify_kernel(scheduled)
        interpret(scheduled, [buffers[p.name] for p in half.params], dims)
    whole = run(kernel, arrays, dims, None)
    assert whole == [None, *[buffers[p.name].tobytes() for p in kernel.params]]


VARIANCE = """graph @f(%x: f32[n, m], %c: f32[]) -> f32[] {
  %s = sum %x {axes=[0, 1]} : f32[]
  %t = mul %s, %c : f32[]
  %d = sub %x, %t : f32[n, m]
  %q = mul %d, %d : f32[n, m]
  %r = sum %q {axes=[0, 1]} : f32[]
  return %r
}
"""
COLUMN_VARIANCE = """graph @f(%x: f32[n, m], %c: f32[m]) -> f32[m], f32[m] {
  %s = sum %x {axes=[0]} : f32[m]
  %t = mul %s, %c : f32[m]
  %d = sub %x, %t : f32[n, m]
  %q = mul %d, %d : f32[n, m]
  %r = sum %q {axes=[0]} : f32[m]
  %z = sub %r, %s : f32[m]
  return %z, %t
}
"""


@pytest.mark.parametrize("text", [VARIANCE, COLUMN_VARIANCE])
@pytest.mark.parametrize("n", [0, 1, 100, 4097])
def test_a_reduction_that_others_wait_for_is_a_kernel_of_its_own(text: str, n: int) -> None:
    kernel = kernel_of(text)
    peeled = peel(kernel, {"n": 10**6, "m": 20})
    assert peeled is not None
    assert [len(_reductions(part)) for part in (peeled.first, peeled.rest)] == [1, 1]
    dims = {"n": n, "m": 3}
    arrays = arrays_for(kernel, dims, n)
    buffers = {p.name: a.copy() for p, a in zip(kernel.params, arrays)}
    for p in peeled.stored:
        shape = tuple(s.evaluate(dims) if isinstance(s, Dim) else s for s in p.shape)
        buffers[p.name] = np.full(shape, 7, p.dtype.numpy)
    for part in (peeled.first, peeled.rest):
        verify_kernel(part)
        interpret(part, [buffers[p.name] for p in part.params], dims)
    whole = run(kernel, arrays, dims, None)
    assert whole == [None, *[buffers[p.name].tobytes() for p in kernel.params]]


def _reductions(kernel: Kernel) -> list[Reduce]:
    return [s for s in walk(kernel.body) if isinstance(s, Reduce)]


def test_what_is_small_or_wide_is_not_peeled() -> None:
    known = kernel_of(VARIANCE.replace("n, m", "10, 10"))
    assert peel(known, {}) is None
    assert peel(kernel_of(COLUMN_VARIANCE), {"n": 10**6, "m": 5000}) is None
    assert peel(kernel_of(COLUMN_VARIANCE), {"n": 100, "m": 20}) is None
    assert peel(kernel_of(TOTAL), {"n": 10**6}) is None


def test_nests_over_the_same_memory_collapse_together() -> None:
    """Both sums of a variance fold all elements as one stretch, as a lone sum does."""
    for reduce in _reductions(kernel_of(VARIANCE)):
        assert str(reduce.extent) == "m*n"
    for reduce in _reductions(kernel_of(VARIANCE.replace("n, m", "n, 1"))):
        assert str(reduce.extent) == "n"


IMAGE_OF_ONE_NUMBER = """graph @f(%c: f64[], %w: f64[2, 2]) -> SHAPE {
  %x = broadcast_to %c {shape=[1, 1, n, 5]} : f64[1, 1, n, 5]
  %v = reshape %w {shape=[1, 1, 2, 2]} : f64[1, 1, 2, 2]
  %y = convolve %x, %v {axes=[[1, 1]], batch=[], windows=[[2, 2, 1, 1], [3, 3, 1, 1]]} : SHAPE
  return %y
}
""".replace("SHAPE", "f64[1, 1, n - 1, 4]")


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_nest_collapses_and_the_one_inside_it(n: int) -> None:
    kernel = kernel_of(IMAGE_OF_ONE_NUMBER)
    (reduce,) = _reductions(kernel)
    assert reduce.extent == 4
    dims = {"n": n}
    number, weights, out = arrays_for(kernel, dims, n)
    _, _, _, found = run(kernel, [number, weights, out], dims, None)
    want = np.full((n - 1) * 4, (number * weights).sum())
    np.testing.assert_allclose(np.frombuffer(found), want, rtol=1e-14)


PAIRS = """graph @f(%a: f32[n, k], %b: f32[m, k]) -> f32[n, m] {
  %x = reshape %a {shape=[n, 1, k]} : f32[n, 1, k]
  %y = reshape %b {shape=[1, m, k]} : f32[1, m, k]
  %d = sub %x, %y : f32[n, m, k]
  %q = mul %d, %d : f32[n, m, k]
  %r = sum %q {axes=[2]} : f32[n, m]
  return %r
}
"""


@pytest.mark.parametrize(("n", "m", "k"), [(0, 3, 2), (3, 5, 1), (2, 17, 9), (4, 3, 0)])
def test_turning_an_operand_round_changes_no_bit(n: int, m: int, k: int) -> None:
    kernel = kernel_of(PAIRS)
    turned = turn_operands(kernel, {"n": 900, "m": 900, "k": 20})
    assert turned is not None
    dims = {"n": n, "m": m, "k": k}
    arrays = arrays_for(kernel, dims, 3)
    buffers = {p.name: a.copy() for p, a in zip(kernel.params, arrays)}
    for p in turned.temporaries:
        shape = tuple(s.evaluate(dims) if isinstance(s, Dim) else s for s in p.shape)
        buffers[p.name] = np.full(shape, 7, p.dtype.numpy)
    for part in (*turned.copies, turned.kernel):
        scheduled = default_schedule(part, Target(512, 2))
        verify_kernel(scheduled)
        interpret(scheduled, [buffers[p.name] for p in part.params], dims)
    whole = run(kernel, arrays, dims, None)
    assert whole == [None, *[buffers[p.name].tobytes() for p in kernel.params]]


@pytest.mark.parametrize("hints", [{}, {"n": 2, "m": 900, "k": 20}, {"n": 9, "m": 9, "k": 999}])
def test_an_operand_is_turned_round_only_where_rows_share_short_sums(hints) -> None:
    assert turn_operands(kernel_of(PAIRS), hints) is None
    assert turn_operands(kernel_of(TOTAL), {"n": 900, "m": 900}) is None


def test_a_small_known_reduction_is_not_split() -> None:
    assert split_reduction(kernel_of(TOTAL.replace("[n]", "[1000]")), {}) is None


ROWS = """graph @f(%x: f32[n, m], %y: f32[n]) -> f32[n, m] {
  %s = sum %x {axes=[1]} : f32[n]
  %t = mul %s, %y : f32[n]
  %c = reshape %t {shape=[n, 1]} : f32[n, 1]
  %z = sub %x, %c : f32[n, m]
  return %z
}
"""


def test_a_vector_axis_is_not_put_around_or_inside_another() -> None:
    kernel = vectorize(kernel_of(ROWS), "r", 8)
    with pytest.raises(IllegalSchedule):
        vectorize(kernel, "i", 8)
    kernel = vectorize(kernel_of(ROWS), "i", 8)
    with pytest.raises(IllegalSchedule):
        vectorize(kernel, "j", 8)


def test_lanes_never_run_along_an_axis_on_which_a_loop_inside_depends() -> None:
    halves = split_reduction(kernel_of(TOTAL), {})
    assert halves is not None
    kernel = halves.first
    blocks = next(s for s in kernel.body if isinstance(s, Parallel))
    with pytest.raises(IllegalSchedule):
        vectorize(kernel, blocks.axis, 8)
    scheduled = default_schedule(kernel, Target(512, 2))
    assert not any(isinstance(s, Parallel) and s.vector for s in walk(scheduled.body))
    assert any(isinstance(s, Reduce) and s.vector for s in walk(scheduled.body))


def test_threads_take_only_the_one_outermost_loop() -> None:
    kernel = kernel_of(ROWS)
    assert any(isinstance(s, Parallel) and s.threads for s in walk(parallelize(kernel, "i").body))
    with pytest.raises(IllegalSchedule):
        parallelize(kernel, "j")
    with pytest.raises(IllegalSchedule):
        unroll(kernel, "q", 2)


def test_the_verifier_names_what_is_wrong() -> None:
    kernel = kernel_of(ROWS)
    assert complaints_about(kernel) == []
    broken = Kernel("k", kernel.params[:1], ("n",), kernel.body)
    text = "\n".join(complaints_about(broken))
    assert "parameter x: m is not known here" in text
    assert "y is no buffer" in text
    assert "out_z is no buffer" in text
    marked = vectorize(vectorize(kernel, "r", 8), "j", 8)
    inner = next(s for s in walk(marked.body) if isinstance(s, Parallel) and s.axis == "j")
    outside = Kernel("k", kernel.params, kernel.dims, (inner,))
    assert any("is not known here" in c for c in complaints_about(outside))
