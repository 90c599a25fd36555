"""Random NumPy programs, compiled, give what NumPy gives.

Each program is called with three choices of sizes, 0 and 1 among them, through one compiled
function. `--seed` repeats a run; a failure prints the smallest program that still fails, which
is a script.

Not here: random graphs below the frontend (tests/kernels/test_plans.py, tests/passes).
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import tracemill as tm
from mill import same
from tracemill.build import Optimisation
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.passes import PASSES, PIPELINE
from tracemill.compiler.passes.base import run_passes

from . import judge, programs
from .reporting import smallest

PER_TEST = 25  # so that workers share them
COMPILED = 8  # parts of PER_TEST programs that are compiled in `make test`
TRACED = 24  # parts that are traced, rewritten by passes and evaluated
FIXED_PASSES = [PASSES[name] for name in sorted(PASSES)]


def shuffled(rng: np.random.Generator) -> tuple[object, ...]:
    """Passes in random order, some twice, fusion anywhere."""
    order = rng.permutation(len(FIXED_PASSES) * 2) % len(FIXED_PASSES)
    return tuple(FIXED_PASSES[i] for i in order[: int(rng.integers(1, len(order) + 1))])


def optimisation_for(number: int, rng: np.random.Generator) -> Optimisation:
    """All passes mostly; none, or some in random order, for one program in eight each."""
    if number % 8 == 1:
        return Optimisation((), fuse=False)
    if number % 8 == 5:
        return Optimisation(shuffled(rng))  # type: ignore[arg-type]
    return Optimisation()


def compare(rng: np.random.Generator, number: int) -> int:
    """Compile and compare one program; how many steps it has."""
    program, _, argument_sets = programs.random_program(rng)
    optimisation = optimisation_for(number, rng)
    call = tm.jit(program.function())
    call.dispatcher.optimisation = optimisation  # type: ignore[attr-defined]
    for args in argument_sets:
        found = judge.check(program, call, args, judge.expected(program, args, rng))
        assert not found, smallest(program, optimisation, argument_sets, args, found)
    return len(program.steps)


@pytest.mark.parametrize("part", range(COMPILED))
def test_compiled_programs_equal_numpy(part: int, rng: np.random.Generator) -> None:
    for number in range(PER_TEST):
        compare(rng, number)
    del part


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20_000 // 250))
def test_many_compiled_programs_equal_numpy(part: int, rng: np.random.Generator) -> None:
    for number in range(250):
        compare(rng, number)
    del part


@pytest.mark.parametrize("part", range(TRACED))
def test_passes_in_any_order_keep_every_bit(part: int, rng: np.random.Generator) -> None:
    for _ in range(PER_TEST):
        program, _, argument_sets = programs.random_program(rng)
        traced = tm.jit(program.function()).dispatcher.trace_only(argument_sets[0], {})  # type: ignore[attr-defined]
        inputs = traced.trace.inputs
        leaves = [a for a in argument_sets[0]]
        arrays = [
            np.asarray(leaves[item.leaf], param.tensor.dtype.numpy)
            for item, param in zip(inputs, traced.trace.graph.params, strict=True)
        ]
        plain = tuple(evaluate(traced.trace.graph, arrays))
        for passes in (PIPELINE, shuffled(rng)):
            made = run_passes(traced.trace.graph, passes).graph  # type: ignore[arg-type]
            names = [step.name for step in passes]  # type: ignore[attr-defined]
            assert same(plain, tuple(evaluate(made, arrays))), f"{names}\n{program.source}"
    del part


def test_programs_are_long_and_use_the_whole_catalogue(rng: np.random.Generator) -> None:
    used: Counter[str] = Counter()
    steps = []
    for _ in range(PER_TEST * (COMPILED + TRACED)):
        program, sizes, _ = programs.random_program(rng)
        assert len({tuple(s.values()) for s in sizes}) >= 2
        steps.append(len(program.steps))
        used.update(step.text.split("(")[0] for step in program.steps)
    assert np.mean(steps) >= 20
    heads = {line.text.split("(")[0].split("{")[0] for line in programs.LINES}
    missing = [h for h in heads if h and not any(u.startswith(h) for u in used)]
    assert not missing
