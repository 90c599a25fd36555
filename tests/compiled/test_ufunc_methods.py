"""Scans and scatters step by step, as machine code: rows, columns, short axes, every dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.numpy.promotion import OP_OF

pytestmark = pytest.mark.cpu

UFUNCS = sorted(
    {
        ufunc.__name__: ufunc
        for ufunc in vars(np).values()
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None
        and ufunc.nin == 2 and ufunc.nout == 1 and ufunc.__name__ in OP_OF and ufunc is not np.ldexp
    }.values(),
    key=lambda ufunc: ufunc.__name__,
)  # fmt: skip
EXACT = (
    np.maximum, np.minimum, np.fmax, np.fmin, np.subtract, np.add, np.multiply, np.divide,
    np.floor_divide, np.remainder, np.fmod, np.copysign, np.nextafter, np.heaviside,
)  # fmt: skip


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Small numbers, some of them equal; for floats a NaN and signed zeros, too."""
    rng = np.random.default_rng(seed)
    made = rng.integers(1, 6, shape)
    if np.dtype(dtype).kind not in "fc":
        return made.astype(dtype)
    x = made / 4 * rng.choice([1.0, 1.0, -1.0], shape)
    x[rng.random(shape) < 0.02] = np.nan
    x[rng.random(shape) < 0.05] = -0.0
    return x.astype(dtype)


def alike(ufunc: Any, got: Any, wanted: Any) -> None:
    """Equal bits for exact ufuncs and integers, else a few ulp."""
    assert got.dtype == wanted.dtype
    if ufunc in EXACT and wanted.dtype != np.float16 or wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, wanted)
    else:
        close = {2: 4e-2, 4: 2e-5, 8: 1e-12, 16: 1e-12}[wanted.dtype.itemsize]
        np.testing.assert_allclose(got, wanted, close, close)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_prefixes_are_numpys(ufunc: Any) -> None:
    rows = tm.jit(lambda x: (ufunc.accumulate(x, -1), ufunc.accumulate(x * 1, 0)))
    for dtype in (bool, np.int8, np.uint32, np.int64, np.float16, np.float32, np.float64):
        for shape in ((3, 3), (37, 101), (2, 1), (1, 5), (0, 4)):
            x = numbers(shape, dtype)
            try:
                with np.errstate(all="ignore"):
                    wanted = ufunc.accumulate(x, -1), ufunc.accumulate(x * 1, 0)
            except TypeError:
                with pytest.raises(TypeError):
                    rows(x)
                break
            for got, want in zip(rows(x), wanted):
                alike(ufunc, got, want)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_elements_that_are_there_twice_change_twice(ufunc: Any) -> None:
    def changed(x: Any, places: Any, values: Any) -> Any:
        ufunc.at(x, places, values)
        return x

    at = tm.jit(changed)
    rng = np.random.default_rng(1)
    for dtype, other in ((np.int16, np.int16), (np.float32, np.float64), (np.int8, np.float32)):
        for shape, count in (((5,), 203), ((7, 33), 40)):
            x, places = numbers(shape, dtype), rng.integers(-shape[0], shape[0], count)
            values = numbers((count, *shape[1:]), other, 2)
            wanted = x.copy()
            try:
                with np.errstate(all="ignore"):
                    changed(wanted, places, values)
            except TypeError:
                with pytest.raises(TypeError):
                    at(x, places, values)
                break
            got = at(x, places, values)
            if np.dtype(dtype).kind == "f" or np.dtype(other).kind != "f":
                alike(ufunc, got, wanted)


def test_the_greatest_so_far_has_a_gradient() -> None:
    total = tm.jit(tm.grad(lambda x, w: np.sum(np.maximum.accumulate(x, 1) * w)))
    x, w = numbers((4, 9), np.float64), np.arange(36.0).reshape(4, 9)
    x = np.nan_to_num(x)
    wanted = np.zeros_like(x)
    for row in range(4):
        best = 0
        for at in range(9):
            best = at if x[row, at] > x[row, best] else best
            wanted[row, best] += w[row, at]
    np.testing.assert_allclose(total(x, w), wanted)


def test_a_method_of_a_captured_ufunc_is_traced_once() -> None:
    compiled = tm.jit(lambda x, ufunc=np.maximum: ufunc.accumulate(x))
    for seed in range(3):
        compiled(numbers((5,), np.int64, seed))
    assert len(compiled.dispatcher.versions) == 1
