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


def times(n: int, m: int | None) -> list[int | None]:
    made = graph()
    plan = compile_graph(made, target=Target(256, 2))
    hints = {"n": n} if m is None else {"n": n, "m": m}
    return kernel_times(plan, [value.tensor.shape for value in made.params], hints)


def test_times_grow_with_the_sizes_of_the_call() -> None:
    small, large = times(1000, 1000), times(1_000_000, 1000)
    assert len(small) == len(large) >= 2
    grown = [b / a for a, b in zip(small, large, strict=True) if a and b and a != b]
    assert len(grown) == 1
    assert 500 < grown[0] < 1500
    assert max(t or 0 for t in large) > 100_000  # nanoseconds of a million of tanh


def test_the_time_at_a_size_that_is_not_given_is_not_known() -> None:
    known, some = times(10_000_000, 10_000_000), times(10_000_000, None)
    assert None not in known
    assert 0 < some.count(None) < len(some)
    assert all(a == b for a, b in zip(known, some, strict=True) if b is not None)


def test_the_form_of_a_product_that_a_call_does_not_take_has_no_time() -> None:
    b = Builder("f")
    x, y = b.param("x", TensorType(F32, (N, M))), b.param("y", TensorType(F32, (M, M)))
    made = b.finish([b.emit("contract", [x, y], {"axes": ((1, 0),), "batch": ()})])
    plan = compile_graph(made, target=Target(256, 2))
    names = [kernel.name for kernel in plan.kernels]
    assert "pack" in names  # for large sizes
    shapes = [value.tensor.shape for value in made.params]
    small = kernel_times(plan, shapes, {"n": 16, "m": 32})
    large = kernel_times(plan, shapes, {"n": 1600, "m": 3200})
    assert None not in (*small, *large)
    pack = names.index("pack")
    assert (small[pack], bool(large[pack])) == (0, True)
    runs = [(bool(a), bool(b)) for a, b in zip(small, large, strict=True)]
    assert runs.count((True, False)) == 1
    assert (True, True) not in runs
