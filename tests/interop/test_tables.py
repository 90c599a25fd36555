"""Columns of tables and labelled arrays: pandas and xarray hand their arrays in and take them back.

Not here: what is refused of other kinds (tests/faults).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import tracemill as tm

pytestmark = pytest.mark.cpu


@tm.jit
def standardised(x: Any) -> Any:
    return (x - x.mean()) / x.std()


def plain(x: Any) -> Any:
    return (x - x.mean()) / x.std()


@pytest.fixture
def table() -> Any:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.random(40), "b": rng.random(40) * 9, "kind": np.arange(40) % 3})


def test_a_column_in_and_out(table: Any) -> None:
    made = table.assign(z=standardised(table["a"].to_numpy()))
    np.testing.assert_allclose(made["z"], plain(table["a"].to_numpy()), rtol=1e-13)
    assert list(made.columns) == ["a", "b", "kind", "z"]


def test_functions_that_pandas_calls_with_arrays(table: Any) -> None:
    made = table[["a", "b"]].apply(standardised, raw=True)
    np.testing.assert_allclose(made, table[["a", "b"]].apply(plain, raw=True), rtol=1e-13)
    span = tm.jit(lambda window: window.max() - window.min())
    want = table["a"].rolling(5).apply(lambda window: window.max() - window.min(), raw=True)
    pd.testing.assert_series_equal(table["a"].rolling(5).apply(span, raw=True), want)
    made = table.groupby("kind")["a"].transform(lambda group: standardised(group.to_numpy()))
    want = table.groupby("kind")["a"].transform(lambda group: plain(group.to_numpy()))
    pd.testing.assert_series_equal(made, want)


def test_what_holds_an_array_is_refused_with_what_to_write(table: Any) -> None:
    """Pandas would change its values in place, and nobody could see it."""
    labelled = xr.DataArray(np.ones(3), dims="t")
    for thing, name in (
        (table["a"], "Series of pandas"), (table, "DataFrame of pandas"),
        (labelled, "DataArray of xarray"), (memoryview(b"ab"), "memoryview of builtins"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=rf"TM210(.|\n)*x is a {name}(.|\n)*to_numpy"):
            standardised(thing)
    np.testing.assert_allclose(standardised(np.arange(5.0)), plain(np.arange(5.0)))


def test_an_object_of_the_user_s_that_says_what_array_it_is() -> None:
    class Signal:
        def __init__(self, samples: Any) -> None:
            self.samples = samples

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.samples

    compiled = tm.jit(lambda signal: signal.samples * 2)
    signal = Signal(np.arange(3.0))
    for _ in range(2):
        np.testing.assert_array_equal(compiled(signal), signal.samples * 2)
        signal.samples += 1


def test_labelled_arrays() -> None:
    array = xr.DataArray(np.random.default_rng(1).random((3, 40)), dims=("t", "x"))
    made = xr.apply_ufunc(standardised, array)
    np.testing.assert_allclose(made, plain(array.to_numpy()), rtol=1e-13)
    assert made.dims == ("t", "x")
    total = tm.jit(lambda rows: (rows * rows).sum(axis=-1))
    for vectorize in (False, True):
        made = xr.apply_ufunc(total, array, input_core_dims=[["x"]], vectorize=vectorize)
        np.testing.assert_allclose(made, (array**2).sum("x"), rtol=1e-13)
        assert made.dims == ("t",)
