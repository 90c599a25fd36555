"""any, all, `in` of Python over elements that are known only when the function runs.

Not here: np.any and np.all, tests of `if` (test_control_flow.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracemill as tm
from python_flow import same
from tracemill import TracemillError

pytestmark = pytest.mark.cpu
CALLS = [
    (np.array([1.0, 2, 3]), 2.0), (np.array([1.0, 2, 3]), 7.0), (np.array([-1.0, 2, np.nan]), -1.0),
]  # fmt: skip


def some(x, t):
    return any(q > t for q in x)


def every(x, t):
    return all(q > t for q in x) and t in x


def in_a_tuple(x, t):
    return t in (x[0], x[1])


def not_in_an_array(x, t):
    return t not in x


def chosen(x, t):
    if any([x[0] > t, x[1] > t]):
        return x * 2
    return x


def chosen_by_in(x, t):
    if t in x:
        return x * 2
    return x


def known_ones(x, t):
    return any([]), all([]), any([False, x[0] > t, True]), all([x[0] > t, False]), 3 in [1, 3]


def rows(x, t):
    return all(any(np.stack((x, x * t))[i] > t) for i in range(2))


def number_in_a_list(x, t):
    return t in [1, 2, 3], x[0] in [t, x[1]]


@pytest.mark.parametrize(
    "function", [some, every, in_a_tuple, not_in_an_array, chosen, chosen_by_in, known_ones, rows,
                 number_in_a_list], ids=lambda f: f.__name__,
)  # fmt: skip
def test_as_in_python(function: Any) -> None:
    same(function, *CALLS)


def test_elements_behind_one_that_may_decide_are_not_to_be_seen() -> None:
    with pytest.raises(TracemillError, match=r"TM102(.|\n)*hint: write a loop"):
        tm.jit(lambda x: any(1 / float(q) > 2 for q in x))(np.ones(3))


def test_an_array_equals_nothing_that_is_none() -> None:
    same(lambda x: (x == None, x != None, x == None), (np.ones(3),), (np.ones(4),))  # noqa: E711
    same(lambda x: (x == "a", x != {}), (np.ones((2, 3)),))
    with pytest.raises(ValueError, match="ambiguous"):
        tm.jit(lambda x: 1 if x == None else 2)(np.ones(3))  # noqa: E711


def test_the_conjugate_of_real_numbers_is_the_array_itself() -> None:
    def written(x):
        y = x.conj()
        y[0] = 5
        return x * 1, y

    same(written, (np.ones(3),), (np.ones(4),))
    same(written, (np.ones(3) + 1j,))
