"""Functions as users write them: containers in containers, helpers elsewhere, writes to views.

Each is called with arrays in several layouts, and again with other sizes, 0 and 1 among them.
Not here: programs of a line or two (test_programs.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import assert_equal, copied, outcome
from traced_callee import LAYERS, Box, combined, raised

pytestmark = pytest.mark.cpu


def arguments_of_every_kind(x: Any) -> Any:
    return combined(x, x[::-1], x * 2, factor=3, extra=x.T)


def a_helper_writes_to_views(x: Any) -> Any:
    return raised(x.T[:1]), raised(x[::2, ::-1], by=2), x


def operators_of_an_object(x: Any) -> Any:
    box = Box(x)
    box += 1
    box[:1] = box[-1:] * 2
    box[1:] += box[:1]
    return box.held, box.updates, x, box @ x.T


def containers_in_containers(x: Any) -> Any:
    held: dict[str, Any] = {"a": [x, (x[:1], None)]}
    held["a"][0][1:] *= 5
    held["b"] = held["a"][1][0] + 1
    held["a"].append(held["b"])
    return held


def two_names_of_an_entry(x: Any) -> Any:
    held = {"x": x, "y": x}
    held["x"] += 1
    held["y"] *= 2
    return sum(value.sum() for value in held.values()), held["x"] is held["y"], x


def lists_of_functions(x: Any) -> Any:
    made = [lambda v, i=i: v[i:].sum() * i for i in range(3)]
    return [function(x) for function in made]


def variables_of_inner_functions(x: Any) -> Any:
    count = 0

    def added(other: Any) -> Any:
        nonlocal count, x
        count += 1
        x = x + other
        return x

    added(x)
    added(x[::-1])
    return count, x


def errors_that_are_caught(x: Any) -> Any:
    try:
        y = x[99]
    except IndexError:
        y = x * 2
    try:
        z = x.reshape(-1) + np.ones(997)
    except ValueError:
        z = x.sum()
    return y, z


def layers_from_elsewhere(x: Any) -> Any:
    wide = np.ones((4, x.shape[-1]))
    for layer in LAYERS:
        wide = layer["w"] @ wide + layer["b"][:, None] * x.sum()
    return wide, [layer["b"].shape for layer in LAYERS]


def draws_of_a_seed(x: Any) -> Any:
    drawn = np.random.default_rng(7).normal(size=3)
    return (drawn - drawn[1])[1], drawn + x.sum()


WHOLE = [
    arguments_of_every_kind, a_helper_writes_to_views, operators_of_an_object,
    containers_in_containers, two_names_of_an_entry, lists_of_functions,
    variables_of_inner_functions, errors_that_are_caught, layers_from_elsewhere, draws_of_a_seed,
]  # fmt: skip


def layouts(size: int) -> list[Any]:
    """A square in C order, Fortran order, with gaps, and backwards."""
    square = np.arange(float(size * size)).reshape(size, size) + 1
    wide = np.repeat(np.repeat(square, 2, 0), 2, 1)
    return [square, np.asfortranarray(square), wide[::2, ::2], np.flip(np.flip(square).copy())]


@pytest.mark.parametrize("function", WHOLE, ids=lambda function: function.__name__)
def test_a_whole_function_gives_what_it_gives_in_numpy(function: Callable[[Any], Any]) -> None:
    compiled = tm.jit(function)
    for size in (3, 17, 1, 0):
        for square in layouts(size):
            wanted, theirs = outcome(function, [copied(square)])
            got, mine = outcome(compiled, [copied(square)])
            if isinstance(wanted, Exception):
                assert isinstance(got, type(wanted)), got
                continue
            assert not isinstance(got, Exception), got
            assert_equal(got, wanted)
            assert_equal(mine, theirs)
