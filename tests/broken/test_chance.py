"""Generators from outside are drawn from by every run, however they are reached; those that a
function makes from a seed draw what they draw in NumPy, and without a seed they are refused.

Not here: the methods (tests/compiled/test_draws_of_numpy.py).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.intercept.numpy_functions import set_state, state_of

pytestmark = pytest.mark.cpu

X = np.arange(6.0).reshape(2, 3)
GENERATOR = np.random.default_rng(0)
STATE = np.random.RandomState(0)
HELD = {"rng": [GENERATOR]}


class Layer:
    def __init__(self) -> None:
        self.rng = np.random.default_rng()

    def noisy(self, x: Any) -> Any:
        return x + self.rng.random(3)


def enclosed() -> Callable[[Any], Any]:
    own = np.random.default_rng()
    return lambda x: x + own.standard_normal(x.shape)


OUTSIDE: dict[str, Callable[[Any], Any]] = {
    "global": lambda x: x + GENERATOR.random(3),
    "size of an axis": lambda x: x + GENERATOR.normal(0, 1, size=x.shape[1]),
    "size of the array": lambda x: x + GENERATOR.normal(size=x.shape),
    "in place": lambda x: (GENERATOR.shuffle(np.arange(3)), x)[1],
    "state": lambda x: x + STATE.rand(3),
    "state, normal": lambda x: x + STATE.normal(size=x.shape),
    "enclosed": enclosed(),
    "attribute": lambda x: LAYER.noisy(x),
    "item": lambda x: x + HELD["rng"][0].random(3),
    "handed on": lambda x: x + sum(map(GENERATOR.normal, [1.0, 2.0])),
}
FROZEN: dict[str, Callable[[Any], Any]] = {
    "unseeded state": lambda x: x + np.random.RandomState().rand(3),
    "unseeded bits": lambda x: x + np.random.Generator(np.random.PCG64()).random(3),
    "unseeded": lambda x: x + np.random.default_rng().random(3),
}


LAYER = Layer()
EVERY = [GENERATOR, LAYER.rng, STATE]


@pytest.mark.parametrize("name", OUTSIDE)
def test_every_run_draws_what_numpy_draws(name: str) -> None:
    function = OUTSIDE[name]
    compiled = tm.jit(function)
    own = inspect.getclosurevars(function).nonlocals.get("own")
    every = [*EVERY, *([] if own is None else [own])]
    for _ in range(3):
        before = copy.deepcopy(every)
        want = function(X)
        after = copy.deepcopy(every)
        for generator, was in zip(every, before):
            set_state(generator, state_of(was))
        np.testing.assert_array_equal(compiled(X), want)
        assert repr([state_of(g) for g in every]) == repr([state_of(g) for g in after])
    assert len(compiled.explain_recompiles()) == 1


def test_draws_of_code_without_source_are_refused() -> None:
    for text in ("x + rng.random(3)", "x + held[0].normal(size=3)"):
        for rng in (np.random.default_rng(0), np.random.RandomState(0)):
            names: dict[str, Any] = {"rng": rng, "held": [rng]}
            function = eval(f"lambda x: {text}", names)
            before = repr(state_of(rng))
            with pytest.raises(TypeError, match=r"\[TM106\](.|\n)*source is not at hand"):
                tm.jit(function)(X)
            assert repr(state_of(rng)) == before


@pytest.mark.parametrize("name", FROZEN)
def test_a_draw_that_would_be_frozen_is_refused(name: str) -> None:
    compiled = tm.jit(FROZEN[name])
    for _ in range(2):
        with pytest.raises(TypeError, match=r"\[TM106\](.|\n)*frozen"):
            compiled(X)


def test_a_generator_that_is_an_argument() -> None:
    compiled = tm.jit(lambda x, rng: x + rng.random(3))
    mine, numpys = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X, mine), X + numpys.random(3))
    other, numpys = np.random.default_rng(2), np.random.default_rng(2)
    np.testing.assert_array_equal(compiled(X, other), X + numpys.random(3))


SEEDED: dict[str, Callable[[Any], Any]] = {
    "generator": lambda x: x + np.random.default_rng(3).normal(size=x.shape),
    "state": lambda x: x + np.random.RandomState(3).normal(0, 2, size=x.shape[1]),
    "bits": lambda x: x + np.random.Generator(np.random.PCG64(5)).random(x.shape),
}


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_inside_draws_what_numpy_draws_at_every_size(name: str) -> None:
    function = SEEDED[name]
    compiled = tm.jit(function)
    for x in (X, X, np.ones((4, 5))):
        np.testing.assert_array_equal(compiled(x), function(x))
