"""Library ops: what they mean, by identities that need no library, in all three ways of running.

Not here: NumPy's functions made of them (tests/compiled/test_linalg.py, test_fourier.py), gradients
(tests/transforms).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.evaluator import evaluate
from tracemill.compiler.ir.verifier import verify
from tracemill.compiler.kernel.interpreter import interpret
from tracemill.compiler.kernel.lowering import lower
from tracemill.compiler.kernel.printer import kernel_text
from tracemill.compiler.kernel.region import region_of
from tracemill.compiler.kernel.verifier import verify_kernel
from tracemill.compiler.ops.library import LIBRARY, rows_of
from tracemill.compiler.types import F64, I64, U64, TensorType, TokenType, dtype_of
from tracemill.numpy.library import _table

Array = Any
R = np.random.default_rng(8)
A = R.standard_normal((3, 4, 4)) + 1j * R.standard_normal((3, 4, 4))
TALL = A[:, :, :3]
H = A @ A.conj().swapaxes(1, 2) + np.eye(4)
B = A[:, :, :2]
FACTOR = np.float64(0.5)


def turned(a: Array) -> Array:
    return a.conj().swapaxes(-1, -2)


def diagonal(s: Array) -> Array:
    return s[..., None] * np.eye(s.shape[-1])


def transform(x: Array, points: int, sign: int) -> Array:
    """By the definition."""
    k = np.arange(points)
    rows = np.zeros((*x.shape[:-1], points), complex)
    rows[..., : min(points, x.shape[-1])] = x[..., :points]
    return FACTOR * (rows @ np.exp(sign * 2j * np.pi * np.outer(k, k) / points))


def whole(half: Array, points: int) -> Array:
    """The spectrum of real rows, of which `half` is the first half; imaginary parts that real
    rows do not have do not count."""
    made = np.zeros((*half.shape[:-1], points), complex)
    count = points // 2 + 1
    made[..., :count] = half[..., :count]
    made[..., 0] = made[..., 0].real
    if points % 2 == 0:
        made[..., points // 2] = made[..., points // 2].real
    for k in range(count, points):
        made[..., k] = made[..., points - k].conj()
    return made


def near(got: Array, want: Array) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


# op: operands, attributes, and what holds of operands and results
MEANING: dict[str, tuple[tuple[Array, ...], dict[str, int], Callable[..., None]]] = {
    "solve": ((A, B), {}, lambda a, b, x: near(a @ x, b)),
    "inv": ((A,), {}, lambda a, x: near(a @ x, np.broadcast_to(np.eye(4), a.shape))),
    "inv_or_nan": ((A,), {}, lambda a, x: near(x @ a, np.broadcast_to(np.eye(4), a.shape))),
    "det": ((A,), {}, lambda a, d: near(d, np.prod(np.linalg.eigvals(a), axis=-1))),
    "slogdet": ((A,), {}, lambda a, s, d: near(s * np.exp(d),
                                               np.prod(np.linalg.eigvals(a), axis=-1))),
    "cholesky": ((H,), {}, lambda h, f: (near(f @ turned(f), h), near(np.triu(f, 1), 0 * f))),
    "cholesky_upper": ((H,), {}, lambda h, f: (
        near(turned(f) @ f, h), near(np.tril(f, -1), 0 * f))),
    "eigh": ((H,), {}, lambda h, w, v: near(v @ diagonal(w) @ turned(v), h)),
    "eigh_upper": ((H,), {}, lambda h, w, v: near(h @ v, v @ diagonal(w))),
    "eigvalsh": ((H,), {}, lambda h, w: near(w.sum(-1), np.trace(h, axis1=1, axis2=2).real)),
    "eigvalsh_upper": ((H,), {}, lambda h, w: near((w**2).sum(-1), (abs(h) ** 2).sum((1, 2)))),
    "eig": ((A,), {}, lambda a, w, v: near(a @ v, v @ diagonal(w))),
    "eigvals": ((A,), {}, lambda a, w: near(w.sum(-1), np.trace(a, axis1=1, axis2=2))),
    "svd": ((TALL,), {"p": 3}, lambda a, u, s, v: near(u @ diagonal(s) @ v, a)),
    "svd_full": ((TALL,), {"p": 3}, lambda a, u, s, v: (
        near(u[..., :3] @ diagonal(s) @ v, a), near(turned(u) @ u, np.eye(4) + 0 * u))),
    "svdvals": ((TALL,), {"p": 3}, lambda a, s: near((s**2).sum(-1), (abs(a) ** 2).sum((1, 2)))),
    "qr_raw": ((TALL,), {"p": 3}, lambda a, r, t: near(
        turned(np.triu(r[:, :3])) @ np.triu(r[:, :3]), turned(a) @ a)),
    "lstsq": ((TALL[0], B[0], np.float64(1e-12)), {"p": 3}, lambda a, b, cut, x, rest, rank, s: (
        near(turned(a) @ (a @ x - b), 0 * x), near(rest, (abs(a @ x - b) ** 2).sum(0)),
        near(rank, 3))),
    "fft": ((TALL, FACTOR), {"m": 5}, lambda x, f, y: near(y, transform(x, 5, -1))),
    "ifft": ((TALL, FACTOR), {"m": 2}, lambda x, f, y: near(y, transform(x, 2, 1))),
    "rfft_even": ((TALL.real, FACTOR), {"m": 4},
                  lambda x, f, y: near(y, transform(x, 6, -1)[..., :4])),
    "rfft_odd": ((TALL.real, FACTOR), {"m": 2},
                 lambda x, f, y: near(y, transform(x, 3, -1)[..., :2])),
    "irfft": ((TALL, FACTOR), {"m": 5}, lambda x, f, y: near(y, transform(whole(x, 5), 5, 1).real)),
}  # fmt: skip
# Whose operands are results of another: the raw factors of A's first columns.
OF_RAW = {"qr_reduced": 3, "qr_complete": 4}


def ran(name: str, operands: tuple[Array, ...], attrs: dict[str, int]) -> list[list[Array]]:
    """The tensors that the reference makes, and those of the kernel."""
    op = next(op for op in LIBRARY if op.name == name)
    assert op.routine is not None
    table = _table(op.routine.module)
    b = Builder(name)
    arrays = [table, *[np.asarray(a) for a in operands]]
    params = [b.param("x", TensorType(dtype_of(a.dtype), a.shape)) for a in arrays]
    made = b.emit(name, params, attrs)
    made = made if isinstance(made, tuple) else (made,)
    tensors = [v for v in made if not isinstance(v.type, TokenType)]
    graph = b.finish(tensors)
    verify(graph)
    (node,) = graph.nodes
    lowered = lower(region_of(node))
    verify_kernel(lowered.kernel)
    assert f"call {name} of x0(" in kernel_text(lowered.kernel)
    outs = [np.zeros(v.tensor.shape, v.tensor.dtype.numpy) for v in tensors]
    for out, base in zip(outs, lowered.bases):
        if base is not None:
            out[...] = arrays[base]
    given = [np.ascontiguousarray(arrays[at]) for at in lowered.inputs]
    given = [g.reshape(arrays[at].shape) for g, at in zip(given, lowered.inputs)]
    assert interpret(lowered.kernel, [*given, *outs], {}) is None
    return [evaluate(graph, arrays), outs]


def test_every_op_is_looked_at() -> None:
    assert {op.name for op in LIBRARY} == {*MEANING, *OF_RAW}


@pytest.mark.parametrize("name", MEANING)
@pytest.mark.parametrize("real", [False, True])
def test_what_holds_of_the_results(name: str, real: bool) -> None:
    operands, attrs, holds = MEANING[name]
    if real and name not in ("fft", "ifft", "irfft"):
        operands = tuple(np.asarray(a).real for a in operands)
    by_reference, by_kernel = ran(name, operands, attrs)
    for made, again in zip(by_reference, by_kernel, strict=True):
        np.testing.assert_array_equal(made, again)
    holds(*operands, *by_kernel)


@pytest.mark.parametrize("name", OF_RAW)
def test_factors_from_reflectors(name: str) -> None:
    raw, scales = ran("qr_raw", (TALL,), {"p": 3})[1]
    columns = OF_RAW[name]
    given = (raw, scales)
    for (q,) in ran(name, given, {}):
        assert q.shape == (3, 4, columns)
        near(turned(q) @ q, np.eye(columns) + 0 * q[:, :columns])
        near(q[..., :3] @ np.triu(raw[:, :3]), TALL)


def test_a_singular_matrix_fails_in_every_way() -> None:
    for name in ("inv", "solve"):
        singular = np.ones((2, 3, 3))
        operands = (singular,) if name == "inv" else (singular, singular)
        with pytest.raises(AssertionError):  # the interpreter reports the failure
            ran(name, operands, {})


def test_a_table_has_a_routine_for_each_op() -> None:
    for module in ("linalg._umath_linalg", "fft._pocketfft_umath"):
        table = _table(module)
        for (op, dtype), (code, _) in zip(rows_of(module), table, strict=True):
            complex_only = op.name in ("fft", "ifft", "irfft")
            real_only = op.name.startswith("rfft")
            narrow = op.name.startswith("qr_") and dtype.name in ("f32", "c64")
            none = (
                narrow
                or (complex_only and not dtype.is_complex)
                or (real_only and dtype.is_complex)
            )
            assert (code == 0) == none or op.name in ("eig", "eigvals"), (op.name, dtype.name)


@pytest.mark.parametrize(
    ("shapes", "code"),
    [
        (((2, 2), (3, 4)), "TM209"),
        (((5, 3, 3), (4, 3, 2)), "TM209"),
        (((3,), (3, 2)), "TM208"),
        (((3, 3),), "TM201"),
    ],
)
def test_operands_that_do_not_fit_are_refused(shapes: Any, code: str) -> None:
    b = Builder("refused")
    operands = [b.param("x", TensorType(F64, shape)) for shape in shapes]
    table = b.param("t", TensorType(U64, (Dim.symbol("n"), 2)))
    with pytest.raises(Exception, match=code):
        b.emit("solve", [table, *operands], {})
    with pytest.raises(TypeError, match="TM202"):
        b.emit("inv", [table, b.param("y", TensorType(I64, (3, 3)))], {})
    with pytest.raises(TypeError, match="TM202"):
        b.emit("inv", [operands[0], operands[0]], {})
