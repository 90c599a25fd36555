"""Sorting, looking up and counting in compiled functions: NumPy's values, dtypes, shapes, errors.

Not here: the steps of a sort in machine code (tests/backends/test_sorting.py).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_leaf_equal
from tracemill.compiler.plan import Launch

pytestmark = pytest.mark.cpu

DTYPES = ("?", "i1", "u2", "i4", "u8", "f2", "f4", "f8")
METHODS = (
    "lower", "higher", "nearest", "midpoint", "linear", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased",
)  # fmt: skip

# x: (3, 4) of any real dtype
SORTING = """
np.sort(x); np.sort(x, axis=0); np.sort(x, axis=None); np.sort(x, kind="heapsort"); np.sort(x.T)
np.sort(x, stable=True); np.sort(x[:, ::-2]); np.argsort(x, stable=True); np.lexsort((x[0], x[1]))
np.argsort(x, axis=0, kind="stable"); np.argsort(x, axis=None, kind="stable"); np.lexsort(x)
x.argsort(kind="stable"); np.sort(x[:0]); np.sort(x[:, :0]); np.sort(x[:, :1]); np.sort(x + x)
np.partition(x, 2)[..., 2]; np.argpartition(x, 3)[:, 3] * 0; np.sort(np.stack([x, x]), axis=1)
np.sort_complex(x)
"""
LOOKING_UP = """
np.searchsorted(np.sort(x, axis=None), x); np.searchsorted(np.sort(x[0]), x, side="right")
np.searchsorted(x[0], 1, sorter=np.argsort(x[0], kind="stable")); np.searchsorted(x[0, :0], x)
np.sort(x[1]).searchsorted(x[2], "right"); np.digitize(x, [0, 1, 2]); np.digitize(x, [5, 1, 0])
np.digitize(x, np.array([0.5, 1.5]), right=True); np.digitize(x, [3])
np.histogram(x, 5, range=(-2, 4)); np.histogram(x); np.histogram(x, [0, 1, 1, 7]); 1
np.histogram(x, 3, density=True); np.histogram_bin_edges(x, 4); np.histogram(x[:0], 3)
"""
STATISTICS = """
np.median(x); np.median(x, axis=0); np.median(x, axis=(0, 1), keepdims=True); np.median(x[:, :3])
np.median(x, axis=1); np.percentile(x, 30); np.percentile(x, [10, 50, 99.5], axis=0)
np.quantile(x, 0.25, axis=1, keepdims=True); np.quantile(x, 1)
np.quantile(x, np.array([0.1, 0.7], np.float32), axis=-1); np.quantile(x, 0)
np.median(x, axis=0, out=np.zeros(4)); np.percentile(x, np.array([[10.0], [90.0]]), axis=1)
"""


def texts(block: str) -> list[str]:
    return [part.strip() for part in block.replace("\n", ";").split(";") if part.strip() > "1"]


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    """What a call gives, or the class of what it raises."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception as problem:  # noqa: BLE001 - whatever NumPy raises is the oracle
            return type(problem)


def agrees(text: str, x: Any) -> None:
    """Compiled and plain give the same."""
    function = eval(f"lambda x: {text}", {"np": np})
    wanted, got = outcome(function, x), outcome(tm.jit(function), x)
    if isinstance(wanted, type):
        assert isinstance(got, type), (text, wanted, got)
        assert issubclass(got, wanted), (text, wanted, got)
        return
    assert not isinstance(got, type), (text, got)
    pairs = zip(wanted, got, strict=True) if isinstance(wanted, tuple) else [(wanted, got)]
    for theirs, mine in pairs:
        assert_leaf_equal(mine, theirs)


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    """Numbers with ties; among floats both zeros, infinities and now and then a NaN."""
    if np.dtype(dtype).kind == "f":
        made = np.round(rng.standard_normal(shape) * 3, 1)
        made[rng.random(shape) < 0.2] = -0.0
        made[rng.random(shape) < 0.1] = np.inf
        made[rng.random(shape) < 0.06] = np.nan
        return made.astype(dtype)
    return rng.integers(0, 2 if dtype == "?" else 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [SORTING, LOOKING_UP], ids=["sorting", "looking up"])
