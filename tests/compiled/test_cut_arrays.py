"""Arrays cut to lengths of the run, with names and in functions; what else loops leave as it is.

Not here: the slices themselves (test_run_time_slices.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from python_flow import drawn, loops, operations, same
from tracemill import TracemillError

pytestmark = pytest.mark.cpu
VECTORS = [(drawn(n, seed=n),) for n in (40, 61, 12)]


# -- slices with names: they are views


def written_through(x):
    part = x[: x.argmin() + 1]
    part += 1
    return x, part.sum()


def read_after_a_write(x):
    part = x[: x.argmin() + 1]
    x[0] = 100
    return part.sum()


def slice_of_a_view(x):
    part = x[1:][: x.argmin()]
    x[1] = 50
    return part.sum()


def written_on_trips(x):
    for i in range(len(x)):
        part = x[:i]
        part *= 0.5
    return x


def read_on_trips(x):
    part = x[: x.argmin() + 1]
    total = x[0] * 0
    for i in range(len(x)):
        window = x[i : i + 3]
        x[i] = 0
        total += window.sum() + part.sum()
    return total


def written_in_a_branch(x):
    part = x[: x.argmin() + 1]
    if x[0] > 0:
        part += 5
    else:
        x[0] = 3
    return x, part.sum()


def doubled(part):
    part *= 2


def written_by_a_helper(x):
    doubled(x[: x.argmin() + 1])
    return x


def copied(x):
    k = x.argmin() + 1
    parts = x[:k].copy(), x[:k].flatten(), x[:k].astype(x.dtype)
    x[0] = 100
    return [part.sum() for part in parts]


def views_of_slices(x):
    k = x.argmin() + 1
    a = x[:, None] * x
    parts = x[:k][::-1], x[:k][1:], x[:k].ravel(), np.flip(x[:k]), a[:k].T, a[:k, :2][:, 0]
    x[:2] = 100
    a[0, 0] = 50
    reverse = parts[3]
    reverse += 1
    doubled(parts[4])
    return [part.sum() for part in parts], x, a


@pytest.mark.parametrize(
    "function",
    [copied, views_of_slices, written_through, read_after_a_write, slice_of_a_view,
     written_on_trips, read_on_trips, written_in_a_branch, written_by_a_helper],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_a_slice_with_a_name_is_a_view(function: Any) -> None:
    same(function, *[(np.roll(drawn(n, seed=n), n // 2),) for n in (8, 6, 11)], versions=3)


def many_functions(x):
    k = x.argmin() + 2
    a = x[:, None] * x
    return (
        a[:k, :k].sum(), (a[:k] @ x).sum(), a[:, k:].max(axis=1), np.linalg.norm(x[:k]), x[:k][-1],
        np.flip(x[:k]).sum(), np.cumsum(x[:k])[-1], (a[k:, :k] * x[:k]).sum(), a[:k].T[0, 0],
        np.outer(x[:k], x[k:]).sum(), np.where(x[:k] > 0, x[:k], 0).mean(), x[:k].astype(int).sum(),
        (x[:k][::-1] * 2).min(), a[1:, k:][:, 0], np.var(x[k - 1 :]),
    )  # fmt: skip


def test_functions_of_cut_arrays() -> None:
    same(many_functions, *[(np.append(drawn(n, seed=n), [-9, 1, 2, 3.5]),) for n in (5, 9)])


def test_what_a_cut_array_cannot_be_is_said() -> None:
    def initial(x):
        return x[x.argmin() :].max(initial=99)

    def unlike(x):
        return ((x[:, None] * x)[x.argmin() :] * x[x.argmin() :]).sum()

    for function in (initial, unlike):
        with pytest.raises(TracemillError, match="TM112"):
            tm.jit(function)(drawn(8))


# -- what stays as it is in loops of the graph


def exact_integers(x):
    c, previous, following = 1, 0, 1
    for i in range(40):
        c = c * (80 - i) // (i + 1)
        previous, following = following, previous + following
        x = np.tanh(x * 0.5 + 1) - np.sin(x) * 0.01 + np.cos(x) * 0.1
    return c, previous, x


def test_integers_that_python_knows_stay_exact() -> None:
    same(exact_integers, (drawn(5),))


class Slotted:
    __slots__ = ("n",)


def other_containers(x):
    class Own(dict):
        pass

    own, slotted = Own(n=0), Slotted()
    slotted.n = 0
    for _ in range(30):
        own["n"] += 1
        slotted.n += 1
        x = np.tanh(x * 0.99 + 0.1) - x[0] + np.sin(x) * 0.3 + np.cos(x) - np.exp(-x * x) * 0.2
    return own["n"], slotted.n, x


def test_trips_that_are_tried_leave_no_trace_in_containers() -> None:
    same(other_containers, (drawn(5),))


def elements_beside_constants(x):
    y = np.zeros((x.shape[0], 3))
    for i in range(x.shape[0] - 1):
        y[i + 1, 0] = y[i, 0] * 0.5 + x[i]
        y[i + 1, 1] = y[i, 1] * 0.25 + y[i, -1]
        y[i, 2] += y[i + 1, 0]
    return y


def test_elements_at_a_known_and_a_run_time_place() -> None:
    compiled = same(elements_beside_constants, *VECTORS)
    assert "update_slice" not in operations(compiled.lower(*VECTORS[0]).text)


def stored_in_integers(y):
    y[0] = y[1] * 0.5
    y[1:2] = y[1] * 0.5
    y[2] = np.sqrt(y[3])
    return y


def test_computed_floats_are_stored_in_integers() -> None:
    same(stored_in_integers, (np.array([3, 9, 4, 16]),), (np.array([3, -9, 4, 17, 5]),))


def parts_of_rows(x):
    n = x.argmax() % 2
    a = np.zeros((3, 4, 5)) + x[:5]
    a[n, 1:3] = 7
    a[n, :, 0] += 1
    a[0, n, 1:] *= 2
    a[n, -1, ::2] = a[n, 0, ::2]
    a[:, n, 1:] -= 1
    a[n, 1:, 1] = a[n - 1, :-1, 2]
    for i in range(x.shape[0] // 4):
        a[i % 3, :2] = x[i]
        a[i % 3, i % 4, 1:] += x[i : i + 4]
    return a, a[n, 1:], a[-1, n, ::-1], a[1:, n, 0], a[n, :2, n]


def test_parts_of_rows_at_a_run_time_place() -> None:
    compiled = same(parts_of_rows, *VECTORS)
    assert loops(compiled, *VECTORS[0]) == 1
    with pytest.raises(IndexError, match="TM230"):
        tm.jit(lambda a, v: a[v.argmax(), 1:])(np.zeros((3, 4)), np.arange(9.0))


def first_places(x, lo, hi):
    below = np.zeros((x.shape[0], 8), np.int64)
    for i in range(x.shape[0]):
        part = x[lo[i] : hi[i], 1]
        below[i, 0] = np.argmax(part)
        below[i, 1] = part.argmin()
        below[i, 2:4] = np.argmax(x[lo[i] : hi[i], :2], axis=0)
        below[i, 4] = np.argmin(x[i:, 2]) + np.argmax(x[: i + 1, 0])
        below[i, 5] = x[lo[i] : hi[i]].argmax(axis=1).sum()
        below[i, 6] = np.argmax(np.abs(part) * 2)
        below[i, 7] = np.argmax(part > 1)
    return below


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1", "?", "c16"])
def test_places_of_extremes(dtype):
    rng = np.random.default_rng(0)
    calls = []
    for rows in (30, 41):
        x = rng.integers(0, 4, (rows, 3)).astype(dtype)
        if dtype[0] in "fc":
            x[rng.random(x.shape) < 0.05] = np.nan
            x[3:9] = -np.inf
        lo = rng.integers(0, rows - 1, rows)
        calls.append((x, lo, lo + 1 + rng.integers(0, rows - lo)))
    compiled = same(first_places, *calls)
    assert loops(compiled, *calls[0]) == 1


def test_the_place_in_an_empty_slice():
    def f(x, n):
        total = 0
        for i in range(n):
            total += np.argmax(x[i:])
        return total

    compiled = tm.jit(f)
    x = np.arange(20.0) % 7
    assert compiled(x, 20) == f(x, 20)
    with pytest.raises(ValueError, match="TM241"):
        compiled(x, 21)
    with pytest.raises(ValueError, match="empty"):
        f(x, 21)


def eliminated(a, b):
    """The textbook's solution of a system, with pivots."""
    a, b = a.copy(), b.copy()
    n = len(b)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        if a[p, k] == 0:
            raise ValueError("the matrix is singular")
        if p != k:
            a[[k, p]] = a[[p, k]]
            b[[k, p]] = b[[p, k]]
        for i in range(k + 1, n):
            m = a[i, k] / a[k, k]
            a[i, k:] -= m * a[k, k:]
            b[i] -= m * b[k]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def test_elimination_with_pivots_is_compiled_once():
    rng = np.random.default_rng(1)
    compiled = tm.jit(eliminated)
    for n in (20, 30, 7, 61):
        a, b = rng.normal(size=(n, n)), rng.normal(size=n)
        np.testing.assert_allclose(compiled(a, b), np.linalg.solve(a, b), rtol=1e-7)
    assert len(compiled.explain_recompiles()) == 1
    with pytest.raises(ValueError, match="singular"):
        compiled(np.zeros((20, 20)), np.ones(20))


