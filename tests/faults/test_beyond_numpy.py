"""Faults whose right answer NumPy does not give: gradients, captured memory, worlds of calls.

Not here: threads, forks (tests/compiled), the cache and checkpoints (tests/runtime), C headers
(tests/export), gradients in general (tests/transforms).
"""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest

import tracemill as tm


def test_the_branch_not_taken_gives_no_nan_to_the_gradient() -> None:
    slope = tm.grad(lambda x: np.where(x > 0, np.sqrt(np.where(x > 0, x, 1)), 0).sum())
    assert slope(np.array([0.0, 4.0])).tolist() == [0.0, 0.25]


def test_equal_greatest_elements_share_one_unit_of_gradient() -> None:
    x = np.array([1.0, 1.0, 0.0])
    for function in (
        lambda x: x.max(),
        lambda x: x[x.argmax()],
        lambda x: np.maximum(x[0], x[1]),
        lambda x: -np.min(-x),
    ):
        found = tm.grad(function)(x)
        assert found.sum() == 1
        assert found[2] == 0


def test_powers_at_zero_have_finite_gradients() -> None:
    for exponent, slope in ((0.0, 0.0), (1.0, 1.0), (2.0, 0.0)):
        assert tm.grad(lambda x, y: x**y)(0.0, exponent) == slope
    assert tm.grad(lambda x, y: x**y, argnums=1)(0.0, 2.0) == 0


def test_integers_in_a_loop_have_no_gradient_and_no_error() -> None:
    def loss(x: Any) -> Any:
        count, total = 0, x
        for _ in range(3):
            count, total = count + 1, total + x * count
        return total

    assert tm.grad(loss)(2.0) == 4.0  # 1 + 0 + 1 + 2


def test_an_index_out_of_bounds_stops_the_gradient_too() -> None:
    slope = tm.jit(tm.grad(lambda x, k: x[k].sum()))
    x = np.ones(3)
    with pytest.raises(IndexError):
        slope(x, np.array([1, 3]))
    assert slope(x, np.array([1, 1])).tolist() == [0, 2, 0]


def test_a_large_captured_array_is_passed_and_not_copied_into_the_code() -> None:
    weights = np.ones((512, 512), np.float32)
    compiled = tm.jit(lambda x: x @ weights)
    x = np.ones((2, 512), np.float32)
    assert compiled(x)[0, 0] == 512
    weights[:] = 2
    assert compiled(x)[0, 0] == 1024
    assert len(compiled.explain_recompiles()) == 1
    assert len(compiled.lower(x).text) < 10_000


def test_a_string_made_anew_compiles_nothing_anew() -> None:
    compiled = tm.jit(lambda x, kind: np.maximum(x, 0) if kind == "relu" else x)
    for _ in range(5):
        compiled(np.ones(3), "".join(["re", "lu"]))
    assert len(compiled.explain_recompiles()) == 1


def test_sixty_sizes_compile_a_few_versions_and_each_is_explained() -> None:
    compiled = tm.jit(lambda x: (x * 2).sum())
    for n in range(1, 64):
        assert compiled(np.ones(n)) == 2 * n
    versions = compiled.explain_recompiles()
    assert len(versions) <= 3
    assert all("x" in str(version) for version in versions)


def test_calls_and_failed_calls_keep_no_memory() -> None:
    compiled = tm.jit(lambda x, k: (x[k] * 2, x.sum(axis=0), x.shape))
    x, good, bad = np.ones((1000, 3)), np.array([0, 1]), np.array([5000])

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def rounds(count: int) -> None:
        for _ in range(count):
            compiled(x, good)
            with pytest.raises(IndexError):
                compiled(x, bad)

    rounds(300)
    gc.collect()
    before = resident()
    rounds(3000)
    gc.collect()
    assert resident() - before < 4 << 20


def test_results_are_arrays_of_their_own() -> None:
    def several(x: Any) -> Any:
        y = x * 2
        return y, y.copy(), x.copy(), y + 0, x, y

    x = np.arange(3)
    y, copy, mine, same, argument, again = tm.jit(several)(x)
    assert argument is x
    assert again is y
    for array in (copy, mine, same):
        assert not any(np.shares_memory(array, other) for other in (x, y))
    assert tm.jit(lambda x: x + 0)(x) is not x


def test_a_view_of_backward_memory_is_copied_right_where_it_is_written() -> None:
    def shifted(c: Any) -> Any:
        rows = np.reshape(c, (-1, c.shape[-1]))
        c[::2] += 1
        return rows

    compiled = tm.jit(shifted)
    for shape in ((5, 3, 5), (10, 12, 11), (4, 1, 2), (1, 3, 5)):
        base = np.arange(np.prod(shape)).reshape(shape)
        for axes in (None, 0, 1, 2):
            mine = np.flip(np.flip(base, axes).copy(), axes)
            theirs = np.flip(np.flip(base, axes).copy(), axes)
            assert np.array_equal(compiled(mine), shifted(theirs))
            assert np.array_equal(mine, theirs)
