"""What is not compiled yet is refused with an error that says so and names a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import TraceError, UnsupportedError

X = np.array([3.0, 1.0, 2.0])
K = np.array([3, 1, 2])

# what -> (function, arguments, what the message names)
REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "roots: how many they are is data": (lambda x: np.roots(x), (X,), "np.roots"),
    "unique: its size is data": (lambda x: np.unique(x), (X,), "np.unique"),
    "bincount: its size is data": (lambda k: np.bincount(k), (K,), "np.bincount"),
    "a mask that selects: its size is data": (lambda x: x[x > 1] + 0, (X,), "mask"),
    "nonzero: its size is data": (lambda x: np.nonzero(x)[0] + 1, (X,), "run time"),
    "files": (lambda x: np.savetxt("x", x), (X,), "np.savetxt"),
    "masked arrays": (lambda x: np.ma.sum(x), (X,), "np.ma"),
    "global random state": (lambda x: x + np.random.rand(3), (X,), "np.random"),
    "comparisons of Python's own": (lambda x: sorted(x), (X,), "np.sort"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_by_name_with_the_line(what: str) -> None:
    function, args, named = REFUSED[what]
    compiled = tm.jit(function)
    with pytest.raises((UnsupportedError, TraceError)) as caught:
        compiled(*args)
    text = str(caught.value)
    assert named in text
    assert f"test_not_covered.py:{function.__code__.co_firstlineno}" in text
    assert "hint" in text


def test_after_a_refusal_the_next_call_works() -> None:
    compiled = tm.jit(lambda x, counting: np.roots(x) if counting else x + 1)
    with pytest.raises(NotImplementedError):
        compiled(X, "yes")
    assert compiled(X, None).tolist() == [4, 2, 3]