def written_at(x, k):
    for i in range(k.shape[0]):
        part = x[k[i] :]
        part[0] = 2.5
        part[-1] += 1
        part[1:3] *= 2
        own = x[i:].copy()
        own[0] -= 100
        own[:2] += part.max()
        x[i] += own.sum() + x[i : i + 3][::-1][0]
        x[1 : k[i] + 3][1] = 7
    return x


def rows_written_at(a):
    for i in range(len(a) - 1):
        below = a[i:, i:].copy()
        below[0] = 1.5
        below[:, 0] -= a[i, i]
        below[0, 0] *= 2
        a[i:, i:] -= np.outer(below[:, 0], below[0]) * 1e-3
    return a


def reflected(a):
    """Householder's triangle."""
    a = a.copy()
    for k in range(len(a) - 1):
        x = a[k:, k].copy()
        x[0] += np.sign(x[0]) * np.linalg.norm(x)
        v = x / np.linalg.norm(x)
        a[k:, k:] -= 2 * np.outer(v, v @ a[k:, k:])
    return a


def test_items_of_slices_and_of_their_copies_are_written() -> None:
    rng = np.random.default_rng(0)
    calls = [(drawn(n, seed=n), rng.integers(0, n - 4, n - 3)) for n in (20, 33, 9)]
    assert loops(same(written_at, *calls), *calls[0]) == 1
    matrices = [(drawn(n, n, seed=n),) for n in (20, 9, 31)]
    assert loops(same(rows_written_at, *matrices), *matrices[0]) == 1


def test_a_triangle_by_reflections_is_compiled_once() -> None:
    compiled = tm.jit(reflected)
    for n in (20, 7, 41):
        a = drawn(n, n, seed=n)
        r = compiled(a)
        np.testing.assert_allclose(np.abs(np.triu(r)), np.abs(np.linalg.qr(a).R), rtol=1e-7)
    assert len(compiled.explain_recompiles()) == 1


def test_an_item_outside_a_slice_is_not_written() -> None:
    def f(x, k):
        for i in range(20):
            x[: k + i][i + k] = 5.0
        return x

    with pytest.raises(IndexError, match="TM230"):
        tm.jit(f)(np.zeros(50), 3)
