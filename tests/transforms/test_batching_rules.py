"""Every batching rule against a loop over the lanes, by the evaluator."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from op_cases import CASES, I, M, X, Z, takes
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.batching import Each, Lanes
from tracemill.compiler.ops.definition import Structure
from tracemill.compiler.transforms.vmap import batched
from tracemill.compiler.types import BOOL, C128, F64, I64, U64, TensorType, dtype_of


def lane(array, number):
    """The array as lane `number` has it: other values in the same domain."""
    if array.dtype.kind in "fc":
        return array * (1 + number / 64)
    return np.roll(array, number) if array.ndim else array


def tensors(graph, args):
    made = evaluate(graph, args)
    return [m for m, value in zip(made, graph.results) if isinstance(value.type, TensorType)]


def traced(build, args):
    b = Builder("f")
    made = build(b, *[b.param("x", TensorType(dtype_of(a.dtype), a.shape)) for a in args])
    return b.finish(made if isinstance(made, tuple) else (made,))


def check(build, args, count=3):
    """Any of the operands with lanes, the others shared."""
    args = [np.asarray(a) for a in args]
    graph = traced(build, args)
    for own in product((True, False), repeat=len(args)):
        if not any(own):
            continue
        rows = [[lane(a, k) if it else a for a, it in zip(args, own)] for k in range(count)]
        b = Builder("lanes")
        given, operands = [], []
        for at, (a, it) in enumerate(zip(args, own)):
            lead = (count,) if it else ()
            stack = [row[at] for row in rows] if it else a
            given.append(np.array(stack, a.dtype).reshape((*lead, *a.shape)))
            param = b.param("x", TensorType(dtype_of(a.dtype), (*lead, *a.shape)))
            operands.append(Each(param, it))
        lanes = Lanes(count)
        found = [lanes.spread(b, each) for each in batched(b, graph, operands, lanes)]
        whole = b.finish(found)
        verify(whole)
        wanted = [tensors(graph, row) for row in rows]
        for at, got in enumerate(tensors(whole, given)):
            assert len(got) == count
            for k in range(count):
                np.testing.assert_allclose(got[k], wanted[k][at], rtol=1e-12, atol=1e-12)


def elementwise_args(op):
    """Operands that an op takes, of different shapes."""
    shapes = [(2, 3), (3,), (2, 1)]
    for dtype in (F64, C128, I64, U64, BOOL):
        for arity in (1, 2, 3):
            if takes(op, (dtype,) * arity):
                values = np.arange(1, 7) % 2 if dtype is BOOL else np.arange(1, 7) / 8
                if dtype in (I64, U64):
                    values = np.arange(1, 7)
                return [np.resize(values, shapes[at]).astype(dtype.numpy) for at in range(arity)]
    return None


ELEMENTWISE = [op for op in ALL.values() if op.structure is Structure.ELEMENTWISE]
BY_HAND = {"bitcast", "cast", "ldexp", "select"}


@pytest.mark.parametrize("op", [o for o in ELEMENTWISE if o.name not in BY_HAND], ids=repr)
def test_elementwise(op):
    args = elementwise_args(op)
    assert args is not None
    with np.errstate(all="ignore"):
        check(lambda b, *x: b.emit(op, x), args)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize(("build", "args"), CASES.values(), ids=CASES.keys())
def test_with_derivatives(build, args, count):
    check(build, args, count)


J = np.array([1, 0, 3])
MORE = {
    "any": (lambda b, x: b.any(b.greater(x, b.constant(0.5, F64)), axes=(1,)), [M]),
    "all": (lambda b, x: b.all(b.less(x, b.constant(0.5, F64)), axes=(0, 1)), [M]),
    "argmin": (lambda b, x: b.argmin(x, axes=(0,)), [M]),
    "argmax": (lambda b, x: b.argmax(x, axes=(1,)), [M]),
    "argsort": (lambda b, x: b.argsort(x), [M]),
    "greatest": (lambda b, x: b.greatest(x, size=2), [M]),
    "searchsorted": (
        lambda b, x, y: b.searchsorted(b.sort(x), y, side="left"), [X, M]),
    "searchsorted, right": (
        lambda b, x, y: b.searchsorted(x, y, side="right"),
        [np.array([0.5, 1, 1, np.nan, np.nan]), np.array([[1.0, np.nan], [7, 0.5]])]),
    "searchsorted, left of NaN": (
        lambda b, x, y: b.searchsorted(x, y, side="left"),
        [np.array([0.5, 1, 1, np.nan, np.nan]), np.array(np.nan)]),
    "bitcast": (lambda b, x: b.bitcast(x, dtype=I64), [X]),
    "select": (lambda b, p, x, y: b.select(p, x, y), [X > 0, X, np.array(2.0)]),
    "ldexp": (lambda b, x, n: b.ldexp(x, n), [M, J]),
    "pad": (lambda b, x, y: b.pad(x, y, low=(1, 0), high=(0, 2)), [M, np.array(0.5)]),
    "gather": (lambda b, x, i: b.gather(x, i, axes=(1,))[0], [M, I]),
    "gather of pairs": (
        lambda b, x, i, j: b.gather(x, i, j, axes=(1, 2))[0],
        [np.arange(24.0).reshape(2, 4, 3), J[:, None], I]),
    "scatter": (
        lambda b, x, y, i: b.scatter(x, y, i, axes=(0,))[0], [X, X[:3] * 2, I]),
    "scatter, behind an axis": (
        lambda b, x, y, i: b.scatter(x, y, i, axes=(1,))[0], [M, M[:, :2] * 2, I[:2]]),
    "scatter_add": (
        lambda b, x, y, i, j: b.scatter_add(x, y, i, j, axes=(0, 1))[0],
        [M, np.ones((2, 3)), np.array([[0], [1]]), I]),
    "scatter_step": (
        lambda b, x, y, i: b.scatter_step(x, y, i, axes=(0,), step="hypot")[0], [X, X[:3] * 2, I]),
    "scatter_step, behind an axis": (
        lambda b, x, y, i: b.scatter_step(x, y, i, axes=(1,), step="sub")[0],
        [M, M[:, :2] * 2, I[:2]]),
    "accumulate": (lambda b, x: b.accumulate(x, axis=1, step="hypot"), [M]),
    "contract of all": (
        lambda b, x, y: b.contract(x, y, batch=((0, 1), (3, 0)), axes=((2, 3),)),
        [np.arange(24.0).reshape(2, 2, 3, 2), np.arange(48.0).reshape(2, 2, 4, 3)]),
    "convolve in groups": (
        lambda b, x, y: b.convolve(
            x, y, axes=((2, 1),), batch=((1, 0),), windows=((3, 3, 2, 1),)),
        [np.cos(np.arange(72.0)).reshape(2, 2, 3, 6), np.arange(36.0).reshape(2, 3, 3, 2)]),
    "complex sums": (lambda b, z: b.sum(b.mul(z, z), axes=(0,)), [Z]),
}  # fmt: skip


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(("build", "args"), MORE.values(), ids=MORE.keys())
def test_without_derivatives(build, args, count):
    check(build, args, count)


def test_every_op_has_a_rule_or_a_reason():
    reasons = {
        "constant": "no operands", "iota": "no operands", "read": "no operands",
        "recv": "no operands", "assign": "Variables are results of what is mapped",
        "send": "made when all transforms are done", "fused": "made when all transforms are done",
        "cond": "control flow", "while": "control flow", "for": "control flow",
        "scan": "control flow", "recompute": "control flow", "custom_vjp": "control flow",
        "custom_jvp": "control flow",
    }  # fmt: skip
    assert {op.name for op in ALL.values() if op.batching is None} == reasons.keys()


def test_every_rule_is_tested():
    covered = {title.split(" ")[0].rstrip(",") for title in (*CASES, *MORE)}
    covered |= {op.name for op in ELEMENTWISE}
    effects = {"check", "print", "host_call"}  # test_vmap.py, tests/compiled/test_host_calls.py
    libraries = {op.name for op in ALL.values() if op.structure is Structure.LIBRARY}  # there, too
    ruled = {op.name for op in ALL.values() if op.batching is not None}
    assert ruled - covered - effects - libraries == set()
