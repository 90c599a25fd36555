"""Kernels mapped to a grid compute in the emulator what machine code computes on the host."""

from __future__ import annotations

import contextlib

import numpy as np
import optree
import pytest

import mill
from grid_kernels import SUITE, GridRun, plan_of
from kernel_runner import sym
from nest_graphs import CHOICES, EXCHANGE, HALVES
from plan_runner import PlanFailed
from random_graphs import random_graph
from tracemill.backends.cuda.emulator import emulate
from tracemill.compiler.compile import compile_graph
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.kernel.grid import map_to_grid
from tracemill.compiler.kernel.interpreter import interpret
from tracemill.compiler.kernel.kernel import Check, Kernel, Load, Parallel, Parameter
from tracemill.compiler.passes import PIPELINE
from tracemill.compiler.passes.base import run_passes
from tracemill.compiler.types import BOOL

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("blocks", [None, 3], ids=["a block each", "three blocks"])
@pytest.mark.parametrize("name", SUITE)
def test_the_emulator_and_machine_code_agree_on_every_kernel(name, blocks):
    function, args = SUITE[name]
    run = GridRun(plan_of(name), [a.copy() for a in args], {}, 0, blocks=blocks)
    results = run.run()
    assert run.compared
    wanted = optree.tree_leaves(function(*args))
    assert len(results) == len(wanted)
    for got, want in zip(results, wanted):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("number", range(12))
def test_random_graphs_compute_the_same_on_a_grid(number, seed):
    graph = random_graph(seed, 25)
    args, store = mill.inputs_for(graph, seed)
    plan = compile_graph(run_passes(graph, PIPELINE).graph)
    run = GridRun(plan, args, store, seed, blocks=1 + number % 4)
    with contextlib.suppress(PlanFailed):
        run.run()


def test_the_least_failure_is_reported_whoever_finds_it():
    params = (Parameter("p", BOOL, (600,), "in"), Parameter("q", BOOL, (600,), "in"))
    index = (sym("i"),)
    body = (Load("a", "p", index, BOOL), Load("b", "q", index, BOOL), Check("b"), Check("a"))
    mapped = map_to_grid(Kernel("checks", params, (), (Parallel("i", 600, body),)))
    p, q = np.ones(600, bool), np.ones(600, bool)
    assert emulate(mapped, [p, q], {}) is None
    p[599] = False
    assert emulate(mapped, [p, q], {}) == 1
    q[5] = False
    assert emulate(mapped, [p, q], {}) == 0


@pytest.mark.parametrize("text", [EXCHANGE, CHOICES, HALVES], ids=["exchange", "choices", "halves"])
def test_one_block_does_the_trips_of_a_loop_around_numbers(text, rng):
    (kernel,) = compile_graph(parse_graph(text.replace("DT", "f64"))).kernels
    for n in (0, 1, 5):
        arrays = [np.array(n) if p.mode == "in" else np.zeros((), np.int64) for p in kernel.params]
        arrays = [rng.random(n) if p.shape else a for p, a in zip(kernel.params, arrays)]
        wanted = [a.copy() for a in arrays]
        assert interpret(kernel, wanted, {"n": n}) is None
        assert emulate(map_to_grid(kernel), arrays, {"n": n}) is None
        for got, want in zip(arrays, wanted):
            np.testing.assert_array_equal(got, want)
