"""Functions stay open in the sizes of their arguments: one version, or two where a size decides
between two forms, serve any number of sizes. The exceptions are listed, each with its reason.

Not here: what the guards of a version say (tests/frontend/test_sizes.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal

pytestmark = pytest.mark.cpu

SIZES = (12, 13, 14, 16, 17, 20, 21, 24, 29, 32, 48, 49)
Function = Callable[[Any], Any]

# Called with an array of shape (n, 9) or (n,) for each of the sizes.
OPEN: list[Function] = [
    lambda x: np.partition(x, len(x) // 2, axis=0)[len(x) // 2],
    lambda x: np.partition(x, [0, x.shape[0] - 1, -(len(x) // 3)], axis=0)[0],
    lambda x: np.take_along_axis(x, np.argpartition(x, len(x) // 2, axis=0), 0)[len(x) // 2],
    lambda x: np.array_split(x, 3),
    lambda x: [part.sum(axis=0) for part in np.array_split(x, 5)],
    lambda x: sum(np.array_split(np.concatenate([x, x, x]), 3)),
    lambda x: np.split(x[: len(x) // 4 * 4], 4),
    lambda x: np.split(x, [len(x) // 3, 2 * len(x) // 3]),
    lambda x: np.delete(x, len(x) // 2, axis=0),
    lambda x: np.delete(x, [0, -1, 3, 3], axis=0),
    lambda x: np.delete(x, slice(2, 5), axis=0),
    lambda x: np.delete(x, slice(-5, None), axis=0),
    lambda x: np.delete(x, slice(5, 2), axis=0),
    lambda x: np.delete(x, slice(len(x) // 3, len(x) // 2), axis=0),
    lambda x: np.insert(x, len(x) // 2, 5, axis=0),
    lambda x: np.insert(x, [1, -1], 5, axis=0),
    lambda x: np.histogram(x, len(x) // 2)[0],
    lambda x: np.diff(x, prepend=0, axis=0),
    lambda x: np.diff(np.tri(len(x)), prepend=0, append=1),
    lambda x: np.vdot(x, x[::-1]),
    lambda x: np.vander(x / 9) if x.ndim == 1 else x,
    lambda x: np.zeros(len(x) & ~7) + (len(x) & 3),
    lambda x: np.pad(x, len(x) // 2, mode="symmetric"),
    lambda x: np.roll(x, len(x) // 2, axis=0),
    lambda x: np.repeat(x, len(x), axis=0),
    lambda x: np.resize(x, (len(x) * 2,)),
    lambda x: np.convolve(x, x, "same") if x.ndim == 1 else x,
    lambda x: np.gradient(x, axis=0, edge_order=2),
    lambda x: np.kron(x, x) if x.ndim == 1 else x,
    lambda x: np.nanpercentile(x, 30, axis=0),
    lambda x: np.quantile(x, np.linspace(0, 1, 5), axis=0),
    lambda x: np.median(x, axis=0),
    lambda x: np.average(x, axis=0, weights=np.arange(len(x)) + 1.0),
    lambda x: np.lib.stride_tricks.sliding_window_view(x, len(x) // 2, axis=0).max(axis=-1),
    lambda x: np.interp(x, np.arange(len(x)), np.arange(len(x)) * 2.0) if x.ndim == 1 else x,
    lambda x: np.trapezoid(x, axis=0) + np.cov(x.T).sum(),
    lambda x: np.linspace(x[0], x[-1], len(x)),
    lambda x: np.arange(0, len(x) // 2, 3),
    lambda x: np.tri(len(x), len(x) // 2),
    lambda x: np.take(x, np.arange(len(x) // 2), axis=0),
    lambda x: x[-len(x) // 2 :: 2] / x.shape[0] ** 0.5,
    lambda x: min(len(x), 100) + x.reshape(len(x), -1),
]

# A version for each size, because ...
SPECIAL: list[tuple[str, Function]] = [
    ("a step is a number", lambda x: x[:: len(x) // 4]),
    ("a step is a number", lambda x: np.arange(0, 90, len(x))),
    ("code is written for each element", lambda x: [row.sum() for row in x]),
    ("code is written for each element", lambda x: np.unstack(x)[0]),
    ("code is written for each coefficient", lambda x: np.polyval(x, 0.5)),
    ("floats do not decide sizes at run time", lambda x: np.arange(len(x) / 2)),
    ("floats do not decide sizes at run time", lambda x: np.arange(0, len(x), 0.5)),
    ("floats do not decide sizes at run time", lambda x: x[: int(len(x) * 0.5)]),
    ("floats do not decide sizes at run time", lambda x: np.zeros(int(np.ceil(len(x) / 4)))),
    ("parts of an axis are not known to be all of it",
     lambda x: np.concatenate(np.split(x[: len(x) // 2 * 2], 2)) + x if len(x) % 2 == 0 else x),
]  # fmt: skip


def _versions(function: Function, shape: Callable[[int], tuple[int, ...]]) -> int:
    compiled = tm.jit(function)
    for n in SIZES:
        x = np.random.default_rng(n).standard_normal(shape(n))
        assert_equal(compiled(x), function(x))
    return len(compiled.explain_recompiles())


@pytest.mark.parametrize("columns", [(), (9,)], ids=str)
@pytest.mark.parametrize("function", OPEN)
def test_two_versions_are_enough_for_all_sizes(
    function: Function, columns: tuple[int, ...]
) -> None:
    assert _versions(function, lambda n: (n, *columns)) <= 2


@pytest.mark.parametrize(("reason", "function"), SPECIAL)
def test_the_list_of_functions_that_need_the_number_is_true(
    reason: str, function: Function
) -> None:
    versions = _versions(function, lambda n: (n,))
    assert versions > 2, f"not any more ({reason}): move it to the open ones"


def test_a_partition_out_of_bounds_is_refused_by_its_number() -> None:
    for k in (lambda x: len(x), lambda x: -len(x) - 1):
        with pytest.raises(ValueError, match=r"kth\(=-?\d+\) out of bounds \(12\)"):
            tm.jit(lambda x, k=k: np.partition(x, k(x)))(np.ones(12))


@pytest.mark.parametrize("sections", [2, 3, 7, 20])
@pytest.mark.parametrize("size", [0, 1, 2, 5, 13, 14])
def test_an_array_is_split_as_numpy_splits_it(size: int, sections: int) -> None:
    function = lambda x: np.array_split(x, sections)
    compiled = tm.jit(function)
    for n in (size, size + 1, size + sections):
        assert_equal(compiled(np.arange(n)), function(np.arange(n)))
