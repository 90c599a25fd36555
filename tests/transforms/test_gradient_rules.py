"""Every gradient rule against finite differences, once and twice, by the evaluator in float64."""

from __future__ import annotations

import zlib
from functools import partial

import numpy as np
import pytest

from op_cases import BY_HAND, CASES, ELEMENTWISE, smooth_operands, takes
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import Structure
from tracemill.compiler.transforms.grad import gradients
from tracemill.compiler.types import C128, F32, F64, TensorType, dtype_of

STEP = 1e-6


def weighted_sum(b, values, rng):
    """A real number that depends on every element of the floating tensors in `values`."""
    total = None
    for value in values:
        if not isinstance(value.type, TensorType) or value.type.dtype.kind not in "fc":
            continue
        parts = [value]
        if value.type.dtype.is_complex:
            parts = [b.real(value), b.imag(value)]
        for part in parts:
            if part.type.dtype is not F64:
                part = b.cast(part, dtype=F64)
            weight = b.constant(rng.uniform(0.5, 1.5, part.type.shape))
            axes = tuple(range(part.type.rank))
            term = b.sum(b.mul(part, weight), axes=axes) if axes else b.mul(part, weight)
            total = term if total is None else b.add(total, term)
    return total


def graphs(build, args, seed):
    """Loss; gradients by the floating arguments; gradients of a weighted sum of those."""
    rng = np.random.default_rng(seed)
    b = Builder("f")
    params = [b.param("x", TensorType(dtype_of(a.dtype), a.shape)) for a in args]
    made = build(b, *params)
    loss = weighted_sum(b, made if isinstance(made, tuple) else (made,), rng)
    first = b.finish([loss])
    smooth = [p for p in params if p.type.dtype.kind in "fc"]
    by_first = [g for g in gradients(b, [loss], smooth) if g is not None]
    second = b.finish(by_first)
    if not by_first:
        return first, second, None
    slope = weighted_sum(b, by_first, rng)
    third = b.finish([slope, *[g for g in gradients(b, [slope], smooth) if g is not None]])
    for graph in (first, second, third):
        verify(graph)
    return first, second, third


def first_result(graph, args):
    return evaluate(graph, args)[0]


def differences(function, args, which):
    """Central differences of a real function by the elements of `args[which]`."""
    base = args[which]
    found = np.zeros_like(base)
    for index in np.ndindex(base.shape):
        for unit in (1, 1j) if base.dtype.kind == "c" else (1,):
            ends = []
            for sign in (1, -1):
                moved = [a.copy() for a in args]
                moved[which][index] += sign * unit * STEP
                ends.append(float(function(moved)))
            found[index] += unit * (ends[0] - ends[1]) / (2 * STEP)
    return found


def check(build, args, seed=7, twice=True):
    """Compare both orders; no path must mean no change."""
    args = [np.asarray(a) for a in args]
    first, second, third = graphs(build, args, seed)
    for order, function, analytic in ((1, first, second), (2, third, third)):
        if function is None or analytic is None or (order == 2 and not twice):
            continue
        made = list(evaluate(analytic, args))[order - 1 :]
        smooth = [i for i, a in enumerate(args) if a.dtype.kind in "fc"]
        for which in smooth:
            wanted = differences(partial(first_result, function), args, which)
            if not made or made[0].shape != wanted.shape or made[0].dtype != wanted.dtype:
                np.testing.assert_allclose(wanted, 0, atol=1e-5)
                continue
            got = made.pop(0)
            scale = 1 + np.abs(wanted).max(initial=0)
            np.testing.assert_allclose(got / scale, wanted / scale, atol=2e-6 * order**3)
        assert not made


