"""Every tangent rule against differences along a direction, once and twice, by the evaluator."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import tracemill as tm
from library_losses import BATCH, LOSSES, C, M, S, size
from op_cases import BY_HAND, CASES, ELEMENTWISE, smooth_operands, takes
from tracemill.compiler.errors import GradientError
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.shaping import zeros_like
from tracemill.compiler.transforms.jvp import pushforward
from tracemill.compiler.types import BF16, C64, C128, F16, F32, F64, TensorType, dtype_of

STEP = 1e-6


def pushed(graph, smooth):
    """The tangents of a graph's floating results, by its parameters and then their tangents."""
    b = Builder("pushed")
    params = [b.param(p.name, p.type) for p in graph.params]
    given = [b.param("t", p.type) if i in smooth else None for i, p in enumerate(graph.params)]
    values, tangents = pushforward(b, graph, params, given)
    made = [
        zeros_like(b, v) if t is None else t
        for v, t in zip(values, tangents, strict=True)
        if v.type.dtype.kind in "fc"
    ]
    done = b.finish(made)
    verify(done)
    return done


def tensors(graph, args):
    return [
        made for value, made in zip(graph.results, evaluate(graph, args))
        if isinstance(value.type, TensorType) and value.type.dtype.kind in "fc"
    ]  # fmt: skip


def moved(graph, args, directions, smooth):
    """Central differences of a graph's results along directions of the first arguments."""
    ends = []
    for sign in (1, -1):
        there = [np.array(a) for a in args]
        for i, direction in zip(smooth, directions, strict=True):
            there[i] = there[i] + sign * STEP * direction
        ends.append(tensors(graph, there))
    return [(up - down) / (2 * STEP) for up, down in zip(*ends, strict=True)]


def check(build, args, rng, twice=True):
    args = [np.asarray(a) for a in args]
    b = Builder("f")
    made = build(b, *[b.param("x", TensorType(dtype_of(a.dtype), a.shape)) for a in args])
    graph = b.finish(made if isinstance(made, tuple) else (made,))
    smooth = [i for i, a in enumerate(args) if a.dtype.kind in "fc"]
    for order in (1, 2) if twice else (1,):
        directions = [rng.uniform(-1, 1, args[i].shape) for i in smooth]
        directions = [
            d + 1j * d[::-1] if args[i].dtype.kind == "c" else d for d, i in zip(directions, smooth)
        ]
        wanted = moved(graph, args, directions, smooth)
        graph = pushed(graph, smooth)
        args = [*args, *[np.asarray(d) for d in directions]]
        for got, want in zip(tensors(graph, args), wanted, strict=True):
            scale = 1 + np.abs(want).max(initial=0)
            np.testing.assert_allclose(got / scale, want / scale, atol=2e-6 * order**3)


@pytest.mark.parametrize("dtype", [F64, C128], ids=repr)
@pytest.mark.parametrize("op", [o for o in ELEMENTWISE if o.name not in BY_HAND], ids=repr)
def test_elementwise(op, dtype, rng):
    args = smooth_operands(op, dtype, np.random.default_rng(zlib.crc32(op.name.encode())))
    if args is not None:
        check(lambda b, *x: b.emit(op, x), args, rng)


@pytest.mark.parametrize("shapes", [((3, 1), (2,)), ((), (2, 2)), ((1, 2), (3, 1)), ((2,), ())])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum"])
def test_tangents_broadcast(name, shapes, rng):
    check(lambda b, x, y: b.emit(name, (x, y)), [rng.uniform(0.5, 2, s) for s in shapes], rng)


@pytest.mark.parametrize(("build", "args"), CASES.values(), ids=CASES.keys())
def test_structured(build, args, rng):
    check(build, args, rng)


def test_cumprod_with_zeros_is_right_once(rng):
    for x in ([0.5, 0.0, 2.0, 3.0], [0.0, 2.0, 0.0, 1.5], [1.0, 2.0, 0.0]):
        check(lambda b, x: b.cumprod(x, axis=0), [np.array(x)], rng, twice=False)


