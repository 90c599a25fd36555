"""What functions make of an axis of an array of rank 0: a row of one, or NumPy's error."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu

FUNCTIONS: dict[str, Callable[[Any, int], Any]] = {
    "take": lambda x, a: np.take(x, [0, -1, 0], axis=a),
    "take one": lambda x, a: np.take(x, 0, axis=a),
    "take, wrapped": lambda x, a: np.take(x, [0, 5], axis=a, mode="wrap"),
    "take by a method": lambda x, a: x.take([0, 0], axis=a),
    "take_along_axis": lambda x, a: np.take_along_axis(x, np.array(0), axis=a),
    "compress": lambda x, a: np.compress([True], x, axis=a),
    "repeat": lambda x, a: np.repeat(x, 3, axis=a),
    "repeat by a method": lambda x, a: x.repeat(2, axis=a),
    "squeeze": lambda x, a: np.squeeze(x, a),
    "expand_dims": lambda x, a: np.expand_dims(x, a),
    "cumsum": lambda x, a: np.cumsum(x, axis=a),
    "cumprod": lambda x, a: np.cumprod(x, axis=a),
    "cumulative_sum": lambda x, a: np.cumulative_sum(x, axis=a),
    "sum": lambda x, a: np.sum(x, axis=a),
    "max": lambda x, a: np.max(x, axis=a),
    "mean": lambda x, a: np.mean(x, axis=a),
    "var": lambda x, a: np.var(x, axis=a),
    "any": lambda x, a: np.any(x, axis=a),
    "all": lambda x, a: np.all(x, axis=a),
    "argmax": lambda x, a: np.argmax(x, axis=a),
    "argmin": lambda x, a: np.argmin(x, axis=a),
    "sort": lambda x, a: np.sort(x, axis=a),
    "argsort": lambda x, a: np.argsort(x, axis=a),
    "argsort by a method": lambda x, a: x.argsort(axis=a),
    "partition": lambda x, a: np.partition(x, 0, axis=a),
    "argpartition": lambda x, a: np.argpartition(x, 0, axis=a),
    "lexsort": lambda x, a: np.lexsort([x, x], axis=a),
    "median": lambda x, a: np.median(x, axis=a),
    "quantile": lambda x, a: np.quantile(x, 0.5, axis=a),
    "average": lambda x, a: np.average(x, axis=a),
    "ptp": lambda x, a: np.ptp(x, axis=a),
    "count_nonzero": lambda x, a: np.count_nonzero(x, axis=a),
    "nansum": lambda x, a: np.nansum(x, axis=a),
    "nanmean": lambda x, a: np.nanmean(x, axis=a),
    "nanargmax": lambda x, a: np.nanargmax(x, axis=a),
    "flip": lambda x, a: np.flip(x, axis=a),
    "roll": lambda x, a: np.roll(x, 1, axis=a),
    "rollaxis": lambda x, a: np.rollaxis(x, a),
    "moveaxis": lambda x, a: np.moveaxis(x, a, a),
    "swapaxes": lambda x, a: np.swapaxes(x, a, a),
    "diff": lambda x, a: np.diff(x, axis=a),
    "gradient": lambda x, a: np.gradient(x, axis=a),
    "unwrap": lambda x, a: np.unwrap(x, axis=a),
    "concatenate": lambda x, a: np.concatenate([x, x], axis=a),
    "append": lambda x, a: np.append(x, x, axis=a),
    "stack": lambda x, a: np.stack([x, x], axis=a),
    "split": lambda x, a: np.split(x, 1, axis=a),
    "array_split": lambda x, a: np.array_split(x, 2, axis=a),
    "delete": lambda x, a: np.delete(x, 0, axis=a),
    "insert": lambda x, a: np.insert(x, 0, 1.0, axis=a),
    "norm": lambda x, a: np.linalg.norm(x, axis=a),
    "vecdot": lambda x, a: np.vecdot(x, x, axis=a),
    "cross": lambda x, a: np.cross(x, x, axis=a),
    "packbits": lambda x, a: np.packbits(x > 0, axis=a),
    "fft": lambda x, a: np.fft.fft(x, axis=a),
    "add.reduce": lambda x, a: np.add.reduce(x, axis=a),
    "add.accumulate": lambda x, a: np.add.accumulate(x, axis=a),
    "fmax.accumulate": lambda x, a: np.fmax.accumulate(x, axis=a),
    "logaddexp.reduce": lambda x, a: np.logaddexp.reduce(x, axis=a),
    "add.reduceat": lambda x, a: np.add.reduceat(x, [0], axis=a),
}


def outcome(function: Callable[[Any], Any]) -> Any:
    """Arrays, or the class of the exception."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = function(np.array(1.5))
    except Exception as problem:  # noqa: BLE001  compared by the caller
        return type(problem)
    return [np.asarray(part) for part in (made if isinstance(made, list | tuple) else [made])]


@pytest.mark.parametrize("axis", [0, -1, 1, -2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_axis_of_a_number_is_as_in_numpy(name: str, axis: int) -> None:
    function = FUNCTIONS[name]
    want = outcome(lambda x: function(x, axis))
    got = outcome(tm.jit(lambda x: function(x, axis)))
    if isinstance(want, type):
        assert isinstance(got, type), got
        assert issubclass(got, want)
        return
    assert not isinstance(got, type), got
    for a, b in zip(got, want, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)


SCALARS: dict[str, Callable[[Any], Any]] = {
    "squeeze": np.squeeze,
    "flip": np.flip,
    "transpose": np.transpose,
    "permute_dims": lambda x: np.permute_dims(x, ()),
    "reshape": lambda x: np.reshape(x, ()),
    "T": lambda x: x.T,
    "copy": np.copy,
    "ravel": np.ravel,
    "roll": lambda x: np.roll(x, 1),
    "where": lambda x: np.where(x > 0, x, 0),
    "clip": lambda x: np.clip(x, 0, 1),
    "iscomplex": np.iscomplex,
    "isreal": np.isreal,
    "round": np.round,
    "real": np.real,
    "take": lambda x: np.take(x, 0),
    "nothing taken": lambda x: x[()],
    "all taken": lambda x: x[...],
    "sum": np.sum,
    "maximum": lambda x: np.maximum(x, 1),
}


@pytest.mark.parametrize("x", [np.array(1.5), np.float64(1.5)], ids=["array", "scalar"])
@pytest.mark.parametrize("name", SCALARS)
def test_a_scalar_is_a_scalar_and_an_array_an_array(name: str, x: Any) -> None:
    want, got = SCALARS[name](x), tm.jit(lambda x: SCALARS[name](x))(x)
    assert type(got) is type(want)
    np.testing.assert_array_equal(got, want)
