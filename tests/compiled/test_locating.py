"""Places of what is not zero with a given size: NumPy's, filled up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

SHAPES = ((0,), (1,), (7,), (4, 5), (3, 0), (2, 3, 4), (0, 2, 1))
DTYPES = (bool, np.int8, np.uint64, np.float32, np.float64, np.complex128)


def sparse(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Any:
    made = rng.integers(0, 3, shape).astype(dtype)
    if np.dtype(dtype).kind == "f" and made.size:
        made.flat[0] = -0.0
        made.flat[-1] = np.nan
    return made


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_places_are_numpys_and_filled_up(dtype: Any, rng: np.random.Generator) -> None:
    for shape in SHAPES:
        x = sparse(rng, shape, dtype)
        wanted = np.nonzero(x)
        count = len(wanted[0])
        for size in (count, count + 3):
            fill = tuple(range(-1, -1 - x.ndim, -1))
            got = tm.nonzero(x, size, fill_value=fill)
            assert isinstance(got, tuple)
            assert len(got) == x.ndim
            for mine, theirs, number in zip(got, wanted, fill):
                assert mine.dtype == np.int64
                assert mine.tolist() == [*theirs.tolist(), *[number] * (size - count)]
            rows = tm.argwhere(x, size=size)
            assert rows.shape == (size, x.ndim)
            assert rows.tolist() == [*np.argwhere(x).tolist(), *[[0] * x.ndim] * (size - count)]
            flat = tm.flatnonzero(x, size, fill_value=-7)
            assert flat.tolist() == [*np.flatnonzero(x).tolist(), *[-7] * (size - count)]
        if count:
            with pytest.raises(ValueError, match="TM259"):
                tm.nonzero(x, count - 1)


def test_they_work_inside_on_views_and_sizes_of_arguments() -> None:
    @tm.jit
    def program(x: Any, y: Any) -> Any:
        rows, columns = tm.nonzero(x[::2, ::-1] > y[0], size=len(y), fill_value=0)
        return x[::2, ::-1][rows, columns].sum(), tm.flatnonzero(y, len(y))

    for count in (12, 30):
        x, y = np.arange(24.0).reshape(6, 4), np.arange(float(count)) + 12
        total, places = program(x, y)
        chosen = x[::2, ::-1] > 12
        assert total == x[::2, ::-1][chosen].sum() + (count - chosen.sum()) * x[0, -1]
        assert places.tolist() == list(range(count))
    assert tm.flatnonzero(np.float64(2), 2).tolist() == [0, 0]


def test_wrong_arguments_are_refused() -> None:
    x = np.ones((2, 2))
    for wrong in (
        lambda: tm.nonzero(np.float64(1), 2),
        lambda: tm.argwhere(np.float64(1), 2),
        lambda: tm.nonzero(x, -1),
        lambda: tm.nonzero(x, 4, fill_value=(1, 2, 3)),
    ):
        with pytest.raises(ValueError, match=r"0d arrays|TM208|TM242|TM203"):
            wrong()
    for function in (np.nonzero, np.flatnonzero, np.argwhere):
        with pytest.raises(NotImplementedError, match=rf"tm\.{function.__name__}\(x, size=n\)"):
            tm.jit(lambda x, f=function: f(x))(x)