def test_every_op_has_a_tangent_or_a_reason():
    flow = "regions are pushed forward (jvp_flow.py, custom.py)"
    reasons = {
        "constant": "no operands", "read": "no operands", "fused": "made after all transforms",
        "cond": flow, "while": flow, "for": flow, "scan": flow, "recompute": flow,
        "custom_vjp": flow, "custom_jvp": flow, "eig": "none is known here (TM120)",
        "eigvals": "none is known here (TM120)", "lstsq": "none is known here (TM120)",
        "qr_raw": "none is known here (TM120)", "qr_reduced": "none is known here (TM120)",
        "qr_complete": "none is known here (TM120)", "trigamma": "none is known here (TM120)",
        "accumulate": "its step may be any op (TM120)",
        "scatter_step": "its step may be any op (TM120)",
        "host_call": "the function may be any (TM120)",
    }  # fmt: skip
    smooth = [op for op in ALL.values() if op.facts.differentiable]
    assert {op.name for op in smooth if op.tangent is None} == reasons.keys()


@pytest.mark.parametrize("dtype", [F16, BF16, F32, C64], ids=repr)
def test_tangents_keep_the_dtype(dtype):
    for op in ELEMENTWISE:
        arity = next((n for n in (1, 2, 3) if takes(op, (dtype,) * n)), None)
        if arity is None:
            continue
        b = Builder("f")
        params = [b.param("x", TensorType(dtype, (3,))) for _ in range(arity)]
        made = b.emit(op, params)
        graph = b.finish(made if isinstance(made, tuple) else (made,))
        for moved in [range(arity), *[[at] for at in range(arity)]]:
            pushed(graph, moved)


def test_an_op_with_a_gradient_has_a_tangent():
    """But those that nothing flows through: without operands, or zero everywhere."""
    without = {
        op.name for op in ALL.values()
        if op.gradient is not None and op.tangent is None and op.facts.differentiable
    }  # fmt: skip
    assert without == {"constant", "read"}
    assert {
        op.name for op in ALL.values() if op.tangent is not None and op.gradient is None
    } == set()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["real", "complex", "several"])
def test_library_tangents_agree_with_gradients(name, kind, rng):
    loss, a = LOSSES[name], {"real": S, "complex": C + 0.1j * M, "several": BATCH}[kind]
    direction = rng.uniform(-1, 1, a.shape).astype(a.dtype)
    if kind == "complex":
        direction = direction + 1j * rng.uniform(-1, 1, a.shape)
    value, tangent = tm.jvp(loss, (a,), (direction,))
    slopes = tm.grad(loss)(a)
    want = (np.conj(slopes) * direction).real.sum()
    np.testing.assert_allclose(value, loss(a), rtol=1e-6)
    np.testing.assert_allclose(tangent, want, rtol=1e-6, atol=1e-6 * np.abs(slopes).max() + 1e-9)


def test_vectors_of_a_matrix_that_is_not_square(rng):
    a, direction = rng.standard_normal((4, 2)), rng.standard_normal((4, 2))

    def f(a):
        u, s, vh = np.linalg.svd(a, full_matrices=False)
        return np.abs(u) ** 3, s, np.abs(vh) ** 3

    for x, t in ((a, direction), (a.T.copy(), direction.T.copy())):
        ends = [f(x + sign * STEP * t) for sign in (1, -1)]
        for got, up, down in zip(tm.jvp(f, (x,), (t,))[1], *ends, strict=True):
            np.testing.assert_allclose(got, (up - down) / (2 * STEP), rtol=1e-5, atol=1e-7)


def test_what_has_no_derivative_says_so():
    with pytest.raises(GradientError, match=r"TM120(.|\n)*stop_gradient"):
        tm.jvp(lambda a: np.linalg.qr(a)[1], (S,), (S,))
    assert np.isnan(tm.jvp(lambda a: np.linalg.svd(a)[2], (S[:2],), (S[:2],))[1]).all()
    got = tm.jvp(lambda a: size(np.linalg.qr(tm.stop_gradient(a))[1]), (S,), (S,))[1]
    assert got == 0
