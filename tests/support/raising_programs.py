"""Functions that raise on what they are given.

They are not in the file of a test, where pytest rewrites `assert`.

Not here: what is asked of them (tests/compiled/test_raising.py).
"""

import numpy as np


class Refused(Exception):
    """One of the user's."""


def roots(x):
    if x.min() < 0:
        raise ValueError("x is negative")
    return np.sqrt(x)


def asserted(x):
    assert (x >= 0).all(), "negative"
    assert x.sum() < 6.5
    return np.sqrt(x)


def two_of_them(x):
    if x[0] > 3:
        raise Refused("big")
    y = x * 2
    if y[1] > 0:
        y = y + 1
    else:
        raise Refused("small", 2)
    return y


def at_the_end(x):
    if x[0] > 3:
        return x + 1
    elif x[2] > 0:
        return x - 1
    raise RuntimeError("neither")


def nested(x):
    if x[0] > 0:
        y = x * 2
        if x[1] < 0:
            raise ValueError("inside")
        x = y + 1
    return x


def in_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError("one is negative")
        total += np.sqrt(x[i])
    return total


def in_a_while_loop(x):
    while x.sum() > 1:
        x = x * 0.5
        if x[1] < -0.9:
            raise ArithmeticError
    return x


def checked(x, limit):
    if np.abs(x).max() > limit:
        raise FloatingPointError("too large")
    return x


def in_a_helper(x):
    return checked(x, 4) + checked(x * 0.5, 2.0)


def in_an_expression(x):
    return checked(x, 2) if x[1] > 0 else -x


FUNCTIONS = [
    roots, asserted, two_of_them, at_the_end, nested, in_a_loop, in_a_while_loop, in_a_helper,
    in_an_expression,
]  # fmt: skip
