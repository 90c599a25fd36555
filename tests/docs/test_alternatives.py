"""What is said instead of a function that is not compiled can be done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import TracemillError
from tracemill.numpy import alternatives
from tracemill.numpy.dispatch import DISPATCH

from .test_reference import generate as generate
from .test_reference import page, rows

OUTSIDE = re.compile(r"\b(before|after|outside)\b")
REFUSED = [name for name, status in rows(page("numpy-support.md")).items() if status == "no"]


def named(text: str) -> set[str]:
    """The functions that an advice names."""
    return set(re.findall(r"\b(?:np|tm)(?:\.[a-z_]\w*)+", text))


def exists(name: str) -> bool:
    found: object = {"np": np, "tm": tm}[name.split(".")[0]]
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found is not None


def hint(name: str) -> str:
    """What the error for a function or attribute of the page says to do."""
    if name.startswith("ndarray."):
        return alternatives.of_array_attribute(name.removeprefix("ndarray."))
    function: object = np
    for part in name.split(".")[1:]:
        function = getattr(function, part)
    problem = DISPATCH.unsupported(function)
    assert isinstance(problem, TracemillError)
    return problem.hint


def advice() -> Iterator[str]:
    """All of them."""
    yield from alternatives._MODULES.values()
    for table in (alternatives._ADVICE, alternatives._OF_ARRAYS):
        yield from table.values()


def test_there_are_functions_to_speak_about() -> None:
    assert len(REFUSED) > 50


@pytest.mark.parametrize("name", REFUSED)
def test_each_function_that_is_not_compiled_has_a_way_out(name: str) -> None:
    text = hint(name)
    assert named(text) - {name} or OUTSIDE.search(text)


def test_what_an_advice_names_is_compiled(generate: ModuleType) -> None:
    status = rows(page("numpy-support.md"))
    types = {"np.uint8", "np.float64"}
    modules = {"np.linalg", "np.fft"}
    for text in advice():
        for name in named(text) - types - modules:
            assert exists(name), f"there is no {name}: {text}"
            if name.startswith("np."):
                assert status[name] == "compiled", f"{name} is not compiled: {text}"


def test_an_advice_is_about_a_function_that_there_is() -> None:
    later = {"row_stack", "in1d", "trapz"}  # not in every NumPy
    known = {*dir(np), *dir(np.ndarray), *dir(np.linalg), *dir(np.lib.stride_tricks), *later}
    for table in (alternatives._ADVICE, alternatives._OF_ARRAYS):
        assert set(table) <= known


def test_an_unknown_name_is_found_out() -> None:
    assert named("use np.median, tm.unique(x) or np.linalg.norm") == {
        "np.median", "tm.unique", "np.linalg.norm",
    }  # fmt: skip
    assert not exists("np.nanmeridian")
    assert exists("tm.special.erf")
