"""The time of each kernel of a plan in a call of known sizes."""

from __future__ import annotations

from tracemill.compiler.compile import compile_graph
from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.graph import Graph
from tracemill.compiler.kernel.target import Target
from tracemill.compiler.plan_times import kernel_times
from tracemill.compiler.types import F32, TensorType

N, M = Dim.symbol("n"), Dim.symbol("m")


def graph() -> Graph:
    """tanh of x, and the sum of y."""
    b = Builder("f")
    x, y = b.param("x", TensorType(F32, (N,))), b.param("y", TensorType(F32, (M,)))
    return b.finish([b.emit("tanh", [x]), b.emit("sum", [y], {"axes": (0,)})])


def times(n: int, m: int | None) -> list[int]:
    made = graph()
    plan = compile_graph(made, target=Target(256, 2))
    hints = {"n": n} if m is None else {"n": n, "m": m}
    return kernel_times(plan, [value.tensor.shape for value in made.params], hints)


def test_times_grow_with_the_sizes_of_the_call() -> None:
    small, large = times(1000, 1000), times(1_000_000, 1000)
    assert len(small) == len(large) >= 2
    grown = [b / a for a, b in zip(small, large, strict=True) if a != b]
    assert len(grown) == 1
    assert 500 < grown[0] < 1500
    assert max(large) > 100_000  # nanoseconds of a million of tanh


def test_a_size_that_is_not_known_counts_as_nothing() -> None:
    known, some = times(10_000_000, 10_000_000), times(10_000_000, None)
    assert max(some) == max(known)
    assert sum(t > 0 for t in some) < sum(t > 0 for t in known)