def test_expressions_give_numpys(block: str, dtype: str, rng: np.random.Generator) -> None:
    for text in texts(block):
        agrees(text, numbers(rng, dtype, (3, 4)))


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "?"])
def test_statistics_of_order_give_numpys_bits(dtype: str, rng: np.random.Generator) -> None:
    for text in texts(STATISTICS):
        agrees(text, numbers(rng, dtype, (3, 4)))
    # Where a NaN is met, NumPy gives back an element: a dtype that depends on data.
    agrees("np.quantile(x, np.float32(0.3))", np.nan_to_num(numbers(rng, dtype, (3, 4))))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_quantiles_is_numpys(method: str, rng: np.random.Generator) -> None:
    for dtype, n in itertools.product(("i4", "f4", "f8"), (1, 5, 8)):
        x = numbers(rng, dtype, (2, n))
        agrees(f"np.quantile(x, [0.0, 0.2, 0.5, 0.77, 1.0], method={method!r})", x)
        agrees(f"np.percentile(x, 33, axis=1, method={method!r})", x)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_complex_numbers_are_ordered_by_their_parts(dtype: str, rng: np.random.Generator) -> None:
    parts = np.array([-1.0, -0.0, 0.0, 2.0, np.inf, np.nan])
    x = np.empty((4, 30), dtype)
    x.real, x.imag = rng.choice(parts, (2, 4, 30))
    for text in ("np.sort(x)", "np.argsort(x, axis=0, kind='stable')", "np.sort(x, axis=None)"):
        agrees(text, x)


def test_equal_elements_stay_in_order_whatever_the_kind(rng: np.random.Generator) -> None:
    x = rng.integers(0, 3, (5, 70))
    wanted = np.argsort(x, kind="stable")
    for kind in (None, "quicksort", "heapsort", "mergesort"):
        np.testing.assert_array_equal(tm.jit(lambda x, k=kind: np.argsort(x, kind=k))(x), wanted)


def test_one_compilation_serves_every_length(rng: np.random.Generator) -> None:
    compiled = tm.jit(lambda x: (np.sort(x, axis=-1), np.argsort(x, axis=-1), np.median(x)))
    lengths = (9, 10, 31, 33, 200, 300, 5_000, 140_000)
    for n in lengths:
        x = rng.standard_normal((2, n)).astype(np.float32)
        made = compiled(x)
        np.testing.assert_array_equal(made[0], np.sort(x))
        np.testing.assert_array_equal(made[1], np.argsort(x, kind="stable"))
        assert made[2] == np.median(x)
    assert len(compiled.explain_recompiles()) == 1


def test_threads_change_no_bit(rng: np.random.Generator) -> None:
    x = np.round(rng.standard_normal(300_000), 3)
    x[::7] = -0.0
    x[::11] = np.nan
    compiled = tm.jit(lambda x: (np.sort(x), np.argsort(x)))
    before = tm.num_threads()
    try:
        found = []
        for threads in (1, 2, 3, 8):
            tm.set_num_threads(threads)
            found.append([part.tobytes() for part in compiled(x)])
    finally:
        tm.set_num_threads(before)
    assert all(part == found[0] for part in found)


def test_arrays_are_sorted_in_place(rng: np.random.Generator) -> None:
    def in_place(x: Any) -> Any:
        x[:, ::2].sort(axis=0)
        x.T[1].partition(2)
        return x.sum()

    mine = rng.standard_normal((6, 5))[::-1]
    theirs = mine.copy()
    tm.jit(in_place)(mine)
    in_place(theirs)
    np.testing.assert_array_equal(mine[:, ::2], theirs[:, ::2])
    assert mine[2, 1] == theirs[2, 1]
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="TM247"):
        tm.jit(lambda x: x.sort())(frozen)


def test_counts_need_a_length_and_keep_to_it(rng: np.random.Generator) -> None:
    k, w = rng.integers(0, 7, 40), rng.standard_normal(40)
    for text in ("np.bincount(x, minlength=9)", "np.bincount(x.astype(np.uint8), minlength=7)"):
        agrees(text, k)
    weighted = tm.jit(lambda x, w: np.bincount(x, w, 9))
    np.testing.assert_array_equal(weighted(k, w), np.bincount(k, w, 9))
    agrees("np.bincount(np.array([], dtype=int)) + x[0]", k)
    agrees("np.bincount(np.array([1, 3, 3])) + x[0]", k)
    agrees("np.bincount(x[:0], minlength=3)", k)
    agrees("np.bincount(x.astype(float), minlength=9)", k)
    counted = tm.jit(lambda x: np.bincount(x, minlength=5))
    for wrong in (np.array([5]), np.array([-1]), np.array([2**62])):
        with pytest.raises(ValueError, match="TM257"):
            counted(wrong)
    with pytest.raises(NotImplementedError, match="minlength"):
        tm.jit(lambda x: np.bincount(x))(k)


