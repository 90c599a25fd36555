"""Programs as they are written for NumPy, with loops and branches on what they compute.

Not here: the constructs one by one (test_python_control_flow.py and those beside it).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from python_flow import same

pytestmark = pytest.mark.cpu


def mandelbrot(c, limit):
    z = np.zeros_like(c)
    count = np.zeros(c.shape, np.int64)
    live = np.ones(c.shape, bool)
    k = 0
    while k < limit and live.any():
        z[live] = z[live] ** 2 + c[live]
        live = np.abs(z) <= 2
        count[live] += 1
        k += 1
    return count


def escape(cr, ci, limit):
    zr, zi, n = 0.0, 0.0, 0
    while zr * zr + zi * zi <= 4.0 and n < limit:
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        n += 1
    return n


def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def newton(a):
    x = a
    for i in range(50):
        following = 0.5 * (x + a / x)
        if abs(following - x) < 1e-12 * following:
            return following, i
        x = following
    return x, -1


def bisection(low, high, a):
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if middle * middle * middle > a:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def kalman(rows, f, h, q, r):
    x, p = np.zeros(2), np.eye(2)
    found = np.empty((len(rows), 2))
    i = 0
    for z in rows:
        x = f @ x
        p = f @ p @ f.T + q
        s = (h @ p @ h.T)[0, 0] + r
        gain = (p @ h.T)[:, 0] / s
        x = x + gain * (z - (h @ x)[0])
        p = p - np.outer(gain, h @ p)
        found[i] = x
        i += 1  # noqa: SIM113
    return found


def sinkhorn(cost, strength, tolerance):
    kernel = np.exp(-cost / strength)
    n, m = cost.shape
    u, v = np.ones(n) / n, np.ones(m) / m
    for trip in range(1000):  # noqa: B007
        following = (1.0 / n) / (kernel @ v)
        v = (1.0 / m) / (kernel.T @ following)
        error = np.abs(following - u).max()
        u = following
        if error < tolerance:
            break
    return u[:, None] * kernel * v[None], trip


def insertion_sort(a):
    for i in range(1, len(a)):
        j = i
        while j > 0 and a[j - 1] > a[j]:
            a[j - 1], a[j] = a[j], a[j - 1]
            j -= 1
    return a


def bubble_sort(a):
    n = len(a)
    for i in range(n):
        for j in range(n - i - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def binary_search(a, wanted):
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(a) and a[low] == wanted else -1


def adaptive_euler(y, end):
    t, h, steps = 0.0, 0.1, 0
    while t < end:
        if t + h > end:
            h = end - t
        full = y + h * -y
        half = y + 0.5 * h * -y
        half = half + 0.5 * h * -half
        error = np.abs(half - full).max()
        if error > 1e-3:
            h = 0.5 * h
            continue
        t, y, steps = t + h, half, steps + 1
        if error < 1e-4:
            h = 2 * h
    return y, steps


RNG = np.random.default_rng(0)
PLANE = np.linspace(-2, 1, 7)[:, None] + 1j * np.linspace(-1, 1, 5)[None]
F, H = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
SORTED = np.arange(0.0, 40, 3)
PROGRAMS: list[tuple[Any, list[tuple[Any, ...]]]] = [
    (mandelbrot, [(PLANE, 20), (PLANE[:3], 5)]),
    (escape, [(-0.5, 0.5, 100), (1.0, 1.0, 100), (0.3, 0.5, 30)]),
    (collatz, [(27,), (7,), (1,)]),
    (newton, [(2.0,), (1e6,), (1e-3,)]),
    (newton, [(np.float64(2.0),), (np.float64(9.0),)]),
    (bisection, [(0.0, 2.0, 2.0), (1.0, 9.0, 20.0)]),
    (gcd, [(48, 36), (17, 5), (5, 17), (7, 0)]),
    (kalman, [(RNG.random(n), F, H, np.eye(2) * 0.1, 0.3) for n in (6, 9)]),
    (sinkhorn, [(RNG.random((4, 5)), 0.2, 1e-9), (RNG.random((6, 5)), 0.5, 1e-6)]),
    (binary_search, [(SORTED, 9.0), (SORTED, 10.0), (SORTED[:3], 40.0)]),
    (adaptive_euler, [(np.array([1.0, 2.0]), 1.0), (np.array([1.0, 0.5, 3.0]), 2.0)]),
]


@pytest.mark.parametrize(
    ("program", "calls"), PROGRAMS, ids=lambda item: getattr(item, "__name__", "")
)
def test_a_program_runs_unchanged_and_is_compiled_once(program: Any, calls: Any) -> None:
    same(program, *calls)


@pytest.mark.parametrize("program", [insertion_sort, bubble_sort])
def test_sorts_are_compiled_once_for_arrays_of_some_length(program: Any) -> None:
    same(program, *[(RNG.random(n),) for n in (6, 9, 30)])
