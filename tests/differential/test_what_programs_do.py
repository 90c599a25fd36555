"""What a run of random programs covers: their length, their ops, and the kinds of their arguments.

Not here: whether they give what NumPy gives (test_programs.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import beyond_numpy
import numpy_lines
from numpy_lines import kind_of
from tracemill.compiler.ir.graph import Graph
from tracemill.compiler.ops import ALL
from tracemill.compiler.passes import PASSES, PIPELINE
from tracemill.compiler.passes.base import run_passes

from . import judge
from .programs import Program, random_program
from .test_programs import COMPILED, PER_TEST, trace_with_open_sizes

RUN = COMPILED * PER_TEST
TRACED = 150  # of them: enough for the averages; more where a rare op is still missing
NEVER = {
    "positive": "a trace returns the operand",
    "print": "has no result (tests/compiled)",
    "send": "needs two devices (tests/runtime, tests/compiled)",
    "recv": "needs two devices",
}


def nodes(graph: Graph) -> Iterator[str]:
    """The op of each node, those in regions too."""
    for node in graph.nodes:
        yield node.op.name
        for region in node.regions:
            yield from nodes(region)


@dataclass
class Covered:
    """What some programs do, each as it was traced."""

    lengths: list[int] = field(default_factory=list)
    ops: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, program: Program, argument_sets: Sequence[Sequence[Any]]) -> None:
        """Count one more program."""
        traced = trace_with_open_sizes(program, argument_sets[0])
        graph = traced.trace.graph
        ops = list(nodes(graph))
        self.lengths.append(len(ops))
        self.ops.update(ops)
        self.ops.update(nodes(run_passes(graph, (*PIPELINE, PASSES["fuse"])).graph))
        arrays = [a for args in argument_sets for a in args if isinstance(a, np.ndarray)]
        self.kinds["symbolic"] += bool(traced.symbol_places)
        self.kinds["strided"] += any(not a.flags.c_contiguous for a in arrays)
        floats = [a for a in arrays if kind_of(a) in "fc"]
        self.kinds["nan"] += any(bool(np.isnan(a).any()) for a in floats)
        self.kinds["empty"] += any(not a.size for a in arrays)


@pytest.fixture(scope="module")
def covered(pytestconfig: pytest.Config) -> Covered:
    rng = np.random.default_rng(pytestconfig.option.seed)
    made = Covered()
    for count in range(RUN):
        if count >= TRACED and not missing(made):
            break
        program, _, argument_sets = random_program(rng)
        made.add(program, argument_sets)
    return made


def missing(covered: Covered) -> set[str]:
    """Ops that no program came to; those of libraries are in tests/compiled."""
    ours = {name for name, op in ALL.items() if op.routine is None}
    return ours - set(NEVER) - set(covered.ops)


def test_programs_are_long_and_use_every_line(rng: np.random.Generator) -> None:
    used: Counter[str] = Counter()
    steps = []
    for _ in range(RUN):
        program, sizes, _ = random_program(rng)
        assert len({tuple(choice.values()) for choice in sizes}) >= 2
        steps.append(len(program.steps))
        used.update(step.line for step in program.steps)
    assert np.mean(steps) >= 20
    never = {line.text for line in numpy_lines.lines() + beyond_numpy.lines()} - set(used)
    assert len(never) <= 2, never  # by chance a rare one may be missing


def test_their_graphs_have_many_nodes(covered: Covered) -> None:
    assert np.mean(covered.lengths) >= 40
    assert min(covered.lengths) >= 12  # steps may be views, or constants


def test_their_graphs_have_every_op(covered: Covered) -> None:
    assert not set(NEVER) & set(covered.ops), "no longer true"
    assert len(missing(covered)) <= 2, missing(covered)  # by chance rare ones may be missing


@pytest.mark.parametrize(
    ("kind", "share"), [("symbolic", 0.95), ("strided", 0.6), ("nan", 0.08), ("empty", 0.3)]
)
def test_their_arguments_are_of_every_kind(kind: str, share: float, covered: Covered) -> None:
    assert covered.kinds[kind] >= share * len(covered.lengths)


def test_the_judge_can_move_what_is_rounded(rng: np.random.Generator) -> None:
    moved = 0
    for _ in range(60):
        program, _, argument_sets = random_program(rng)
        found = judge.expected(program, argument_sets[0], rng)
        moved += len(found.samples) in (2 * judge.PAIRS, 2 * judge.PAIRS + judge.TIES)
    assert moved >= 58, "runs of NumPy with moved results fail"
