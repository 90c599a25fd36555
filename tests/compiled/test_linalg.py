"""np.linalg in compiled functions: NumPy's answers, bit for bit where nothing is rounded after."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

Array = Any
LA = np.linalg
R = np.random.default_rng(5)
REAL = R.standard_normal((3, 4, 4))
KINDS: dict[str, Array] = {
    "f8": REAL,
    "c16": REAL + 1j * R.standard_normal((3, 4, 4)),
    "f4": REAL.astype("f4"),
    "c8": (REAL + 1j * R.standard_normal((3, 4, 4))).astype("c8"),
    "ints": (REAL * 5).astype(int),
    "turned": np.asfortranarray(REAL).transpose(0, 2, 1),
    "one matrix": REAL[0],
    "no matrix": REAL[:0],
    "of nothing": np.ones((2, 0, 0)),
}


def positive(a: Array) -> Array:
    return a @ np.conjugate(np.swapaxes(a, -1, -2)) + np.eye(a.shape[-1], dtype=a.dtype)


def symmetric(a: Array) -> Array:
    return a + np.conjugate(np.swapaxes(a, -1, -2))


FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "solve": lambda a: LA.solve(a, a[..., ::2]),
    "solve one": lambda a: LA.solve(a, np.ones(a.shape[-1], a.dtype)),
    "inv": LA.inv,
    "det": LA.det,
    "slogdet": LA.slogdet,
    "cholesky": lambda a: LA.cholesky(positive(a)),
    "cholesky, upper": lambda a: LA.cholesky(positive(a), upper=True),
    "eigh": lambda a: LA.eigh(symmetric(a)),
    "eigh, upper": lambda a: LA.eigh(a, UPLO="u"),
    "eigvalsh": LA.eigvalsh,
    "svd": LA.svd,
    "svd, thin": lambda a: LA.svd(a, full_matrices=False),
    "svdvals": LA.svdvals,
    "svd of symmetric": lambda a: LA.svd(symmetric(a), hermitian=True),
    "svdvals of symmetric": lambda a: LA.svd(symmetric(a), compute_uv=False, hermitian=True),
    "qr": LA.qr,
    "qr, complete": lambda a: LA.qr(a, mode="complete"),
    "qr, r": lambda a: LA.qr(a, mode="r"),
    "qr, raw": lambda a: LA.qr(a, mode="raw"),
    "pinv": LA.pinv,
    "matrix_rank": LA.matrix_rank,
    "cond": LA.cond,
    "cond 1": lambda a: LA.cond(a, 1),
    "cond -2": lambda a: LA.cond(a, -2),
    "tensorinv": lambda a: LA.tensorinv(a.reshape(-1)[:16].reshape(2, 2, 2, 2)),
    "tensorsolve": lambda a: LA.tensorsolve(a.reshape(-1)[:16].reshape(2, 2, 4), np.ones((2, 2))),
}
NOT_OF_NOTHING = ("cond", "tensor", "svd of symmetric", "svdvals of symmetric")


def same(got: Any, want: Any) -> None:
    """The same types and values; computed after a decomposition, nearly."""
    assert type(got) is type(want)
    if isinstance(want, tuple):
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    single = want.dtype.itemsize <= (8 if want.dtype.kind == "c" else 4)
    tolerance = 1e-4 if single and want.dtype.kind in "fc" else 1e-12
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_answer_is_numpy_s(name: str, kind: str) -> None:
    function, a = FUNCTIONS[name], KINDS[kind]
    if name.startswith(NOT_OF_NOTHING) and a.size < 16:
        return
    same(tm.jit(function)(a), function(a))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (2, 4, 3), (1, 1), (3, 0), (0, 3)])
@pytest.mark.parametrize("name", ["svd", "svd, thin", "svdvals", "qr", "qr, complete", "qr, r",
                                  "qr, raw", "pinv", "matrix_rank"])  # fmt: skip
def test_matrices_need_not_be_square(name: str, shape: tuple[int, ...]) -> None:
    function, a = FUNCTIONS[name], R.standard_normal(shape)
    same(tm.jit(function)(a), function(a))


@pytest.mark.parametrize("name", ["solve", "inv", "det", "cholesky", "eigh, upper", "svd", "qr"])
def test_what_is_computed_in_double_precision_is_equal_bit_for_bit(name: str) -> None:
    function = FUNCTIONS[name]
    for a in (KINDS["f8"], KINDS["c16"]):
        got, want = tm.jit(function)(a), function(a)
        pairs = zip(got, want) if isinstance(want, tuple) else [(got, want)]
        for one, other in pairs:
            if name != "cholesky":  # whose matrix is a product
                np.testing.assert_array_equal(one, other)


def test_least_squares() -> None:
    tall, wide = R.standard_normal((6, 3)), R.standard_normal((3, 6))
    for function, a in (
        (lambda a: LA.lstsq(a, a[:, :2] + 1, rcond=None), tall),
        (lambda a: LA.lstsq(a, a[:, 0] + 1), tall),
        (lambda a: LA.lstsq(a, a[:, :2], rcond=1e-3), wide),
        (lambda a: LA.lstsq(a, a[:, 0]), wide.astype("f4")),
    ):
        got, want = tm.jit(function)(a), function(a)
        for one, other in zip(got, want, strict=True):
            same(np.asarray(one), np.asarray(other))
    with pytest.raises(LA.LinAlgError, match=r"TM274(.|\n)*pinv"):
        tm.jit(lambda a: LA.lstsq(a, a)[0])(np.ones((5, 2)))


@pytest.mark.parametrize("rcond", [None, 0.1])
@pytest.mark.parametrize(
    "shapes", [((5, 3), (5, 0)), ((3, 5), (3, 0)), ((0, 3), (0,)), ((0, 3), (0, 2)),
               ((0, 0), (0, 0)), ((3, 0), (3, 2))],
)  # fmt: skip
def test_least_squares_of_nothing(shapes: Any, rcond: Any) -> None:
    compiled = tm.jit(lambda a, b: LA.lstsq(a, b, rcond))
    for dtype in ("f8", "f4", "c16"):
        a, b = (R.standard_normal(shape).astype(dtype) for shape in shapes)
        for _ in range(2):
            for one, other in zip(compiled(a, b), LA.lstsq(a, b, rcond), strict=True):
                same(np.asarray(one), np.asarray(other))


def test_a_number_is_no_right_side() -> None:
    for act in (LA.solve, tm.jit(LA.solve)):
        with pytest.raises(ValueError, match="does not have enough dimensions"):
            act(np.eye(2), np.float64(1))


def test_complex_eigenvalues_and_what_is_said_of_real_matrices() -> None:
    a = KINDS["c16"]
    same(tm.jit(LA.eig)(a), LA.eig(a))
    same(tm.jit(LA.eigvals)(a), LA.eigvals(a))
    with pytest.raises(NotImplementedError, match=r"TM110(.|\n)*astype\(complex\)(.|\n)*eigh"):
        tm.jit(LA.eig)(REAL)
    same(tm.jit(lambda a: LA.eigvals(a.astype(complex)))(REAL), LA.eigvals(REAL + 0j))


WRONG: dict[str, tuple[Callable[[Array], Any], Array, str]] = {
    "singular": (LA.inv, np.ones((3, 3)), "TM270.*\n.*Singular matrix"),
    "one of several": (LA.inv, np.stack([np.eye(2), np.ones((2, 2))]), "TM270"),
    "a singular system": (lambda a: LA.solve(a, a), np.ones((3, 3)), "TM270"),
    "not positive": (LA.cholesky, -np.eye(3), "TM271.*\n.*not positive definite"),
    "NaN": (LA.eigvalsh, np.full((3, 3), np.nan), "TM272"),
    "NaN, singular values": (LA.svd, np.full((3, 3), np.nan), "TM272"),
    "NaN, eigenvalues": (LA.eigvals, np.full((2, 2), np.nan + 0j), "TM275.*\n.*infs or NaNs"),
    "one infinity": (LA.eig, np.diag([1, np.inf, 2]) + 0j, "TM275.*\n.*infs or NaNs"),
    "not square": (LA.inv, np.ones((3, 2)), "Last 2 dimensions of the array must be square"),
    "a vector": (LA.det, np.ones(3), "1-dimensional array given"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_has_no_answer_is_an_error_at_the_line(name: str) -> None:
    function, a, text = WRONG[name]
    with pytest.raises(LA.LinAlgError):
        function(a)
    compiled = tm.jit(function)
    for _ in range(2):
        with pytest.raises(LA.LinAlgError, match=text):
            compiled(a)
    if a.ndim > 1 and a.shape[-1] == a.shape[-2]:  # the next call works
        assert compiled(np.eye(a.shape[-1], dtype=a.dtype)) is not None


def test_a_condition_number_of_what_has_no_inverse() -> None:
    for p, a in (
        (None, np.ones((2, 3, 3))), (1, np.ones((3, 3))), (-2, np.ones((3, 3))),
        (1, np.full((2, 2), np.nan)), (np.inf, np.stack([np.eye(2), np.ones((2, 2))])),
    ):  # fmt: skip
        got, want = tm.jit(lambda a, p=p: LA.cond(a, p))(a), LA.cond(a, p)
        assert type(got) is type(want)
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))


@pytest.mark.parametrize("mode", ["reduced", "complete", "r", "raw"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_triangle_lies_as_the_matrix(mode: str, order: Any) -> None:
    def act(a: Array) -> Any:
        made = LA.qr(a, mode=mode)
        for part in made if isinstance(made, tuple) else (made,):
            part.reshape(-1)[:2] = 7  # a view of it, or a copy
        return made

    for shape in ((3, 4, 4), (4, 4), (5, 3)):
        a = np.asarray(R.standard_normal(shape), order=order)
        got, want = tm.jit(act)(a), act(a)
        same(tuple(got) if isinstance(want, tuple) else got, tuple(want) if isinstance(want, tuple)
             else want)  # fmt: skip


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3)])
def test_nothing_has_no_condition_number(shape: tuple[int, ...]) -> None:
    for act in (LA.cond, tm.jit(LA.cond)):
        with pytest.raises(LA.LinAlgError, match="not defined on empty arrays"):
            act(np.ones(shape))


def test_half_precision_is_refused_as_by_numpy() -> None:
    for act in (LA.inv, tm.jit(LA.inv)):
        with pytest.raises(TypeError, match="float16 is unsupported in linalg"):
            act(np.eye(3, dtype="f2"))
    brain = REAL[0].astype(ml_dtypes.bfloat16)
    same(tm.jit(LA.inv)(brain), LA.inv(brain))


def test_many_sizes_are_few_versions() -> None:
    compiled = tm.jit(lambda a, b: LA.solve(a, b) @ LA.qr(a)[1])
    for n in (2, 3, 5, 8, 13, 40):
        a, b = R.standard_normal((n, n)), R.standard_normal((n, n))
        np.testing.assert_allclose(compiled(a, b), LA.solve(a, b) @ LA.qr(a)[1], rtol=1e-8)
    assert len(compiled.dispatcher.history) <= 2


def test_a_batch_on_several_threads_is_the_same() -> None:
    a = R.standard_normal((500, 6, 6))
    compiled = tm.jit(LA.inv)
    kept = tm.num_threads()
    try:
        for threads in (1, 2, 3):
            tm.set_num_threads(threads)
            np.testing.assert_array_equal(compiled(a), LA.inv(a))
    finally:
        tm.set_num_threads(kept)


def test_in_loops_and_branches() -> None:
    def newton(a: Array) -> Array:
        return tm.fori_loop(0, 4, lambda i, x: 0.5 * (x + LA.inv(x) @ a), a)

    a = positive(REAL[0])
    want = a
    for _ in range(4):
        want = 0.5 * (want + LA.inv(want) @ a)
    np.testing.assert_allclose(tm.jit(newton)(a), want, rtol=1e-10)


def test_code_that_is_kept_finds_the_library_in_another_process(tmp_path: Path) -> None:
    source = tmp_path / "program.py"
    source.write_text(
        "import numpy as np, sys, tracemill as tm\n"
        "a = np.random.default_rng(0).standard_normal((20, 5, 5))\n"
        "f = tm.jit(lambda a: np.linalg.solve(a, a[..., :2]) + np.fft.fft(a)[..., :2].real)\n"
        "want = np.linalg.solve(a, a[..., :2]) + np.fft.fft(a)[..., :2].real\n"
        "assert np.array_equal(f(a), want)\n"
        "print('llvmlite' in sys.modules)\n"
    )
    environment = {"TRACEMILL_CACHE": str(tmp_path / "cache")}

    for loaded in ("True", "False"):
        done = subprocess.run([sys.executable, str(source)], env={**os.environ, **environment},
                              capture_output=True, text=True, timeout=120)  # fmt: skip
        assert done.stdout.split() == [loaded], done.stderr


def test_it_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=r"TM113(.|\n)*inv, which a library"):
        tm.jit(LA.inv).export(tmp_path / "library", REAL)