@pytest.mark.parametrize("dtype", [F64, C128], ids=repr)
@pytest.mark.parametrize("op", [o for o in ELEMENTWISE if o.name not in BY_HAND], ids=repr)
def test_elementwise(op, dtype):
    rng = np.random.default_rng(zlib.crc32(op.name.encode()))
    args = smooth_operands(op, dtype, rng)
    if args is None:
        assert takes(op, (C128,)) or takes(op, (F64,)) or takes(op, (F64, F64))
        return
    check(lambda b, *x: b.emit(op, x), args)


@pytest.mark.parametrize("shapes", [((3, 1), (2,)), ((), (2, 2)), ((1, 2), (3, 1)), ((2,), ())])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "select"])
def test_broadcasting_is_undone(name, shapes, rng):
    args = [rng.uniform(0.5, 2, shape) for shape in shapes]
    if name == "select":
        check(lambda b, x, y: b.select(b.greater(x, y), x, b.mul(x, y)), args)
    else:
        check(lambda b, x, y: b.emit(name, (x, y)), args)


@pytest.mark.parametrize(("build", "args"), CASES.values(), ids=CASES.keys())
def test_structured(build, args):
    check(build, args)


def test_cumprod_with_zeros_is_right_once():
    for x in ([0.5, 0.0, 2.0, 3.0], [0.0, 2.0, 0.0, 1.5], [1.0, 2.0, 0.0]):
        check(lambda b, x: b.cumprod(x, axis=0), [np.array(x)], twice=False)


def test_no_differentiable_op_is_left_out():
    elementwise = {op.name for op in ELEMENTWISE} - BY_HAND
    state = {"read"}
    covered = (
        elementwise | state | {"digamma"} | {title.split(" ")[0].rstrip(",") for title in CASES}
    )
    differentiable = {
        op.name
        for op in ALL.values()
        if op.gradient is not None and op.structure is not Structure.LIBRARY
    }  # test_library_gradients.py has those
    assert differentiable - covered == set()


def test_float32_gradients_stay_float32():
    b = Builder("f")
    x = b.param("x", TensorType(F32, (4,)))
    (found,) = gradients(b, [b.sum(b.mul(b.exp(x), x), axes=(0,))], [x])
    assert found.type == x.type


UNARY = ["sin", "tanh", "square", "neg", "exp", "abs", "sqrt", "log1p"]
BINARY = ["add", "sub", "mul", "maximum", "arctan2", "hypot"]


def random_graph(rng):
    """A function of two arrays: elementwise ops, broadcasting, reductions, movement, selects."""
    choices = rng.integers(0, 1 << 30, 60).tolist()

    def build(b, x, y):
        pool = [x, y]
        picks = iter(choices)
        for _ in range(12):
            kind, i, j, k = (next(picks) for _ in range(4))
            u, v = pool[i % len(pool)], pool[j % len(pool)]
            if kind % 8 < 3:
                name = UNARY[k % len(UNARY)]
                inner = b.add(b.abs(u), b.constant(0.3, F64)) if name in ("sqrt", "log1p") else u
                made = b.emit(name, (b.tanh(inner) if name == "exp" else inner,))
            elif kind % 8 < 6:
                made = b.emit(BINARY[k % len(BINARY)], (u, b.add(v, b.constant(0.11, F64))))
            elif kind % 8 == 6:
                made = b.select(b.less(u, v), b.sin(u), b.mul(u, v))
            elif u.type.rank == 2:
                made = b.sum(u, axes=(k % 2,)) if k % 3 else b.transpose(u, perm=(1, 0))
                if made.type.rank == 1:
                    made = b.broadcast_to(b.reshape(made, shape=(3, 1)), shape=(3, 3))
            else:
                made = b.tanh(u)
            pool.append(b.mul(made, b.constant(0.5, F64)))
        return tuple(pool[-3:])

    return build


@pytest.mark.parametrize("turn", range(12))
def test_random_graphs(turn, rng):
    args = [rng.uniform(-1, 1, (3, 3)), rng.uniform(-1, 1, (3,))]
    check(random_graph(rng), args, seed=turn, twice=False)
