"""Random NumPy programs give what NumPy gives, with all passes, with none, and in any order.

Each program is compiled and called with three choices of sizes, 0 and 1 among them: a third of
them with all passes, a third with none, a third with passes in random order. One part in
`BEST` runs the best code, the others what a first call gets where a list of kernels is long: quick
code, which computes the same bits (tests/backends/test_levels.py). Further programs run as traced
graphs under the reference evaluator, each in all three ways. `--seed` repeats a run; a failure
prints the smallest program that still fails, ready to be run.

Not here: what the programs are like (test_what_programs_do.py), random graphs below the frontend
(tests/kernels/test_plans.py, tests/passes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import TracedCall, flatten_results
from tracemill import engine
from tracemill.backends.cpu import effort
from tracemill.calls.arguments import Signature, flat_call
from tracemill.calls.build import Optimisation
from tracemill.calls.specialise import Traced, trace_call
from tracemill.compiler.passes import PASSES, PIPELINE
from tracemill.compiler.passes.base import Pass, run_passes

from . import judge, programs
from .reporting import script, smallest

PER_TEST = 20  # so that workers share them
COMPILED = 25  # times PER_TEST programs as machine code
BEST = 5  # one part in so many runs the best code, the others quick code
GRAPHS = 4  # times PER_TEST programs as graphs
EVERY_SIZE = 20  # one in so many is compiled for each choice of sizes, the others once
NIGHT, PER_NIGHT_TEST = 100, 60  # programs of three sizes: about an hour of one core


@pytest.fixture
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels get best or quick code whatever they cost, and stay what they are."""
    seconds = {"best": float("inf"), "quick": 0.0}[request.param]
    monkeypatch.setattr(effort, "LONG_LIST", seconds)
    monkeypatch.setattr(engine.backend().improving, "add", lambda jobs: None)


def shuffled(rng: np.random.Generator) -> tuple[Pass, ...]:
    """Passes in random order, some twice, fusion anywhere."""
    steps = [PASSES[name] for name in sorted(PASSES)] * 2
    order = rng.permutation(len(steps))
    return tuple(steps[i] for i in order[: int(rng.integers(1, len(steps) + 1))])


def optimisation_for(number: int, rng: np.random.Generator) -> Optimisation:
    """All passes, none, or some in random order, for one program in three each."""
    if number % 3 == 1:
        return Optimisation((), fuse=False)
    return Optimisation(shuffled(rng)) if number % 3 == 2 else Optimisation()


def compare_compiled(rng: np.random.Generator, number: int) -> None:
    """Compile a program for each choice of sizes and compare it with NumPy."""
    program, _, argument_sets = programs.random_program(rng)
    optimisation = optimisation_for(number, rng)
    call: Any = tm.jit(program.function())
    call.dispatcher.optimisation = optimisation
    for args in argument_sets:
        found = judge.check(program, call, args, judge.expected(program, args, rng))
        assert not found, smallest(program, optimisation, argument_sets, args, found)


def compare_compiled_once(rng: np.random.Generator, number: int) -> None:
    """Compile a program with a symbol for every axis, for any of the choices of sizes, and
    compare it with NumPy for all that the one compilation serves."""
    program, _, argument_sets = programs.random_program(rng)
    argument_sets = [argument_sets[i] for i in rng.permutation(len(argument_sets))]
    optimisation = optimisation_for(number, rng)
    call: Any = tm.jit(program.function())
    call.dispatcher.optimisation = optimisation
    call.dispatcher._freed |= every_axis(argument_sets[0])
    for args in argument_sets:
        (version, *_) = call.dispatcher.versions or (None,)
        if version is not None and version.traced.mismatch(flat_call(args)) is not None:
            continue
        found = judge.check(program, call, args, judge.expected(program, args, rng))
        assert not found, smallest(program, optimisation, argument_sets, args, found)


def every_axis(args: Sequence[Any]) -> frozenset[tuple[int, int]]:
    """All axes of all arguments."""
    shapes = [np.shape(leaf) for leaf in flat_call(args).leaves]
    return frozenset((i, axis) for i, shape in enumerate(shapes) for axis in range(len(shape)))


def trace_with_open_sizes(program: programs.Program, args: Sequence[Any]) -> Traced:
    """A trace in which every axis has a symbol, small ones too."""
    function, call = program.function(), flat_call(args)
    freed, names = every_axis(args), programs.NAMES[: len(args)]
    try:
        return trace_call(function, Signature.of(function), call, names, freed, frozenset())
    except Exception as problem:
        raise AssertionError(program.source) from problem


def compare_graphs(rng: np.random.Generator) -> int:
    """Trace a program, rewrite it, and compare evaluations; how many sizes the trace served."""
    program, _, argument_sets = programs.random_program(rng)
    traced = trace_with_open_sizes(program, argument_sets[0])
    orders: Sequence[tuple[Pass, ...]] = ((), PIPELINE, shuffled(rng))
    graphs = [run_passes(traced.trace.graph, passes).graph for passes in orders]
    spec, places = flatten_results(program.outputs)[1], dict(traced.symbol_places)
    calls = [
        TracedCall(replace(traced.trace, graph=graph, structure=spec), places) for graph in graphs
    ]
    served = [args for args in argument_sets if traced.mismatch(flat_call(args)) is None]
    for args in served:
        wanted = judge.expected(program, args, rng)
        plain = None
        for passes, made in zip(orders, calls):
            found = judge.check(program, made, args, wanted)
            names = [step.name for step in passes]
            assert not found, f"after {names}\n{script(program, args, found)}"
            results = made(*programs.copied(args))
            plain = plain or results
            # The evaluator calls NumPy, whose bits depend on how arrays lie in memory where it
            # rounds or adds; everywhere else passes may change nothing.
            other = [
                judge.difference(b, a, [s[at] for s in wanted.samples])
                for at, a, b in zip(program.outputs, plain, results)
            ]
            assert not any(other), f"after {names}\n{script(program, args, map(str, other))}"
    return len(served)


def codes_of(parts: int) -> list[Any]:
    """Which code each part runs, and its number."""
    return [pytest.param("quick" if at % BEST else "best", at, id=f"{at}") for at in range(parts)]


@pytest.mark.parametrize(("code", "part"), codes_of(COMPILED), indirect=["code"])
def test_compiled_programs_equal_numpy(code: None, part: int, rng: np.random.Generator) -> None:
    for number in range(PER_TEST):
        compare = compare_compiled if number % EVERY_SIZE == 0 else compare_compiled_once
        compare(rng, number + part)


@pytest.mark.parametrize("part", range(GRAPHS))
def test_graphs_equal_numpy_after_passes_in_any_order(part: int, rng: np.random.Generator) -> None:
    served = sum(compare_graphs(rng) for _ in range(PER_TEST))
    assert served > PER_TEST, f"in part {part} hardly a trace served a second size"


@pytest.mark.slow
@pytest.mark.parametrize(("code", "part"), codes_of(NIGHT), indirect=["code"])
def test_a_night_of_compiled_programs(code: None, part: int, rng: np.random.Generator) -> None:
    for number in range(PER_NIGHT_TEST):
        compare_compiled(rng, number + part)
