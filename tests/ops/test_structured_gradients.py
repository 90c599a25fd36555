"""Gradients of ops that are not elementwise, against differences; of gradients too.

A rule is right if the gradient graph's value is the derivative of sum(weight * op(x)), and
right again when that graph is itself differentiated.

Not here: the transform (tests/transforms), elementwise rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.graph import Graph, Value
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.transforms.grad import gradients
from tracemill.compiler.types import F64, TensorType

Array = np.ndarray[Any, Any]
I, J = np.array([[0], [-1]]), np.array([1, -2, 0, 1])

# name -> (op, operand shapes, index arrays, attributes)
CASES: dict[str, tuple[str, tuple[Any, ...], tuple[Array, ...], dict[str, Any]]] = {
    "reshape": ("reshape", ((2, 3),), (), {"shape": (3, 2)}),
    "transpose": ("transpose", ((2, 3, 2),), (), {"perm": (2, 0, 1)}),
    "broadcast_to": ("broadcast_to", ((3, 1),), (), {"shape": (2, 3, 2)}),
    "broadcast_to of a number": ("broadcast_to", ((),), (), {"shape": (2, 3)}),
    "slice": ("slice", ((4, 3),), (), {"start": (1, 0), "size": (2, 3), "step": (1, 1)}),
    "slice by steps": ("slice", ((5, 3),), (), {"start": (4, 0), "size": (2, 2), "step": (-3, 2)}),
    "concatenate": ("concatenate", ((2, 2), (2, 1)), (), {"axis": 1}),
    "pad": ("pad", ((2, 2), ()), (), {"low": (1, 0), "high": (0, 2)}),
    "update_slice": ("update_slice", ((5,), (2,)), (), {"start": (4,), "step": (-2,)}),
    "sum": ("sum", ((2, 3, 2),), (), {"axes": (0, 2)}),
    "prod": ("prod", ((2, 3),), (), {"axes": (1,)}),
    "prod over all": ("prod", ((2, 2),), (), {"axes": (0, 1)}),
    "min": ("min", ((2, 3),), (), {"axes": (1,)}),
    "max": ("max", ((3, 2),), (), {"axes": (0,)}),
    "cumsum": ("cumsum", ((2, 3),), (), {"axis": 1}),
    "cummin": ("cummin", ((2, 5),), (), {"axis": 1}),
    "cummax": ("cummax", ((4, 2),), (), {"axis": 0}),
    "cumprod": ("cumprod", ((3, 2),), (), {"axis": 0}),
    "matmul": ("contract", ((2, 3), (3, 2)), (), {"axes": ((1, 0),), "batch": ()}),
    "outer": ("contract", ((2,), (3,)), (), {"axes": (), "batch": ()}),
    "einsum": (
        "contract", ((2, 3, 2, 2), (2, 2, 3)), (), {"axes": ((0, 1), (3, 0)), "batch": ((1, 2),)},
    ),
    "slide": ("slide", ((2, 6, 3),), (), {"axes": (1, 2), "dilation": 1, "size": 2, "stride": 2}),
    "unslide": (
        "unslide", ((2, 2, 3), ()), (), {"axes": (1, 2), "dilation": 2, "size": 7, "stride": 1},
    ),
    "convolve": (
        "convolve", ((2, 2, 5), (2, 2, 3)), (),
        {"axes": ((1, 1),), "batch": (), "windows": ((2, 2, 1, 1),)},
    ),
    "convolve by steps, in groups": (
        "convolve", ((2, 6, 5, 2, 1), (2, 3, 2, 2, 2)), (),
        {"axes": ((3, 3),), "batch": ((0, 0),), "windows": ((1, 1, 2, -1), (2, 4, 1, 3))},
    ),
    "gather": ("gather", ((2, 3, 2),), (I, J), {"axes": (0, 1)}),
    "sort": ("sort", ((3, 5),), (), {}),
    "scatter": ("scatter", ((2, 3), (2, 4)), (J,), {"axes": (1,)}),
    "scatter rows": ("scatter", ((3, 2), (2, 2)), (np.array([1, 1]),), {"axes": (0,)}),
    "scatter_add": ("scatter_add", ((3, 2), (4, 2)), (J,), {"axes": (0,)}),
}  # fmt: skip


def weighted(name: str) -> tuple[Builder, list[Value], list[Value], Value]:
    """A builder with sum(weight * op(x...)^2): parameters x, all parameters, and the number."""
    op, shapes, indices, attrs = CASES[name]
    b = Builder("weighted")
    xs = [b.param(f"x{i}", TensorType(F64, shape)) for i, shape in enumerate(shapes)]
    made = b.emit(op, [*xs, *map(b.constant, indices)], attrs)
    y = made[0] if isinstance(made, tuple) else made
    weight = b.param("weight", y.type)
    total = b.sum(b.mul(weight, b.mul(y, y)), axes=tuple(range(y.tensor.rank)))
    return b, xs, [*xs, weight], total


def arguments(params: Sequence[Value], rng: np.random.Generator) -> list[Array]:
    """Numbers apart from each other and from zero, so that min and max are smooth."""
    found = []
    for param in params:
        shape = tuple(int(str(size)) for size in param.tensor.shape)
        count = int(np.prod(shape))
        found.append((rng.permutation(count) * 0.37 + 0.4).reshape(shape))
    return found


def differences(function: Callable[..., float], args: list[Array], which: int) -> Array:
    """The derivative of ``function(*args)`` by args[which], by central differences."""
    step, found = 1e-5, np.zeros_like(args[which])
    for at in np.ndindex(args[which].shape):
        ends = []
        for sign in (1, -1):
            moved = [arg.copy() for arg in args]
            moved[which][at] += sign * step
            ends.append(function(*moved))
        found[at] = (ends[0] - ends[1]) / (2 * step)
    return found


def run(graph: Graph, args: list[Array]) -> tuple[Array, ...]:
    verify(graph)
    return evaluate(graph, args)


@pytest.mark.parametrize("name", CASES)
def test_the_first_gradient(name: str, rng: np.random.Generator) -> None:
    b, xs, params, total = weighted(name)
    value = b.finish([total], ())
    slopes = [slope for slope in gradients(b, [total], xs) if slope is not None]
    graph = b.finish(slopes, ())
    args = arguments(params, rng)
    for place, slope in enumerate(run(graph, args)):
        near = differences(lambda *a: float(run(value, list(a))[0]), args, place)
        np.testing.assert_allclose(slope, near, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_second_gradient(name: str, rng: np.random.Generator) -> None:
    b, xs, params, total = weighted(name)
    first = [slope for slope in gradients(b, [total], xs) if slope is not None]
    squares = [b.sum(b.mul(s, s), axes=tuple(range(s.tensor.rank))) for s in first]
    number = squares[0] if len(squares) == 1 else b.add(*squares)
    value = b.finish([number], ())
    graph = b.finish([s for s in gradients(b, [number], xs) if s is not None], ())
    args = arguments(params, rng)
    for place, slope in enumerate(run(graph, args)):
        near = differences(lambda *a: float(run(value, list(a))[0]), args, place)
        np.testing.assert_allclose(slope, near, rtol=1e-4, atol=1e-4)


def slope_at(name: str, x: Array) -> Array:
    """The gradient of sum(op(x))."""
    op, _, _, attrs = CASES[name]
    b = Builder("slope")
    p = b.param("x", TensorType(F64, x.shape))
    (slope,) = gradients(b, [b.emit(op, (p,), attrs)], [p])
    assert slope is not None
    return run(b.finish([slope], ()), [x])[0]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([2.0, 3.0, 4.0], [12, 8, 6]),
        ([0.0, 3.0, 4.0], [12, 0, 0]),
        ([0.0, 3.0, 0.0], [0, 0, 0]),
    ],
)
def test_a_product_with_zeros(row: list[float], expected: list[float]) -> None:
    np.testing.assert_array_equal(slope_at("prod", np.array([row])), [expected])


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([2.0, 3.0, 4.0], [1 + 3 + 12, 2 + 8, 6]),
        ([2.0, 0.0, 4.0], [1 + 0 + 0, 2 + 8, 0]),
        ([0.0, 3.0, 0.0], [1 + 3 + 0, 0, 0]),
    ],
)
def test_running_products_with_zeros(column: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(slope_at("cumprod", np.array([column]).T)[:, 0], expected)


def test_the_first_at_a_tie_takes_all() -> None:
    np.testing.assert_array_equal(slope_at("max", np.array([[1.0], [3.0], [3.0]]))[:, 0], [0, 1, 0])
    np.testing.assert_array_equal(slope_at("min", np.array([[1.0, 1.0, 1.0]]))[0], [1, 0, 0])
