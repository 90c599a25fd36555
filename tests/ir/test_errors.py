"""Errors: the form of their text, their codes, and that they are what NumPy raises.

Not here: who raises which.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tracemill.compiler.error_help import HELP
from tracemill.compiler.errors import (
    CODES,
    ArgError,
    AxisError,
    BoundsError,
    DTypeError,
    LimitError,
    ShapeError,
    TraceError,
    TracemillError,
    error,
)
from tracemill.compiler.ir.graph import Location


def test_the_form() -> None:
    made = error(
        "TM204",
        "sub needs equal or broadcastable shapes, got f32[64, 10] and f32[32, 10]",
        place=Location("train.py", 31, "loss"),
        detail="they differ in dimension 0: 64 against 32",
        hint="the batch size of `target` was fixed at 32 by the first call",
    )
    assert str(made) == (
        "ShapeError [TM204] at train.py:31, in loss\n"
        "  sub needs equal or broadcastable shapes, got f32[64, 10] and f32[32, 10]\n"
        "  they differ in dimension 0: 64 against 32\n"
        "  hint: the batch size of `target` was fixed at 32 by the first call"
    )


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ShapeError, ValueError), (DTypeError, TypeError), (AxisError, np.exceptions.AxisError),
        (AxisError, IndexError), (BoundsError, IndexError), (ArgError, ValueError),
        (LimitError, MemoryError), (TraceError, TypeError),
    ],
)  # fmt: skip
def test_they_are_what_numpy_raises(ours: type[Exception], theirs: type[Exception]) -> None:
    assert issubclass(ours, theirs)


@pytest.mark.parametrize("code", CODES)
def test_every_code_makes_an_error_that_travels(code: str) -> None:
    made = error(code, place="a.py:1, in f", detail="more", hint="do this")
    assert isinstance(made, TracemillError)
    assert str(made).startswith(f"{type(made).__name__} [{code}] at a.py:1, in f\n")
    assert CODES[code].title in str(made)
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made)
    assert str(again) == str(made)


def test_every_code_says_what_to_do() -> None:
    assert set(HELP) == set(CODES)
    for code, row in CODES.items():
        assert row.help.endswith("."), code
        assert row.help == HELP[code]


def test_every_class_has_a_code() -> None:
    used = {row.error for row in CODES.values()}
    pending = [TracemillError]
    while pending:
        for kind in pending.pop().__subclasses__():
            pending.append(kind)
            assert kind in used or not kind.__module__.startswith("tracemill.compiler.errors"), kind
