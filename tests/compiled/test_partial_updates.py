"""Parts of an argument are written where they are: what is copied is what a later read needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.plan import Copy, ExecutionPlan, Origin

pytestmark = pytest.mark.cpu

Array = Any


def scaled(x: Array) -> None:
    x[1:-1] = x[1:-1] * 2 + 1


def window(x: Array) -> None:
    x[1:-1, 1:-1] += 1


def rows_and_columns(x: Array) -> None:
    x[0] = 0
    x[:, -1] = x[:, -1] * 3


def red_and_black(x: Array) -> None:
    x[1:-1:2] = x[:-2:2] + x[2::2]
    x[2:-1:2] = (x[1:-2:2] + x[3::2]) / 2


def columns_apart(x: Array) -> None:
    x[:, ::2] *= 2
    x[:, 1::2] += x[:, :-1:2]


def from_behind(x: Array) -> None:
    x[: len(x) // 2] = x[len(x) // 2 :][: len(x) // 2] * 2


def first_of_all(x: Array) -> None:
    x[0] = x[1:].sum(axis=0)


def then_read(x: Array) -> Array:
    x[2:] += 1
    return x.sum()


def old_returned(x: Array) -> Array:
    before = x.copy()
    x[1:-1] *= 2
    return before


IN_PLACE = [
    scaled, window, rows_and_columns, red_and_black, columns_apart, from_behind, first_of_all,
    then_read, old_returned,
]  # fmt: skip


def neighbours(x: Array) -> None:
    x[1:-1] = (x[2:] + x[:-2]) / 2


def neighbours_again_and_again(x: Array) -> None:
    for _ in range(3):
        x[1:-1] = (x[2:] + x[:-2]) / 2


def turned(x: Array) -> None:
    x[1:] = x[:0:-1] - 1


def moved(x: Array) -> None:
    x[:-1] = x[1:]


def spread(x: Array) -> None:
    x[1:] = x[0]


def prefix(x: Array) -> Array:
    x[1:-1] += x[:-2]
    return x * 2


ONE_COPY = [neighbours, neighbours_again_and_again, turned, moved, spread, prefix]


def compare(function: Callable[..., Any], shape: tuple[int, ...], rng: Any) -> None:
    mine = rng.standard_normal(shape)
    theirs = mine.copy()
    got, want = tm.jit(function)(mine), function(theirs)
    np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    if want is not None:
        np.testing.assert_allclose(got, want, rtol=1e-9)


def plan_of(function: Callable[..., Any], shape: tuple[int, ...]) -> ExecutionPlan:
    return tm.jit(function).lower(np.zeros(shape)).plan.data


def copies_of_the_argument(plan: ExecutionPlan) -> int:
    """Rows that copy all of the argument, and temporaries as large as it."""
    (whole,) = [b.shape for b in plan.buffers if b.origin is Origin.ARGUMENT]
    rows = [row for row in plan.rows if isinstance(row, Copy)]
    into_outputs = [r for r in rows if plan.buffers[r.target].origin is Origin.OUTPUT]
    held = [b for b in plan.buffers if b.origin is Origin.TEMPORARY and b.shape == whole]
    return len(rows) - len(into_outputs) + len(held)


@pytest.mark.parametrize("shape", [(4, 6), (37, 53), (400, 301)])
@pytest.mark.parametrize("function", [*IN_PLACE, *ONE_COPY], ids=lambda f: f.__name__)
def test_parts_are_written_as_numpy_writes_them(
    function: Callable[..., Any], shape: tuple[int, ...], rng: Any
) -> None:
    compare(function, shape, rng)


@pytest.mark.parametrize("size", [8, 9, 63, 64, 65, 4097, 200_001])
@pytest.mark.parametrize(
    "function",
    [f for f in [*IN_PLACE, *ONE_COPY] if f not in (window, rows_and_columns, columns_apart)],
    ids=lambda f: f.__name__,
)
def test_parts_of_a_row_are_written_as_numpy_writes_them(
    function: Callable[..., Any], size: int, rng: Any
) -> None:
    compare(function, (size,), rng)


@pytest.mark.parametrize("function", IN_PLACE, ids=lambda f: f.__name__)
def test_nothing_is_copied_where_no_later_read_needs_it(function: Callable[..., Any]) -> None:
    assert copies_of_the_argument(plan_of(function, (100, 90))) == 0


@pytest.mark.parametrize("function", ONE_COPY, ids=lambda f: f.__name__)
def test_only_the_new_part_is_copied_where_it_is_made_of_what_it_replaces(
    function: Callable[..., Any],
) -> None:
    plan = plan_of(function, (100, 90))
    assert copies_of_the_argument(plan) == 0
    parts = [b for b in plan.buffers if b.origin is Origin.TEMPORARY and len(b.shape) == 2]
    assert len(parts) <= 1


def test_a_variable_is_updated_in_place_too() -> None:
    state = tm.Variable(np.arange(50.0), name="partial/state")

    @tm.jit
    def step() -> None:
        x = state.read()
        x[1:-1] = x[1:-1] / 2
        state.assign(x)

    rows = step.lower().plan.data.rows
    assert not [row for row in rows if isinstance(row, Copy)]
    step()
    want = np.arange(50.0)
    want[1:-1] /= 2
    np.testing.assert_array_equal(state.read(), want)


def test_random_parts(rng: Any) -> None:
    for _ in range(40):
        size = int(rng.integers(3, 40))
        steps = [int(s) for s in rng.choice([-3, -2, -1, 1, 2, 3], 3)]
        starts = [int(s) for s in rng.integers(0, size, 3)]
        count = min(
            (size - 1 - start if step > 0 else start) // abs(step) + 1
            for start, step in zip(starts, steps, strict=True)
        )
        into, one, other = [
            slice(start, (end if (end := start + step * count) >= 0 else None), step)
            for start, step in zip(starts, steps, strict=True)
        ]

        def act(x: Array, into: Any = into, one: Any = one, other: Any = other) -> Array:
            x[into] = x[one] * 2 + x[other]
            return x[::-1] * 1

        mine = rng.standard_normal(size)
        theirs = mine.copy()
        np.testing.assert_array_equal(tm.jit(lambda x, act=act: act(x))(mine), act(theirs))
        np.testing.assert_array_equal(mine, theirs)
