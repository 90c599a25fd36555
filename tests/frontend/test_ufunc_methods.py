"""reduce, accumulate, reduceat, outer and at of every ufunc, beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from traced import assert_same, outcome, trace_function
from tracemill.numpy.promotion import OP_OF

BINARY = sorted(
    {
        ufunc.__name__: ufunc
        for ufunc in vars(np).values()
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None
        and ufunc.nin == 2 and ufunc.nout == 1 and ufunc.__name__ in OP_OF and ufunc is not np.ldexp
    }.values(),
    key=lambda ufunc: ufunc.__name__,
)  # fmt: skip
UNARY = [np.negative, np.square, np.logical_not, np.sign, np.invert, np.reciprocal]
DTYPES = (bool, np.int8, np.uint8, np.int32, np.int64, np.float32, np.float64, np.complex128)
SHAPES = ((), (0,), (1,), (5,), (4, 3), (2, 0), (2, 3, 2))
N = np.array


# NumPy's vector loops for these forget what they have so far: power.reduce takes two numbers.
LOST = (np.power, np.arctan2, np.float_power)


def data(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Numbers of both signs, with repetitions; exponents and shifts are small."""
    rng = np.random.default_rng(seed)
    made = rng.integers(-3, 4, shape)
    if np.dtype(dtype).kind in "fc":
        return (made + rng.integers(0, 2, shape) / 2).astype(dtype)
    return abs(made).astype(dtype)


def both(function: Any, *args: Any) -> None:
    """The traced function does what NumPy does, which may warn, and has its own TypeErrors."""
    with np.errstate(all="ignore"):
        wanted, _ = outcome(function, args)
        if isinstance(wanted, TypeError):
            with pytest.raises(TypeError):
                trace_function(function, *args)
        else:
            assert_same(function, *args)


