"""Functions of one lane, and arguments for several: control flow, places, loops in loops."""

from __future__ import annotations

import numpy as np

import tracemill as tm


def newton(a):
    x = a
    while np.abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


def branches(x):
    if x.sum() > 0:
        y = x * 2
    elif x[0] > -1:
        y = np.sqrt(np.abs(x))
    else:
        y = x - 1
    return y


def counted(x, n):
    total = x[0]
    for k in range(n):
        total = total * 0.5 + x[k % 3] * k
    return total


def left_early(x):
    total = 0.0
    for value in x:
        if value < -0.5:
            break
        if value < 0:
            continue
        total = total + value
    return total


def scanned(x):
    carry, ys = tm.scan(lambda h, r: (np.tanh(h + r), h * r), np.float64(0.1), x, reverse=True)
    return ys + carry


def written(x, i):
    y = x.copy()
    y[i] = 7
    y[1:] += y[:-1]
    return y


def chosen(x, i):
    return tm.cond(i < 3, lambda: x[i], lambda: x[0] * 2)


def nested_loops(x, n):
    def outer(i, total):
        inner = tm.while_loop(lambda c: c[1] < i, lambda c: (c[0] * x[0], c[1] + 1), (total, 0))
        return inner[0] + i

    return tm.fori_loop(0, n, outer, x.sum())


def loop_in_branch(a):
    return tm.cond(a > 1, newton, lambda a: a * 0, a)


def rows(rng, *shape):
    return rng.standard_normal(shape)


PLACES = np.array([2, 0, 1, 2])
PROGRAMS = {
    "elementwise": (lambda x: np.sin(x) * x.sum(), lambda r: [rows(r, 4, 3)]),
    "products": (lambda x, y: x @ y + np.outer(x[0], y[:, 0]).sum(),
                 lambda r: [rows(r, 4, 2, 3), rows(r, 4, 3, 2)]),
    "statistics": (lambda x: (x - x.mean(0)) / x.std(axis=0, ddof=1), lambda r: [rows(r, 4, 5, 2)]),
    "sorting": (
        lambda x: np.sort(x)[::-1] + np.median(x) + np.argmax(x), lambda r: [rows(r, 4, 5)]),
    "while": (newton, lambda r: [np.array([1.0, 2, 3, 50])]),
    "if": (branches, lambda r: [rows(r, 6, 3)]),
    "for, lanes leave early": (counted, lambda r: [rows(r, 4, 3), np.array([0, 5, 2, 1])]),
    "break and continue": (left_early, lambda r: [rows(r, 5, 4)]),
    "scan": (scanned, lambda r: [rows(r, 4, 5)]),
    "a place of the run": (lambda x, i: x[i] * 2, lambda r: [rows(r, 4, 3), PLACES]),
    "places of the run": (
        lambda x, i: x[i[::-1], i], lambda r: [rows(r, 4, 3, 3), PLACES[:, None] % [1, 2, 3]]),
    "writes at a place": (written, lambda r: [rows(r, 4, 3), PLACES]),
    "a place in a branch": (chosen, lambda r: [rows(r, 4, 3), np.array([0, 7, 2, 900])]),
    "a loop in a loop": (nested_loops, lambda r: [rows(r, 4, 3), np.array([3, 0, 1, 4])]),
    "a loop in a branch": (loop_in_branch, lambda r: [np.array([-3.0, 0, 2, 9])]),
    "shapes": (
        lambda x: np.concatenate([x.T.reshape(-1)[1:], x[0, ::-1]]), lambda r: [rows(r, 4, 2, 3)]),
    "a slice of the run": (lambda x, i: x[i : i + 2].sum(), lambda r: [rows(r, 4, 6), PLACES]),
}  # fmt: skip
