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
    "histogram2d: a later issue": (lambda x: np.histogram2d(x, x), (X,), "np.histogram2d"),
    "unique: its size is data": (lambda x: np.unique(x), (X,), "np.unique"),
    "bincount: its size is data": (lambda k: np.bincount(k), (K,), "np.bincount"),
    "a mask that selects: its size is data": (lambda x: x[x > 1] + 0, (X,), "mask"),
    "nonzero: its size is data": (lambda x: np.nonzero(x)[0] + 1, (X,), "run time"),
    "solvers: a later issue": (lambda x: np.linalg.inv(np.outer(x, x)), (X,), "np.linalg.inv"),
    "fft: a later issue": (lambda x: np.fft.fft(x), (X,), "np.fft"),
    "global random state": (lambda x: x + np.random.rand(3), (X,), "np.random"),
    "if on a traced value: a later issue": (lambda x: x if x.sum() > 3 else -x, (X,), "np.where"),
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
    compiled = tm.jit(lambda x, counting: np.histogram2d(x, x) if counting else x + 1)
    with pytest.raises(NotImplementedError):
        compiled(X, "yes")
    assert compiled(X, None).tolist() == [4, 2, 3]