def changed(ufunc: Any, x: Any, places: Any, *values: Any) -> Any:
    """`x` after ``ufunc.at``."""
    ufunc.at(x, places, *values)
    return x


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_every_binary_ufunc_accumulates(ufunc: Any, dtype: Any) -> None:
    for shape in SHAPES:
        x = data(shape, dtype)
        both(lambda x, u=ufunc: u.accumulate(x), x)
        both(lambda x, u=ufunc: u.accumulate(x, -1), x)
    x = data((4, 3), dtype)
    both(lambda x, u=ufunc: u.accumulate(x.T, axis=1), x)
    both(lambda x, u=ufunc: u.accumulate(x[::-2, ::2]), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_every_binary_ufunc_reduces(ufunc: Any, dtype: Any) -> None:
    if ufunc in LOST:
        return
    for shape in SHAPES:
        x = data(shape, dtype)
        both(lambda x, u=ufunc: u.reduce(x), x)
        both(lambda x, u=ufunc: u.reduce(x, axis=-1, keepdims=True), x)
        both(lambda x, u=ufunc: u.reduce(x, initial=2), x)
    x = data((4, 3), dtype)
    for axis in (None, (0, 1), (), 1, 5):
        both(lambda x, axis=axis, u=ufunc: u.reduce(x, axis=axis), x)
    mask = x != x.flat[1]
    both(lambda x, mask, u=ufunc: u.reduce(x, where=mask), x, mask)
    both(lambda x, mask, u=ufunc: u.reduce(x, 1, where=mask, initial=1), x, mask)
    both(lambda x, mask, u=ufunc: u.reduce(x, 1, where=mask[0], initial=1), x, mask)


@pytest.mark.parametrize("ufunc", [u for u in BINARY if u not in LOST], ids=lambda u: u.__name__)
def test_the_dtype_of_a_fold_is_asked_for_or_that_of_its_output(ufunc: Any) -> None:
    for have in (bool, np.int8, np.int64, np.float32):
        x = data((3, 4), have)
        for wanted in (bool, np.int8, np.float64, np.complex128):
            both(lambda x, d=wanted, u=ufunc: u.reduce(x, 1, dtype=d), x)
            both(lambda x, d=wanted, u=ufunc: u.accumulate(x, 1, dtype=d), x)
            if wanted is not np.complex128:
                continue  # NumPy loses digits on the way: where, depends on its buffers
            out = np.zeros(3, wanted)
            both(lambda x, out, u=ufunc: u.reduce(x, 1, out=out), x, out)
            whole = np.zeros((3, 4), wanted)
            both(lambda x, out, u=ufunc: u.accumulate(x, 1, out=(out,)), x, whole)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_every_binary_ufunc_folds_stretches(ufunc: Any, dtype: Any) -> None:
    if ufunc in LOST:
        return
    x = data((6, 3), dtype)
    for places in ([0, 4, 1, 1, 5], [2], []):
        both(lambda x, places=places, u=ufunc: u.reduceat(x, places), x)
        both(lambda x, places, u=ufunc: u.reduceat(x, places), x, N(places, int))
    both(lambda x, places, u=ufunc: u.reduceat(x, places, axis=1), x, N([0, 2, 1]))
    both(lambda x, u=ufunc: u.reduceat(x[:, ::2], [1, 0], axis=-1), x)


def test_stretches_that_are_not_there_are_refused() -> None:
    x = data((2, 3), float)
    for places in ([0, 2], [-1], [[0]], 0):
        both(lambda x, places=places: np.add.reduceat(x, places), x)
    both(lambda x: np.add.reduceat(x, [0], axis=None), x)
    both(lambda x: np.add.reduceat(x, [0]), np.float64(1))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_every_binary_ufunc_changes_elements_again_and_again(ufunc: Any, dtype: Any) -> None:
    x = data((5, 2), dtype)
    row = N([0, 3, 0, -1, 0])
    at = lambda x, i, v, u=ufunc: changed(u, x, i, v)
    both(at, x, row, data((5, 2), dtype, 1))
    both(at, x, row, data((5, 1), np.int64, 1))
    both(at, x[:, 0], row, data((5,), np.float32, 1))
    both(lambda x, u=ufunc: changed(u, x, [0, 0, 1], 2), x)
    both(lambda x, u=ufunc: changed(u, x, (slice(None), N([1, 1])), 1.5), x)
    both(lambda x, u=ufunc: changed(u, x, slice(1, 3), 2), x)
    both(lambda x, u=ufunc: changed(u, x, x[:, 0] != x[0, 0], 2), x)
    both(lambda x, u=ufunc: changed(u, x, (N([[0], [1]]), N([0, 0])), 3), x)


@pytest.mark.parametrize("ufunc", UNARY, ids=lambda u: u.__name__)
def test_unary_ufuncs_change_elements_again_and_again(ufunc: Any) -> None:
    for dtype in DTYPES:
        x = data((5, 2), dtype) + np.ones((), dtype)
        both(lambda x, i, u=ufunc: changed(u, x, i), x, N([0, 3, 0, -1, 0]))
        both(lambda x, u=ufunc: changed(u, x, slice(1, 3)), x)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_every_binary_ufunc_has_an_outer_form(ufunc: Any) -> None:
    for left, right in (((2,), (3,)), ((), (2, 2)), ((2, 1), (0,))):
        for dtype in (np.int64, np.float32):
            both(lambda a, b, u=ufunc: u.outer(a, b), data(left, dtype), data(right, dtype, 1))
    both(lambda a, u=ufunc: u.outer(a, [1, 2]), data((2,), np.int8))
    both(lambda a, u=ufunc: u.outer(a, 2, dtype=np.float64), data((2,), np.int8))


def test_methods_that_a_ufunc_does_not_have_are_refused_as_by_numpy() -> None:
    x = data((2, 2), float)
    for ufunc in (np.negative, np.divmod, np.matmul, np.modf, np.vecdot, np.frexp):
        both(lambda x, u=ufunc: u.reduce(x), x)
        both(lambda x, u=ufunc: u.accumulate(x), x)
        both(lambda x, u=ufunc: u.reduceat(x, [0]), x)
        both(lambda x, u=ufunc: u.outer(x, x), x)
    for ufunc in (np.modf, np.divmod, np.frexp):
        both(lambda x, u=ufunc: u.at(x, [0], 1), x)
    both(lambda x: np.negative.at(x, [0], 1), x)
    both(lambda x: np.add.at(x, [0]), x)
    both(lambda x: np.add.at(x, [5], 1), x)
    for axis in (None, (0, 1), (0,), 3):
        both(lambda x, axis=axis: np.maximum.accumulate(x, axis=axis), x)
        both(lambda x, axis=axis: np.power.accumulate(x, axis=axis), x)
    both(lambda x: np.power.accumulate(x), N([2, -3]))
    both(lambda x: np.power.reduce(x), N([-2, 3]))


def test_nan_and_signed_zeros_are_numpys() -> None:
    values = N([0.0, -0.0, 1.0, np.nan, 2.0, -np.inf, np.inf, -0.0])
    rng = np.random.default_rng(5)
    for dtype in (np.float16, np.float32, np.float64):
        x = rng.choice(values, (6, 9)).astype(dtype)
        for ufunc in (np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.hypot):
            both(lambda x, u=ufunc: (u.accumulate(x, 1), u.reduce(x, 1), u.reduce(x[:, :1])), x)
