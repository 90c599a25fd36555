"""Families of functions that few programs call: named truly, and loaded by a call only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest

import tracemill as tm
from tracemill.numpy import rare
from tracemill.numpy.dispatch import FUNCTIONS, handler_of

FAMILIES = [
    (module, family, names.split())
    for module, families in rare.NAMED.items()
    for family, names in families.items()
]


@pytest.mark.parametrize(("module", "family", "names"), FAMILIES)
def test_a_family_has_the_functions_that_are_named(
    module: str, family: str, names: list[str]
) -> None:
    functions = import_module(f"tracemill.numpy.{family}").FUNCTIONS
    home = sys.modules[module]
    there = {getattr(home, name) for name in names if hasattr(home, name)}
    assert set(functions) == there
    assert not there & set(FUNCTIONS)
    assert all(handler_of(function) is functions[function] for function in there)


def test_a_function_that_only_has_the_name_is_not_taken_for_numpys() -> None:
    def interp() -> None: ...

    interp.__module__ = "numpy"
    assert handler_of(interp) is None
    assert handler_of(np.interp) is not None


LOADED = """
import sys, numpy as np, tracemill as tm
tm.jit(lambda x: x.sum())(np.ones(3))
assert "tracemill.numpy.interpolation" not in sys.modules
print(tm.jit(lambda x: np.interp(x, [0, 1], [2, 4]))(np.array([0.25])))
assert "tracemill.numpy.interpolation" in sys.modules
"""


def test_a_family_is_loaded_by_the_first_call_of_one_of_its_functions(
    run_python: Callable[..., str],
) -> None:
    assert run_python(LOADED).split() == ["[2.5]"]


def test_their_methods_are_the_functions() -> None:
    x = np.arange(4)
    assert tm.jit(lambda x: x.choose([5, 6, 7, 8]))(x).tolist() == [5, 6, 7, 8]
    assert tm.jit(lambda x: x.compress([0, 1, 1]))(x).tolist() == [1, 2]
    tm.jit(lambda x: x.put([0, -1], 9))(x)
    assert x.tolist() == [9, 1, 2, 9]
