"""The gradient transform itself: paths, sums, selects, order, size."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tracemill.compiler.dims import Dim
from tracemill.compiler.errors import GradientError
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.graph import Location
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.transforms.grad import gradient_graph, gradients
from tracemill.compiler.types import C128, F32, F64, I64, TensorType

SCALAR = TensorType(F64, ())
VECTOR = TensorType(F64, (2,))


def gradient_at(build, *args, types=None):
    """The gradients of the sum of what `build` makes, at `args`."""
    args = [np.asarray(a) for a in args]
    b = Builder("f")
    params = [b.param("x", types[i] if types else TensorType(F64, a.shape))
              for i, a in enumerate(args)]  # fmt: skip
    made = build(b, *params)
    loss = b.sum(made, axes=tuple(range(made.type.rank))) if made.type.rank else made
    graph = gradient_graph(b.finish([loss]), params)
    verify(graph)
    return evaluate(graph, args)[1:]


def masked(of):
    """where(x > 0, of(x), 0)"""

    def build(b, x):
        zero = b.constant(0.0, F64)
        return b.select(b.greater(x, zero), of(b, x), zero)

    return build


TRAPS = {
    "sqrt": (lambda b, x: b.sqrt(x), [0.0, 4.0], [0.0, 0.25]),
    "reciprocal": (lambda b, x: b.reciprocal(x), [0.0, 2.0], [0.0, -0.25]),
    "division": (lambda b, x: b.div(b.sin(x), x), [0.0, 2.0], None),
    "log": (lambda b, x: b.log(x), [0.0, 2.0], [0.0, 0.5]),
    "log of log": (lambda b, x: b.log(b.log(x)), [0.0, np.e], [0.0, 1 / np.e]),
    "power": (lambda b, x: b.power(x, b.constant(0.5, F64)), [0.0, 4.0], [0.0, 0.25]),
    "overflow": (lambda b, x: b.mul(x, b.exp(b.mul(x, b.constant(-1e3, F64)))), [-3.0, 0.0], None),
    "through a cast": (
        lambda b, x: b.cast(b.sqrt(b.cast(x, dtype=F32)), dtype=F64), [0.0, 4.0], [0.0, 0.25]),
    "through a sum of squares": (
        lambda b, x: b.broadcast_to(
            b.sqrt(b.sum(b.square(b.mul(x, b.constant(0.0, F64))), axes=(0,))), shape=(2,)),
        [-1.0, -2.0], [0.0, 0.0]),
    "through movement": (
        lambda b, x: b.reshape(b.sqrt(b.reshape(x, shape=(1, 2))), shape=(2,)),
        [0.0, 4.0], [0.0, 0.25]),
}  # fmt: skip


@pytest.mark.parametrize(("of", "at", "wanted"), TRAPS.values(), ids=TRAPS.keys())
def test_a_branch_not_taken_passes_zero_back(of, at, wanted):
    (found,) = gradient_at(masked(of), at)
    assert np.isfinite(found).all()
    if wanted is not None:
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_the_same_holds_in_the_second_order():
    b = Builder("f")
    x = b.param("x", VECTOR)
    loss = b.sum(masked(lambda b, x: b.sqrt(x))(b, x), axes=(0,))
    (first,) = gradients(b, [loss], [x])
    (second,) = gradients(b, [b.sum(first, axes=(0,))], [x])
    (found,) = evaluate(b.finish([second]), [np.array([0.0, 4.0])])
    np.testing.assert_allclose(found, [0, -1 / 32])


def test_maximum_cuts_like_a_select():
    (found,) = gradient_at(lambda b, x: b.maximum(b.sqrt(x), b.constant(1.0, F64)), [0.0, 4.0])
    np.testing.assert_allclose(found, [0, 0.25])


def test_without_a_select_the_product_is_what_floating_point_makes_of_it():
    (found,) = gradient_at(lambda b, x: b.mul(b.sqrt(x), b.constant(0.0, F64)), [0.0, 4.0])
    assert np.isnan(found[0])


def test_a_gradient_without_a_select_has_no_guard():
    b = Builder("f")
    x = b.param("x", VECTOR)
    gradients(b, [b.sum(b.div(b.exp(x), b.sqrt(x)), axes=(0,))], [x])
    assert not any(node.op.name == "select" for node in b.nodes)


def test_the_distances_of_a_masked_matrix():
    """sum(where(mask, 1 / |x_i - x_j|, 0)): the diagonal divides by zero, off the mask."""

    def build(b, x):
        row, column = b.reshape(x, shape=(1, 3)), b.reshape(x, shape=(3, 1))
        distance = b.sqrt(b.square(b.sub(row, column)))
        mask = b.constant(~np.eye(3, dtype=bool))
        return b.select(mask, b.reciprocal(distance), b.constant(0.0, F64))

    at = np.array([0.0, 1.0, 3.0])

    def plain(x):
        distance = np.abs(x[:, None] - x)[~np.eye(3, dtype=bool)]
        return (1 / distance).sum()

    eye = np.eye(3) * 1e-6
    wanted = [(plain(at + e) - plain(at - e)) / 2e-6 for e in eye]
    (found,) = gradient_at(build, at)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


# -- paths


def test_several_paths_add_up():
    (found,) = gradient_at(lambda b, x: b.add(b.mul(x, x), b.add(x, x)), [3.0])
    np.testing.assert_allclose(found, [8.0])


def test_no_path_is_none_and_an_input_may_be_its_own_output():
    b = Builder("f")
    x, y = b.param("x", SCALAR), b.param("y", SCALAR)
    n = b.param("n", TensorType(I64, ()))
    assert gradients(b, [b.mul(x, x)], [y]) == [None]
    (same,) = gradients(b, [x], [x])
    assert same.node.op.name == "constant"
    before = len(b.nodes)
    assert gradients(b, [b.mul(x, b.cast(n, dtype=F64))], [n]) == [None]
    assert len(b.nodes) <= before + 3


def test_integers_and_stop_gradient_end_a_path_without_an_error():
    def build(b, x):
        steps = b.cast(b.cast(x, dtype=I64), dtype=F64)
        return b.mul(b.mul(x, steps), b.stop_gradient(x))

    (found,) = gradient_at(build, [3.5])
    np.testing.assert_allclose(found, [3 * 3.5])


def test_integer_state_beside_floating_state():
    """i, s = 0, 0; three times: i, s = i + 1, s + x * i"""

    def build(b, x):
        i, s = b.constant(0, I64), b.constant(0.0, F64)
        for _ in range(3):
            i, s = b.add(i, b.constant(1, I64)), b.add(s, b.mul(x, b.cast(i, dtype=F64)))
        return s

    (found,) = gradient_at(build, 2.0)
    assert found == 3.0


def test_an_intermediate_value_is_an_input_too():
    b = Builder("f")
    x = b.param("x", SCALAR)
    middle = b.square(x)
    loss = b.square(middle)
    by_middle, by_x = gradients(b, [loss], [middle, x])
    found = evaluate(b.finish([by_middle, by_x]), [np.array(3.0)])
    assert [float(v) for v in found] == [18.0, 108.0]


def test_cotangents_weight_the_outputs():
    b = Builder("f")
    x, weight = b.param("x", VECTOR), b.param("w", VECTOR)
    outputs = [b.square(x), b.mul(x, weight), b.neg(x)]
    (found,) = gradients(b, outputs, [x], [weight, None, weight])
    got = evaluate(b.finish([found]), [np.array([1.0, 2.0]), np.array([10.0, 100.0])])[0]
    np.testing.assert_allclose(got, [2 * 10 - 10, 4 * 100 - 100])
    with pytest.raises(GradientError, match="cotangent"):
        gradients(b, [outputs[0]], [x], [b.constant(1.0, F64)])


def test_what_has_no_gradient_is_told():
    b = Builder("f")
    x = b.param("x", TensorType(I64, ()))
    with pytest.raises(GradientError, match="i64"):
        gradients(b, [x], [x])


def test_a_result_nobody_used_counts_as_zero():
    def build(b, x):
        fraction, _ = b.modf(x)
        return b.square(fraction)

    (found,) = gradient_at(build, [1.25, -2.5])
    np.testing.assert_allclose(found, [0.5, -1.0])


def test_the_gradient_of_a_real_loss_by_a_complex_value_points_uphill():
    b = Builder("f")
    z = b.param("z", TensorType(C128, ()))
    loss = b.add(b.square(b.real(z)), b.mul(b.imag(z), b.constant(3.0, F64)))
    (found,) = gradients(b, [loss], [z])
    assert evaluate(b.finish([found]), [np.array(2 + 5j)])[0] == 4 + 3j


def test_symbolic_sizes():
    b = Builder("f")
    n = Dim.symbol("n")
    x, y = b.param("x", TensorType(F64, (n, 3))), b.param("y", TensorType(F64, (3,)))
    one = b.param("o", TensorType(F64, (1, 3)))
    loss = b.sum(b.mul(b.mul(x, y), one), axes=(0, 1))
    graph = gradient_graph(b.finish([loss]), [x, y, one])
    verify(graph)
    for rows in (1, 4):
        args = [np.full((rows, 3), 2.0), np.full(3, 5.0), np.full((1, 3), 7.0)]
        _, by_x, by_y, by_one = evaluate(graph, args)
        np.testing.assert_array_equal(by_x, np.full((rows, 3), 35.0))
        np.testing.assert_array_equal(by_y, np.full(3, 14.0 * rows))
        np.testing.assert_array_equal(by_one, np.full((1, 3), 10.0 * rows))


def test_power_at_zero():
    at = np.zeros(3), np.array([0.0, 1.0, 2.0])
    by_x, _ = gradient_at(lambda b, x, y: b.power(x, y), *at)
    np.testing.assert_array_equal(by_x, [0, 1, 0])
    _, by_y = gradient_at(lambda b, x, y: b.power(x, y), np.zeros(2), np.array([1.0, 2.0]))
    np.testing.assert_array_equal(by_y, [0, 0])


def test_ties_have_one_convention_the_first_takes_all():
    zero = lambda b: b.constant(0.0, F64)
    (ramp,) = gradient_at(lambda b, x: b.maximum(x, zero(b)), [0.0, 1.0, -1.0])
    assert ramp.tolist() == [1, 1, 0]
    for name in ("maximum", "minimum", "fmax", "fmin"):
        by_a, by_b = gradient_at(lambda b, x, y, n=name: b.emit(n, (x, y)), [1.0], [1.0])
        assert (by_a, by_b) == (1, 0)
    for name in ("max", "min"):
        at = [[1.0, 1.0], [2.0, 1.0], [2.0, 2.0]]
        (rows,) = gradient_at(lambda b, x, n=name: b.emit(n, (x,), {"axes": (1,)}), at)
        (columns,) = gradient_at(lambda b, x, n=name: b.emit(n, (x,), {"axes": (0,)}), at)
        (whole,) = gradient_at(lambda b, x, n=name: b.emit(n, (x,), {"axes": (0, 1)}), at)
        of = getattr(np, f"arg{name}")
        np.testing.assert_array_equal(rows, np.eye(2)[of(at, axis=1)])
        np.testing.assert_array_equal(columns, np.eye(3)[of(at, axis=0)].T)
        np.testing.assert_array_equal(whole, np.eye(6)[of(at)].reshape(3, 2))


# -- the graph it makes


def test_a_finished_graph_keeps_its_results_effects_and_variables():
    b = Builder("train")
    x = b.param("x", VECTOR)
    b.variable("w", VECTOR)
    w = b.emit("read", variable="w")
    loss = b.sum(b.mul(x, w), axes=(0,))
    b.emit("assign", (b.neg(w),), variable="w")
    graph = b.finish([loss])
    grown = gradient_graph(graph, [w, x])
    verify(grown)
    assert len(grown.results) == 4
    assert graph.results[0] is grown.results[0]
    store = {"w": np.array([3.0, 4.0])}
    _, by_w, by_x = evaluate(grown, [np.array([1.0, 2.0])], store)
    np.testing.assert_array_equal(by_w, [1, 2])
    np.testing.assert_array_equal(by_x, [3, 4])
    np.testing.assert_array_equal(store["w"], [-3, -4])


def test_zeros_stand_for_no_path_in_a_finished_graph():
    by_x, by_y = gradient_at(lambda b, x, y: b.mul(x, x), 3.0, np.ones(2))
    assert by_x == 6
    np.testing.assert_array_equal(by_y, [0, 0])


def test_nodes_have_the_place_and_device_of_what_they_differentiate():
    b = Builder("f", locate=lambda: here)
    x = b.param("x", SCALAR)
    here, b.device = Location("model.py", 3, "f"), "cpu:1"
    loss = b.sin(x)
    here, b.device = Location("train.py", 9, "step"), "cpu:0"
    (found,) = gradients(b, [loss], [x])
    assert found.node.location.file == "model.py"
    assert found.node.device == "cpu:1"
    after = b.neg(found)
    assert after.node.location.file == "train.py"
    assert after.node.device == "cpu:0"


def test_a_rule_may_come_from_elsewhere():
    b = Builder("f")
    x = b.param("x", SCALAR)
    loss = b.sin(x)
    own = lambda node: lambda emit, node, cts: [emit.mul(cts[0], emit.constant(42.0, F64))]
    (found,) = gradients(b, [loss], [x], rule_of=own)
    assert evaluate(b.finish([found]), [np.array(0.3)])[0] == 42.0


def test_a_chain_of_100_000_nodes():
    b = Builder("f")
    x = y = b.param("x", SCALAR)
    for _ in range(50_000):
        y = b.neg(b.mul(y, x))
    start = time.perf_counter()
    (found,) = gradients(b, [y], [x])
    assert found is not None
    assert time.perf_counter() - start < 20


def test_third_order():
    b = Builder("f")
    x = y = b.param("x", SCALAR)
    y = b.mul(b.mul(x, x), b.mul(x, x))
    for _ in range(3):
        (y,) = gradients(b, [y], [x])
    assert evaluate(b.finish([y]), [np.array(2.0)])[0] == 48.0
