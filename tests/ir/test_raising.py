"""Exceptions as text and back."""

from __future__ import annotations

import numpy as np
import pytest

from tracemill.compiler.errors import TracemillError
from tracemill.compiler.raising import as_text, from_text


class Plain(Exception):
    """One of a module's."""


class WithState(Exception):
    """Its arguments do not make it again."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self.number = number


@pytest.mark.parametrize(
    "problem", [ValueError("a"), KeyError(), Plain("it's", 3, (None, 2.5)), OSError(2, "gone")]
)
def test_what_plain_arguments_make_comes_back(problem: Exception) -> None:
    text = as_text(problem)
    assert text is not None
    again = from_text(*text, "here")
    assert (type(again), again.args, str(again)) == (type(problem), problem.args, str(problem))
    assert again.__notes__ == ["raised at here"]


def test_others_have_no_text() -> None:
    class Local(Exception):
        pass

    odd = ValueError("a")
    odd.hint = "b"  # type: ignore[attr-defined]
    for problem in (
        Local("a"),
        WithState("a", 2),
        ValueError(np.zeros(2)),
        ValueError([object()]),
        odd,
    ):
        assert as_text(problem) is None


@pytest.mark.parametrize("name", ["gone_module:Error", f"{__name__}:Gone", "builtins:int"])
def test_a_class_that_is_gone_is_an_error_that_names_it(name: str) -> None:
    problem = from_text(name, "('big',)", "here")
    assert isinstance(problem, TracemillError)
    assert f"{name.partition(':')[2]}('big',)" in str(problem)
