"""Every gradient rule against finite differences, once and twice, by the evaluator in float64."""

from __future__ import annotations

import zlib
from functools import partial

import numpy as np
import pytest

from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import SignatureError, Structure
from tracemill.compiler.transforms.grad import gradients
from tracemill.compiler.types import C128, F32, F64, I64, TensorType, dtype_of

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


def takes(op, dtypes):
    try:
        op.signature(tuple(TensorType(d, (3,)) for d in dtypes), {})
    except SignatureError:
        return False
    return True


def smooth_operands(op, dtype, rng):
    """Arguments of a dtype inside the op's domain, away from its kinks."""
    for arity in (1, 2, 3):
        if takes(op, (dtype,) * arity):
            break
    else:
        return None
    for low, high in ((0.15, 0.85), (1.15, 2.4)):
        args = [rng.uniform(low, high, (3,)) for _ in range(arity)]
        if dtype is C128:
            args = [a + 1j * rng.uniform(low, high, (3,)) for a in args]
        if arity == 2:
            args[1] = args[1] * 0.4 + 0.31  # apart from the first, for maximum and the like
        with np.errstate(all="ignore"):
            made = op.reference(*args)
        if all(np.isfinite(m).all() for m in (made if isinstance(made, tuple) else (made,))):
            return args
    return None


ELEMENTWISE = [
    op for op in ALL.values() if op.structure is Structure.ELEMENTWISE and op.gradient is not None
]
BY_HAND = {"digamma", "cast", "select", "ldexp", "complex", "nextafter"}


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


X = np.array([0.3, -1.2, 2.1, 0.7])
M = np.array([[1.3, -0.4, 0.8], [0.2, 1.1, -0.9]])
Z = np.array([0.4 + 1.1j, -0.8 + 0.3j])
I = np.array([2, 0, 2])


def tuple_or_first(made):
    return made[0] if isinstance(made, tuple) else made


