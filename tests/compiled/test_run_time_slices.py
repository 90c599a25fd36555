"""Slices by numbers of the run: windows that move, parts that grow, in loops and outside.

The judge is the same function, run by Python. Not here: slices by arguments that are numbers,
which select a version (test_open_sizes.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from python_flow import drawn, loops, same
from tracemill import TracemillError

pytestmark = pytest.mark.cpu


def moving_mean(x):
    out = np.zeros(x.shape[0] - 4)
    for i in range(x.shape[0] - 4):
        out[i] = x[i : i + 5].mean()
    return out


def every_other(x):
    out = np.zeros(x.shape[0] - 6)
    for i in range(x.shape[0] - 6):
        out[i] = (x[i : i + 7 : 2] * np.array([1.0, 2.0, 3.0, 4.0])).sum()
    return out


def convolved(x, kernel):
    h, w = kernel.shape
    out = np.zeros((x.shape[0] - h + 1, x.shape[1] - w + 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = (x[i : i + h, j : j + w] * kernel).sum()
    return out


def blocks(x):
    for i in range(x.shape[0] // 4):
        x[4 * i : 4 * i + 4] = x[4 * i : 4 * i + 4][::-1] * 2
    return x


def shifted_writes(x):
    y = x.copy()
    for i in range(x.shape[0] - 3):
        y[i : i + 3] += x[i + 1 : i + 4] * 0.1
    return y


def from_the_back(x):
    total = x[0] * 0
    for i in range(x.shape[0] - 1, 2, -1):
        total = total * 0.5 + x[i - 2 : i + 1].max()
    return total


def by_a_counter(x):
    k = 1
    total = x[0] * 0
    for _ in range((x.shape[0] - 3) // 2):
        total = total + x[k : k + 2].prod()
        k += 2
    return total, k


def view_of_a_window(x):
    y = x.copy()
    for i in range(x.shape[0] - 4):
        part = y[i : i + 4].reshape(2, 2)
        part[0] += part[1]
    return y


VECTORS = [(drawn(n, seed=n),) for n in (40, 61, 12)]


@pytest.mark.parametrize(
    "function",
    [moving_mean, every_other, blocks, shifted_writes, from_the_back, by_a_counter,
     view_of_a_window],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_windows_that_move_through_a_loop(function: Any) -> None:
    compiled = same(function, *VECTORS)
    assert loops(compiled, *VECTORS[0]) == 1


def test_windows_of_two_axes() -> None:
    calls = [(drawn(*s), drawn(*k)) for s, k in (((30, 20), (3, 3)), ((9, 40), (2, 3)))]
    compiled = same(convolved, *calls)
    assert loops(compiled, *calls[0]) == 2


def forward_substitution(a, b):
    x = np.zeros(b.shape[0])
    for i in range(b.shape[0]):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


def cholesky(a, b):
    n = b.shape[0]
    made = np.zeros_like(a)
    for j in range(n):
        made[j, j] = np.sqrt(a[j, j] - np.dot(made[j, :j], made[j, :j]))
        for i in range(j + 1, n):
            made[i, j] = (a[i, j] - made[i, :j].dot(made[j, :j])) / made[j, j]
    return made


def elimination(a, b):
    a, b = a.copy(), b.copy()
    n = b.shape[0]
    for i in range(n):
        for j in range(i + 1, n):
            factor = a[j, i] / a[i, i]
            a[j, i:] -= factor * a[i, i:]
            b[j] -= factor * b[i]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def rows_above(a, b):
    total = np.zeros(a.shape[1])
    for i in range(1, a.shape[0]):
        total += b[:i] @ a[:i]
        total[0] += (a[:i] @ b).sum()
    return total


def below_the_diagonal(a, b):
    for i in range(a.shape[0]):
        a[i, :i] = b[i]
        a[i, i + 1 :] *= 0.5
    return a


def positive(n: int) -> Any:
    a = drawn(n, n, seed=n)
    return a @ a.T + n * np.eye(n)


@pytest.mark.parametrize(
    "function",
    [forward_substitution, cholesky, elimination, rows_above, below_the_diagonal],
    ids=lambda f: f.__name__,
)
def test_parts_that_grow_or_shrink(function: Any) -> None:
    calls = [(positive(n), drawn(n, seed=n)) for n in (18, 23, 7)]
    compiled = same(function, *calls)
    assert loops(compiled, *calls[0]) >= 1


def clipped(x):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = x[i : i + 5].max()
    return out


def clipped_on_both_sides(x):
    out = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        out[i] = x[max(0, i - 2) : i + 3].mean()
    return out


def counted_from_the_end(x):
    total = x[0] * 0
    for i in range(x.shape[0]):
        total += x[-i - 1 :].sum() + x[:-1].sum() + x[i - 3 : i].sum() + x[-2 - i : -1].sum()
    return total


def whole_parts(x):
    best = x[0] * 0
    for i in range(1, x.shape[0]):
        best = max(best, x[:i].sum() - x[i:].sum()) + x[:i].size
    return best


@pytest.mark.parametrize(
    "function",
    [clipped, clipped_on_both_sides, counted_from_the_end, whole_parts],
    ids=lambda f: f.__name__,
)
def test_slices_are_cut_off_at_the_ends_of_an_axis(function: Any) -> None:
    compiled = same(function, *VECTORS, (drawn(3),), versions=2)
    assert loops(compiled, *VECTORS[0]) == 1


def outer_part(x):
    total = x[0] * 0
    for i in range(x.shape[0] - 3):
        for j in range(i):
            total += x[j : j + 3].sum() * x[i - j : i - j + 2].prod()
    return total


def rows_in_a_window(x):
    total = x[0] * 0
    for i in range(x.shape[0] - 3):
        for value in x[i : i + 3]:
            total = total * 0.5 + value
    return total


def needs_the_length(x):
    found = []
    for i in range(3, 6):
        found.append(x[:i] * np.arange(i))
    return np.concatenate(found)


@pytest.mark.parametrize(
    "function", [outer_part, rows_in_a_window, needs_the_length], ids=lambda f: f.__name__
)
def test_slices_in_other_loops(function: Any) -> None:
    same(function, *VECTORS)


def around_the_largest(x):
    k = x.argmax()
    return x[k - 1 : k + 2] * np.array([1.0, 2.0, 1.0])


def test_a_window_where_data_tells() -> None:
    compiled = same(
        around_the_largest, (np.array([0.0, 1.0, 5.0, 2.0]),), (np.arange(-9, 9) % 7.0,)
    )
    for x in (np.array([9.0, 1.0, 5.0, 2.0]), np.arange(8.0)):
        with pytest.raises(IndexError, match="TM255"):
            compiled(x)
    assert compiled(np.array([0.0, 1.0, 5.0, 2.0]))[1] == 10


def until(x):
    k = np.int64(0)
    for i in range(x.shape[0]):
        if x[i] > 1:
            k = np.int64(i)
            break
    return x[:k].sum(), x[k:].sum(), x[k:].size


def test_parts_where_data_tells() -> None:
    same(until, *VECTORS)


def windows_until(x, limit):
    total, i = 0.0, 0
    while total < limit:
        total += x[i : i + 2].mean()
        i += 1
    return total, i


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
def test_windows_of_a_while_loop_run_off_the_end_as_in_numpy() -> None:
    same(windows_until, (np.ones(8), 3.0), (np.arange(8.0), 7.0), (np.zeros(5), 1.0))


def written_at_the_end(x, k):
    i = x.argmax() + k
    x[i : i + 2] = 7
    x[i - 1 : i + 1] += 1
    return x


def test_writes_are_cut_off_at_the_end_of_an_axis() -> None:
    for k in (-2, -1, 0, 1, 3):
        same(written_at_the_end, *[(np.roll(np.arange(6.0), r), k) for r in range(6)])


def test_gradients_go_through_windows() -> None:
    def loss(x):
        total = x[0] * 0
        for i in range(x.shape[0] - 2):
            total = total + (x[i : i + 3] * np.array([1.0, 2.0, 3.0])).sum() ** 2 + x[:i].sum()
        return total

    x = drawn(30)
    got = tm.jit(tm.grad(loss))(x)
    step = 1e-6
    for i in (0, 1, 15, 29):
        moved = np.zeros(30)
        moved[i] = step
        want = (loss(x + moved) - loss(x - moved)) / (2 * step)
        np.testing.assert_allclose(got[i], want, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x[i:][::2] * y", "TM112"),
        ("x[..., i:] + 1", "TM102"),
        ("x[i::2].sum()", "TM102"),
        ("x[5:i:-1].sum()", "TM102"),
        ("y[i:] + x[: len(x) - i]", "TM112"),
    ],
)
def test_what_is_not_understood_is_said(text: str, code: str) -> None:
    space: dict[str, Any] = {"np": np}
    source = f"def f(x, y):\n    i = x.argmax()\n    return {text}\n"
    exec(compile(source, "<slices>", "exec"), space)
    with pytest.raises(TracemillError, match=code):
        tm.jit(space["f"])(drawn(9), drawn(9, seed=1))


def many_trips(x):
    k = 0
    for i in range(100):
        x = np.tanh(x * 0.5 + 1) - np.sin(x) * 0.01 * i + x[0] * 0.1
        k += 3
    return x, np.zeros(k).shape[0], k + i


def few_operations(x):
    for i in range(100):
        x = x * 0.5 + i
    return x


def test_long_ranges_stay_loops_and_their_counters_numbers() -> None:
    compiled = same(many_trips, (drawn(5),), (drawn(9),))
    assert loops(compiled, drawn(5)) == 1
    assert loops(same(few_operations, (drawn(5),)), drawn(5)) == 0
