"""np.fft in compiled functions: NumPy's answers bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

Array = Any
F = np.fft
R = np.random.default_rng(11)
X = R.standard_normal((3, 5, 8))
Z = X + 1j * R.standard_normal(X.shape)
KINDS: dict[str, Array] = {
    "f8": X, "c16": Z, "f4": X.astype("f4"), "c8": Z.astype("c8"), "f2": X.astype("f2"),
    "ints": (X * 9).astype(int), "bools": X > 0, "strided": Z[::2, ::-1, 1::2],
    "no rows": X[:0], "one point": X[..., :1], "bfloat16": X.astype(ml_dtypes.bfloat16),
}  # fmt: skip
COMPLEX: dict[str, Callable[[Array], Any]] = {
    "fft": F.fft,
    "fft of an axis": lambda a: F.fft(a, axis=1),
    "fft, cut": lambda a: F.fft(a, n=3, norm="ortho"),
    "fft, filled up": lambda a: F.fft(a, n=13, axis=0, norm="forward"),
    "ifft": F.ifft,
    "ifft, ortho": lambda a: F.ifft(a, axis=-2, norm="ortho"),
    "irfft": lambda a: F.irfft(a, axis=1),
    "irfft, odd": lambda a: F.irfft(a, n=7, axis=1),
    "hfft": lambda a: F.hfft(a, axis=1),
    "fft2": F.fft2,
    "ifft2": lambda a: F.ifft2(a, s=(4, 3)),
    "fftn": F.fftn,
    "fftn of some": lambda a: F.fftn(a, axes=(0, 1), norm="ortho"),
    "ifftn": F.ifftn,
    "irfft2": lambda a: F.irfft2(a, axes=(2, 1)),
    "irfftn": lambda a: F.irfftn(a, s=(4, 6), axes=(0, 1)),
    "fftshift": F.fftshift,
    "ifftshift": lambda a: F.ifftshift(a, axes=(1, 2)),
}
REAL: dict[str, Callable[[Array], Any]] = {
    "rfft": F.rfft,
    "rfft, odd": lambda a: F.rfft(a, n=5),
    "rfft, ortho": lambda a: F.rfft(a, axis=1, norm="ortho"),
    "ihfft": F.ihfft,
    "rfft2": F.rfft2,
    "rfftn": lambda a: F.rfftn(a, norm="forward"),
    "there and back": lambda a: F.irfft(F.rfft(a) * 2, n=a.shape[-1]),
}


def same(function: Callable[[Array], Any], a: Array) -> None:
    got, want = tm.jit(function)(a), function(a)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMPLEX)
def test_a_transform_is_numpy_s(name: str, kind: str) -> None:
    a = KINDS[kind]
    if a.shape[0] == 0 and name in ("fftn", "ifftn", "fftn of some", "fft, filled up", "irfftn"):
        return  # over an axis of no points, which NumPy refuses as well
    same(COMPLEX[name], a)


@pytest.mark.parametrize("kind", [k for k, a in KINDS.items() if a.dtype.kind != "c"])
@pytest.mark.parametrize("name", REAL)
def test_a_real_transform_is_numpy_s(name: str, kind: str) -> None:
    a = KINDS[kind]
    if a.shape[0] == 0 and name == "rfftn":
        return
    same(REAL[name], a)


def test_sizes_stay_open_and_parity_selects_a_version() -> None:
    compiled = tm.jit(lambda x: F.irfft(F.rfft(x, norm="ortho") ** 2, n=len(x), norm="ortho"))
    for n in (8, 9, 64, 37, 2, 101, 3, 1000):
        x = R.standard_normal(n)
        want = F.irfft(F.rfft(x, norm="ortho") ** 2, n=n, norm="ortho")
        np.testing.assert_allclose(compiled(x), want, rtol=1e-12, atol=1e-14)
    assert len(compiled.dispatcher.history) <= 3  # the first size, even ones, odd ones


def test_frequencies_of_a_size() -> None:
    compiled = tm.jit(lambda x: (F.fftfreq(len(x), 0.5) * x, F.rfftfreq(x.shape[0]), F.fftfreq(7)))
    for n in (1, 2, 5, 8, 31):
        got = compiled(np.ones(n))
        for one, other in zip(got, (F.fftfreq(n, 0.5), F.rfftfreq(n), F.fftfreq(7))):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_a_shift_of_any_size() -> None:
    compiled = tm.jit(lambda x: (F.fftshift(x), F.ifftshift(x)))
    for n in (1, 4, 5, 17):
        x = np.arange(n)
        for one, other in zip(compiled(x), (F.fftshift(x), F.ifftshift(x))):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["f8", "c16", "f4", "c8", "f2", "ints"])
@pytest.mark.parametrize(
    ("function", "of_real"),
    [(F.fft, False), (lambda a, out: F.ifft(a, 8, 2, "ortho", out), False), (F.fft2, False),
     (F.fftn, False), (F.irfft, False), (F.rfft, True), (F.rfftn, True),
     (lambda a, out: F.ihfft(a, norm="forward", out=out), True)],
)  # fmt: skip
def test_an_array_that_is_written_decides_how_results_are_rounded(
    function: Callable[..., Any], of_real: bool, kind: str
) -> None:
    a = KINDS[kind]
    if of_real and a.dtype.kind == "c":
        return
    wide = function(a.astype("c16" if a.dtype.kind == "c" else "f8"), out=None)
    for dtype in (wide.dtype, "c8" if wide.dtype.kind == "c" else "f4"):
        mine, theirs = np.zeros(wide.shape, dtype), np.zeros(wide.shape, dtype)
        given = tm.jit(function)(a, out=mine)
        np.testing.assert_array_equal(mine, function(a, out=theirs))
        assert given is mine


@pytest.mark.parametrize("name", ["fft", "fft of an axis", "fft, cut", "irfft", "fftn", "hfft",
                                  "rfft", "ihfft", "rfftn"])  # fmt: skip
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 2, 0)])
def test_a_spectrum_lies_as_its_operand(name: str, axes: tuple[int, ...]) -> None:
    transform = {**COMPLEX, **REAL}[name]

    def act(a: Array) -> Array:
        made = transform(a)
        made.reshape(-1)[:2] = 7  # a view of it, or a copy
        return made

    same(act, np.transpose(np.transpose(X, axes).copy(), np.argsort(axes)))


def test_the_other_axes_of_an_array_that_is_written_may_be_longer() -> None:
    mine, theirs = np.zeros((4, 8), complex), np.zeros((4, 8), complex)
    F.fft(X[:1, 0], out=theirs)
    tm.jit(lambda x, out: F.fft(x, out=out))(X[:1, 0], mine)
    np.testing.assert_array_equal(mine, theirs)


def test_a_filter_in_a_loop_is_one_call() -> None:
    @tm.jit
    def smoothed(x: Array) -> Array:
        keep = np.abs(F.fftfreq(len(x))) < 0.1
        return tm.fori_loop(0, 3, lambda i, y: F.ifft(F.fft(y) * keep).real, x)

    x = R.standard_normal(50)
    want = x
    for _ in range(3):
        want = F.ifft(F.fft(want) * (np.abs(F.fftfreq(50)) < 0.1)).real
    np.testing.assert_allclose(smoothed(x), want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("function", "a", "kind", "text"),
    [
        (lambda a: F.fft(a, n=0), X, ValueError, r"Invalid number of FFT data points \(0\)"),
        (F.fft, np.ones((2, 0)), ValueError, "Invalid number of FFT data points"),
        (lambda a: F.fft(a, norm="half"), X, ValueError, "Invalid norm value half"),
        (lambda a: F.ifft(a, norm="half"), X, ValueError, "Invalid norm value half"),
        (F.rfft, Z, TypeError, ""),
        (lambda a: F.fft(a, axis=3), X, IndexError, ""),
        (lambda a: F.fftn(a, s=(2, 3), axes=(0,)), X, ValueError, "different lengths"),
        (lambda a: F.fft(a, out=np.empty((3, 5, 9), complex)), X, ValueError, "wrong shape"),
        (lambda a: F.fft(a, out=np.empty((2, 3, 5, 8), complex)), X, ValueError, "wrong shape"),
    ],
)
def test_bad_input_is_refused_as_by_numpy(function: Any, a: Array, kind: Any, text: str) -> None:
    for act in (function, tm.jit(function)):
        with pytest.raises(kind, match=text):
            act(a)
