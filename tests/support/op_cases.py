"""Every op that has derivatives, on arguments inside its domain and away from its kinks.

Not here: library ops (library_losses.py).
"""

from __future__ import annotations

import numpy as np

from tracemill.compiler.ops import ALL
from tracemill.compiler.ops.definition import SignatureError, Structure
from tracemill.compiler.types import C128, F64, I64, TensorType


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
