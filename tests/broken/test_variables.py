"""Variables where other objects are expected."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import deque
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.runtime.store import VariableStore

pytestmark = pytest.mark.cpu


def test_a_variable_passed_as_an_argument_is_itself_however_equal_another_one_is() -> None:
    first, second = tm.Variable(1.0), tm.Variable(1.0)
    rows = tm.Variable(np.ones(3)), tm.Variable(np.ones(3))

    @tm.jit
    def grow(variable: Any, by: float) -> Any:
        variable.assign_add(by)
        return variable.read()

    for round_ in range(1, 4):
        assert grow(first, 1.0) == 1 + round_
        assert grow(second, 1.0) == 1 + round_
        assert [grow(row, 1.0)[0] for row in rows] == [1 + round_] * 2
    assert (first.read(), second.read()) == (4, 4)


def test_a_variable_in_a_container_is_told_apart_from_an_equal_one() -> None:
    first, second = tm.Variable(1.0), tm.Variable(1.0)
    queue = deque([first])
    double = tm.jit(lambda x: x * 2 * queue[0])
    assert double(1.0) == 2
    queue[0] = second
    assert double(1.0) == 2
    second.assign(4.0)
    assert double(1.0) == 8


def test_a_variable_without_axes_stands_for_its_number() -> None:
    variable = tm.Variable(2.5)
    assert (bool(variable), int(variable), float(variable), complex(variable)) == (
        True,
        2,
        2.5,
        2.5,
    )
    assert not tm.Variable(0.0)
    with pytest.raises(TypeError, match="unsized"):
        len(variable)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(tm.Variable(np.ones(2)))
    assert tm.jit(lambda x: x if variable else -x)(1.0) == 1.0


def test_what_a_variable_cannot_be_is_said() -> None:
    variable = tm.Variable(np.zeros(2), name="broken/plain")
    for value in (None, "text", [object()] * 2):
        with pytest.raises(TypeError, match=r"\[TM210\].*\n.*cannot hold"):
            variable.assign(value)
    with pytest.raises(TypeError, match=r"cannot be copied; make another"):
        copy.deepcopy({"w": variable})
    with pytest.raises(TypeError, match=r"cannot be pickled; write it with tm.save"):
        pickle.dumps(variable)


def test_only_variables_are_saved(tmp_path: Any) -> None:
    variable = tm.Variable(np.zeros(2))
    with pytest.raises(TypeError, match="a list of Variables is needed"):
        tm.save(tmp_path / "c", variable)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got a ndarray among them"):
        tm.save(tmp_path / "c", [np.zeros(2)])  # type: ignore[list-item]


def _buffer(variable: tm.Variable) -> weakref.ref[Any]:
    """The memory that a variable's value lies in."""
    return weakref.ref(variable.store.cell(variable.name).array)


def test_a_variable_nobody_refers_to_gives_its_memory_back() -> None:
    store = VariableStore()
    w = tm.Variable(np.ones(1000), name="gone", store=store)
    memory = _buffer(w)
    w.assign(np.zeros(1000))
    assert store.names() == ["gone"]
    del w
    gc.collect()
    assert store.names() == []
    assert memory() is None
    assert tm.Variable(2.0, name="gone", store=store).read() == 2


def _accumulate(w: tm.Variable) -> Any:
    @tm.jit
    def act(x: Any) -> Any:
        w.assign_add(x)
        return w.read()

    return act


def test_a_compiled_function_keeps_its_variables_as_long_as_it_lives() -> None:
    store = VariableStore()
    act = _accumulate(tm.Variable(np.ones(100), name="held", store=store))
    memory = weakref.ref(store.cell("held").array)
    act(np.ones(100))
    gc.collect()
    assert store.names() == ["held"]
    assert act(np.ones(100))[0] == 3
    del act
    gc.collect()
    assert store.names() == []
    assert memory() is None


def _trained(store: VariableStore) -> Any:
    w = tm.Variable(np.ones(10), name="w", store=store)
    optimiser = tm.optim.Adam([w], lr=0.1)

    @tm.jit
    def step(x: Any) -> Any:
        loss = (w * x).sum()
        optimiser.apply(tm.gradients(loss, [w]))
        return loss

    step(np.ones(10))
    return step


def test_a_training_step_and_its_optimiser_leave_nothing_behind() -> None:
    store = VariableStore()
    step = _trained(store)
    memories = [weakref.ref(store.cell(name).array) for name in store.names()]
    assert len(memories) > 1
    del step
    gc.collect()
    assert store.names() == []
    assert [memory() for memory in memories] == [None] * len(memories)