CASES = {
    "cast": (lambda b, x: b.cast(b.cast(b.mul(x, x), dtype=C128), dtype=C128), [X]),
    "cast to real": (lambda b, z: b.cast(b.mul(z, z), dtype=F64), [Z]),
    "select": (lambda b, x, y: b.select(b.greater(x, y), b.sin(x), y), [X, X[::-1].copy()]),
    "ldexp": (lambda b, x: b.ldexp(b.mul(x, x), b.constant(np.array([1, 2, -1, 0]), I64)), [X]),
    "complex": (lambda b, x, y: b.mul(b.complex(x, y), b.complex(y, x)), [X, X * 2]),
    "stop_gradient": (lambda b, x: b.mul(x, b.add(x, b.constant(np.array(2.0)))), [X]),
    "constant": (lambda b, x: b.mul(x, b.constant(np.array([1.0, 2, 3, 4]))), [X]),
    "reshape": (lambda b, x: b.square(b.reshape(x, shape=(3, 2))), [M]),
    "transpose": (lambda b, x: b.square(b.transpose(x, perm=(1, 0))), [M]),
    "broadcast_to": (lambda b, x: b.square(b.broadcast_to(x, shape=(3, 4))), [X]),
    "broadcast_to of ones": (
        lambda b, x: b.square(b.broadcast_to(b.reshape(x, shape=(1, 4, 1)), shape=(2, 4, 3))), [X]),
    "slice": (lambda b, x: b.square(b.slice(x, start=(1,), size=(2,), step=(1,))), [X]),
    "slice by two": (lambda b, x: b.square(b.slice(x, start=(0,), size=(2,), step=(2,))), [X]),
    "slice back": (lambda b, x: b.square(b.slice(x, start=(3,), size=(2,), step=(-2,))), [X]),
    "concatenate": (
        lambda b, x, y: b.square(b.concatenate(x, b.square(y), x, axis=0)), [M, M[:1]]),
    "pad": (
        lambda b, x, y: b.square(b.pad(x, y, low=(1, 0), high=(2, 1))), [M, np.array(0.6)]),
    "update_slice": (
        lambda b, x, y: b.square(b.update_slice(x, y, start=(0,), step=(2,))), [X, X[:2] * 3]),
    "sum": (lambda b, x: b.square(b.sum(x, axes=(1,))), [M]),
    "sum of all": (lambda b, x: b.square(b.sum(x, axes=(0, 1))), [M]),
    "prod": (lambda b, x: b.prod(x, axes=(1,)), [M]),
    "prod with a zero": (lambda b, x: b.prod(x, axes=(0,)), [np.array([0.5, 0.0, 2.0])]),
    "prod with two zeros": (lambda b, x: b.prod(x, axes=(0,)), [np.array([0.0, 3, 0.0, 2.0])]),
    "prod, complex": (lambda b, x: b.prod(x, axes=(0,)), [Z]),
    "min": (lambda b, x: b.square(b.min(x, axes=(0,))), [M]),
    "max": (lambda b, x: b.square(b.max(x, axes=(0, 1))), [M]),
    "cumsum": (lambda b, x: b.square(b.cumsum(x, axis=1)), [M]),
    "cummin": (lambda b, x: b.square(b.cummin(x, axis=1)), [M]),
    "cummax": (lambda b, x: b.square(b.cummax(x, axis=0)), [M[:, ::-1]]),
    "cumprod": (lambda b, x: b.cumprod(x, axis=0), [X]),
    "cumprod, complex": (lambda b, x: b.cumprod(x, axis=0), [Z]),
    "contract": (
        lambda b, x, y: b.square(b.contract(x, y, batch=(), axes=((1, 1),))), [M, M[::-1] * 2]),
    "contract in batches": (
        lambda b, x, y: b.square(b.contract(x, y, batch=((0, 1),), axes=((2, 0),))),
        [np.arange(12.0).reshape(2, 2, 3) / 7, np.arange(24.0).reshape(3, 2, 4) / 9]),
    "contract of complex": (
        lambda b, x, y: b.contract(x, y, batch=(), axes=((0, 0),)), [Z, Z[::-1] * 1.5]),
    "outer": (lambda b, x, y: b.contract(x, y, batch=(), axes=()), [X, X[:2]]),
    "gather": (lambda b, x: tuple_or_first(b.gather(b.square(x), b.constant(I), axes=(0,))), [X]),
    "gather of pairs": (
        lambda b, x: tuple_or_first(
            b.gather(b.square(x), b.constant(I % 2), b.constant(I), axes=(0, 1))), [M]),
    "scatter": (
        lambda b, x, y: tuple_or_first(b.scatter(b.square(x), y, b.constant(I), axes=(0,))),
        [X, X[:3] * 2]),
    "scatter_add": (
        lambda b, x, y: b.square(tuple_or_first(b.scatter_add(x, y, b.constant(I), axes=(0,)))),
        [X, X[:3] * 2]),
    "slide": (
        lambda b, x: b.square(b.slide(x, axes=(1, 2), dilation=1, size=2, stride=2)),
        [np.cos(np.arange(36.0)).reshape(2, 6, 3)]),
    "unslide": (
        lambda b, x, y: b.square(b.unslide(x, y, axes=(1, 2), dilation=2, size=7, stride=1)),
        [np.cos(np.arange(12.0)).reshape(2, 2, 3), np.array(0.6)]),
    "convolve": (
        lambda b, x, y: b.square(
            b.convolve(x, y, axes=((1, 1),), batch=(), windows=((2, 2, 1, 1),))),
        [np.cos(np.arange(20.0)).reshape(2, 2, 5), np.sin(np.arange(12.0)).reshape(2, 2, 3)]),
    "sort": (lambda b, x: b.mul(b.sort(b.square(x)), b.constant(np.arange(3.0))), [M]),
    "nextafter": (lambda b, x: b.mul(x, b.nextafter(x, b.constant(np.array(9.0)))), [X]),
}  # fmt: skip


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