def test_weights_of_histograms_are_summed(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal(50), rng.standard_normal(50)
    for bins in (4, np.array([-1.0, 0.0, 0.5, 4.0])):
        counts, edges = tm.jit(lambda x, w, b=bins: np.histogram(x, b, weights=w))(x, w)
        wanted, theirs = np.histogram(x, bins, weights=w)
        np.testing.assert_allclose(counts, wanted, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(edges, theirs)


@pytest.mark.parametrize("text", [
    "np.quantile(x, q)", "np.percentile(x, 100 * q)", "np.histogram(x, bins=q)",
    "np.digitize(x, q)",
])  # fmt: skip
def test_values_that_do_not_fit_fail_the_call(text: str) -> None:
    function = eval(f"lambda x, q: {text}", {"np": np})
    compiled = tm.jit(function)
    compiled(np.arange(3.0), np.array([0.0, 0.5, 1.0]))
    with pytest.raises(ValueError, match="TM258"):
        compiled(np.arange(3.0), np.array([0.0, 1.5, -1.0]))


def test_distinct_elements_of_a_given_size(rng: np.random.Generator) -> None:
    x = rng.integers(0, 6, (4, 9))
    names = ("return_index", "return_inverse", "return_counts")
    wanted = np.unique(x, **dict.fromkeys(names, True))
    got = tm.unique(x, 8, fill_value=-1, **dict.fromkeys(names, True))
    count = wanted[0].size
    assert got[0].tolist() == [*wanted[0], *[-1] * (8 - count)]
    for mine, theirs in ((got[1], wanted[1]), (got[3], wanted[3])):
        assert mine.tolist() == [*theirs, *[0] * (8 - count)]
    np.testing.assert_array_equal(got[2], wanted[2])
    assert tm.unique(x, 8).tolist() == [*wanted[0], *[wanted[0][0]] * (8 - count)]
    nans = np.array([np.nan, 1.0, np.nan])
    np.testing.assert_array_equal(tm.unique(nans, 3), [1, np.nan, 1])
    assert tm.unique(np.zeros(0), 2, fill_value=7).tolist() == [7, 7]
    with pytest.raises(ValueError, match="TM259"):
        tm.unique(x, count - 1)
    with pytest.raises(NotImplementedError, match=r"tm\.unique"):
        tm.jit(lambda x: np.unique(x))(x)
    np.testing.assert_array_equal(tm.jit(lambda x: np.unique([3, 1, 3]) + x)(1), [2, 4])


def test_the_greatest_come_first(rng: np.random.Generator) -> None:
    x = rng.integers(0, 6, (5, 40))
    wide = rng.integers(0, 99, (2, 400))
    for y, axis, k in ((x, 0, 4), (x, 1, 4), (x, -1, 40), (wide, 1, 300)):
        values, places = tm.top_k(y, k, axis=axis)
        order = np.take(np.argsort(-y, axis=axis, kind="stable"), range(k), axis=axis)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(y, order, axis))
    assert np.isnan(tm.top_k(np.array([1.0, np.nan, np.inf]), 1)[0][0])
    assert tm.top_k(x, 0)[0].shape == (5, 0)
    for wrong in (41, -1):
        with pytest.raises(ValueError, match="top_k cannot give"):
            tm.top_k(x, wrong)


def test_gradients_go_where_elements_came_from(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((4, 6)), rng.standard_normal(6)
    slope = tm.grad(lambda x: (np.sort(x, axis=1) * w).sum())(x)
    np.testing.assert_array_equal(slope, w[np.argsort(np.argsort(x))])
    slope = tm.grad(lambda x: tm.top_k(x, 2)[0].sum())(x)
    np.testing.assert_array_equal(slope, np.argsort(np.argsort(-x)) < 2)
    slope = tm.grad(lambda x: np.median(x))(x)
    assert slope.sum() == 1
    assert np.count_nonzero(slope) == 2


def test_short_rows_are_one_launch_and_need_no_memory() -> None:
    compiled = tm.jit(lambda x: np.sort(x, axis=1))
    plan = compiled.lower(np.zeros((100, 7))).plan
    assert sum(isinstance(row, Launch) for row in plan.rows) == 1
    assert plan.peak_bytes(n=100) == 0
