"""The rarer functions stay open in sizes, too: one version or two serve any number of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # NumPy's, about rows of NaN
]


def _written(write: Callable[..., None]) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        a = x.copy()
        write(a)
        return a

    return function


# Called with a square matrix.
OPEN: dict[str, Callable[[Any], Any]] = {
    "interp": lambda x: np.interp(x, np.sort(x[0]), x[1]),
    "interp, a period": lambda x: np.interp(x, x[0], x[1], period=0.5),
    "unwrap": lambda x: np.unwrap(x * 9, axis=0),
    "isin a few": lambda x: np.isin(np.round(x), [0, 1, 2]),
    "isin": lambda x: np.isin(np.round(x, 1), np.round(x[0], 1)),
    "nanmedian": lambda x: np.nanmedian(np.where(x > 0, x, np.nan), axis=0),
    "nanquantile": lambda x: np.nanquantile(np.where(x > 0, x, np.nan), [0.1, 0.5], axis=1),
    "histogram2d": lambda x: np.histogram2d(x[0], x[1], bins=4),
    "histogram2d, edges": lambda x: np.histogram2d(x[0], x[1], [np.sort(x[2]), 3]),
    "unravel_index": lambda x: np.unravel_index(x.argmax(), x.shape),
    "ravel_multi_index": lambda x: np.ravel_multi_index(([3, 9], [1, 7]), x.shape, mode="wrap"),
    "ix_": lambda x: x[np.ix_(np.argsort(x[0]), [0, 1])],
    "choose": lambda x: np.choose((x > 0).astype(int), [x, -x]),
    "diag_indices": lambda x: x[np.diag_indices_from(x)],
    "tril_indices": lambda x: x[np.tril_indices(x.shape[0], -1)],
    "triu_indices": lambda x: x[np.triu_indices_from(x, 1)],
    "apply_along_axis": lambda x: np.apply_along_axis(lambda r: r.max() - r[0], 0, x),
    "apply_over_axes": lambda x: np.apply_over_axes(np.max, x, [0, 1]),
    "hanning": lambda x: np.hanning(x.shape[0]) * x,
    "kaiser": lambda x: np.kaiser(x.shape[0], 8.6) * x,
    "polyder": lambda x: np.polyder(x[0], 2),
    "polyint": lambda x: np.polyint(x[0]),
    "polyadd": lambda x: np.polyadd(x[0], [1, 2]),
    "packbits": lambda x: np.packbits(x > 0, axis=1),
    "unpackbits": lambda x: np.unpackbits(np.abs(x * 9).astype(np.uint8), axis=0),
    "put": _written(lambda a: np.put(a, [0, 3, 3], a[1])),
    "place": _written(lambda a: np.place(a, a > 0, [1, 2, 3])),
    "putmask": _written(lambda a: np.putmask(a, a > 0, a[0])),
    "fill_diagonal": _written(lambda a: np.fill_diagonal(a, [1, 2])),
    "norm": lambda x: np.linalg.norm(x, 1),
    "vector_norm": lambda x: np.linalg.vector_norm(x, axis=(0, 1), ord=3),
    "matrix_power": lambda x: np.linalg.matrix_power(np.abs(x), 5),
    "extract": lambda x: np.extract(x > 0, x).sum(),
    "compress": lambda x: np.compress(x[0] > 0, x, axis=1).sum(axis=1),
}


@pytest.mark.parametrize("name", OPEN)
def test_two_versions_at_most_serve_all_sizes(name: str, rng: np.random.Generator) -> None:
    function = OPEN[name]
    compiled = tm.jit(function)
    for size in (3, 4, 7, 12, 33):
        x = rng.normal(size=(size, size))
        wanted = function(x)
        assert_equal(compiled(x.copy()), wanted)
    assert len(compiled.explain_recompiles()) <= 2


def test_gradients_go_through_an_interpolation() -> None:
    xp, fp = np.array([0.0, 1, 3]), np.array([2.0, 4, -2])
    slope = tm.grad(lambda x, fp: np.interp(x, xp, fp).sum(), argnums=(0, 1))
    along, weights = slope(np.array([0.25, 2.0]), fp)
    np.testing.assert_allclose(along, [2, -3])
    np.testing.assert_allclose(weights, [0.75, 0.75, 0.5])


def test_gradients_go_through_a_nanmedian() -> None:
    x = np.array([3.0, np.nan, 1, 2])
    assert tm.grad(lambda x: np.nanmedian(x))(x).tolist() == [0, 0, 0, 1]
