"""Size: a chain of 100,000 nodes goes through everything, and work grows with the graph.

Growth is counted in visits, not in seconds.

Not here: how long it takes (benchmarks).
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.fingerprint import fingerprint
from tracemill.compiler.ir.graph import Graph
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.ir.printer import print_graph
from tracemill.compiler.ir.traversal import all_nodes, last_uses, needed, users
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.passes import PIPELINE
from tracemill.compiler.passes.base import run_passes
from tracemill.compiler.types import F32, TensorType

DEEP = 100_000


def chain(length: int) -> Graph:
    """Negations and additions, one after another."""
    b = Builder("chain")
    x = b.param("x", TensorType(F32, (Dim.symbol("n"),)))
    value = x
    for i in range(length):
        value = b.add(value, x) if i % 2 else b.square(value)
    return b.finish([value])


@pytest.fixture(scope="module")
def deep() -> Graph:
    return chain(DEEP)


def test_a_deep_chain_goes_through_everything_without_recursion(deep: Graph) -> None:
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(300)
        ticket = run_passes(deep, PIPELINE)
        text = print_graph(ticket.graph)
        read = parse_graph(text)
        verify(read)
        assert fingerprint(read) == fingerprint(ticket.graph)
        assert len(needed(read)) == len(read.nodes) == DEEP
        assert sum(1 for _ in all_nodes(read)) == DEEP
        assert len(users(read)) == DEEP + 1
        evaluate(read, [np.zeros(1, np.float32)])
    finally:
        sys.setrecursionlimit(limit)


STEPS: dict[str, Callable[[Graph], object]] = {
    "verify": verify,
    "print": print_graph,
    "fingerprint": fingerprint,
    "needed": needed,
    "last_uses": last_uses,
    "users": users,
    **{step.name: step.run for step in PIPELINE},
}


def calls(step: Callable[[Graph], object], graph: Graph) -> int:
    """Python function calls that `step` makes."""
    count = 0

    def see(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        step(graph)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", STEPS)
def test_work_grows_with_the_graph(name: str) -> None:
    small, large = (calls(STEPS[name], chain(length)) for length in (500, 4000))
    assert large <= 8.5 * small + 1000


def test_building_grows_with_the_graph() -> None:
    empty = chain(1)
    small, large = (calls(lambda _: chain(500), empty), calls(lambda _: chain(4000), empty))
    assert large <= 8.5 * small


def layers(count: int) -> Graph:
    """Additions of parameters whose sizes are found to be that of the first one by one."""

    def unify(left: object, right: object) -> bool:
        b.substitute({str(right): Dim.symbol("n0")})
        return True

    b = Builder("layers", None, unify)
    params = [b.param("x", TensorType(F32, (Dim.symbol(f"n{i}"),))) for i in range(count)]
    value = params[0]
    for param in params[1:]:
        value = b.add(value, b.tanh(param))
    return b.finish([value])


def test_making_many_sizes_one_grows_with_the_graph() -> None:
    empty = chain(1)
    small, large = (calls(lambda _: layers(200), empty), calls(lambda _: layers(1600), empty))
    assert large <= 8.5 * small
    made = layers(20)
    verify(made)
    assert {v.type for v in made.values()} == {TensorType(F32, (Dim.symbol("n0"),))}
