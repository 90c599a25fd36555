"""What a function puts into the dicts, lists and dataclasses it is given, its caller sees."""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu


@dataclasses.dataclass
class State:
    w: Any
    t: int
    inner: dict[str, Any]


def adam(params: dict[str, Any], gradients: dict[str, Any], state: dict[str, Any]) -> Any:
    state["t"] += 1
    for key in params:
        state["m"][key] = 0.9 * state["m"][key] + 0.1 * gradients[key]
        state["v"][key] = 0.99 * state["v"][key] + 0.01 * gradients[key] ** 2
        mean = state["m"][key] / (1 - 0.9 ** state["t"])
        scale = np.sqrt(state["v"][key] / (1 - 0.99 ** state["t"])) + 1e-8
        params[key] = params[key] - 0.1 * mean / scale
    return params


def step(state: State) -> int:
    state.w = state.w * 2
    state.t += 1
    state.inner["z"] = state.w + 1
    return state.t


def count(d: dict[str, Any]) -> Any:
    d["n"] += 1
    d["a"] = d["a"] + 1
    return d["n"]


def moments() -> dict[str, Any]:
    return {"a": np.arange(6.0).reshape(2, 3), "b": np.ones(4)}


def with_default() -> dict[str, Any]:
    return defaultdict(float, a=np.ones(2))


CASES: dict[str, tuple[Any, ...]] = {
    "adam": (adam, moments(), moments(), {"t": 0, "m": moments(), "v": moments()}),
    "new and gone": (lambda d: d.update(new=d.pop("a") * 2), moments()),
    "another order": (lambda d: d.__setitem__("a", d.pop("a") + 1), moments()),
    "clear": (lambda d: d.clear(), moments()),
    "swap": (lambda d: d.update(a=d["b"], b=d["a"]), moments()),
    "into an empty dict": (lambda d, x: d.__setitem__("k", x + 1), {}, np.ones(2)),
    "dict in dict": (
        lambda d: d.__setitem__("a", {"b": d["a"]["b"] + 1}),
        {"a": {"b": np.ones(2)}},
    ),
    "append": (lambda items, x: items.append(x * 2), [1.0, 2.0], np.arange(3.0)),
    "insert": (lambda items, x: items.insert(0, x), [1.0, np.ones(2)], np.arange(3.0)),
    "pop": (lambda items: items.pop(0), [1.0, np.ones(2)]),
    "reverse": (lambda items: items.reverse(), [1.0, np.ones(2), 3]),
    "deep": (lambda d: d["a"]["b"].append(d["a"]["c"] * 2), {"a": {"b": [], "c": np.ones(2)}}),
    "in a tuple": (lambda t: t[0].__setitem__("a", 1), ({"a": np.ones(2)}, 3)),
    "dataclass": (step, State(np.ones(2), 0, {"z": np.zeros(2)})),
    "ordered": (lambda d: d.move_to_end("a"), OrderedDict(a=np.ones(2), b=2.0)),
    "default": (count, with_default()),
}


def equal(got: Any, want: Any) -> None:
    """Equal types, structure, order and values."""
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            equal(got[key], want[key])
    elif isinstance(want, list | tuple):
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            equal(a, b)
    elif dataclasses.is_dataclass(want):
        equal(vars(got), vars(want))
    elif isinstance(want, np.ndarray | np.generic):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    else:
        assert got == want


@pytest.mark.parametrize("name", CASES)
def test_containers_are_left_as_plain_python_leaves_them(name: str) -> None:
    function, *arguments = CASES[name]
    compiled = tm.jit(function)
    for _ in range(3):
        mine, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        equal(compiled(*mine), function(*theirs))
        equal(mine, theirs)


def test_a_loop_of_steps_trains() -> None:
    mine, theirs = ((moments(), {"t": 0, "m": moments(), "v": moments()}) for _ in range(2))
    compiled = tm.jit(adam)
    for _ in range(10):
        compiled(mine[0], moments(), mine[1])
        adam(theirs[0], moments(), theirs[1])
    equal(mine, theirs)
    assert len(compiled.explain_recompiles()) == 1


def test_entries_that_are_not_rebound_stay_the_objects_they_were() -> None:
    inner, array, given = {"q": np.ones(2)}, np.zeros(3), np.ones(3)
    d = {"a": inner, "x": array, "y": 0}

    @tm.jit
    def move(d: dict[str, Any], given: Any) -> None:
        d["x"] += 1
        d["b"] = d["a"]
        d["y"] = given

    move(d, given)
    assert d["a"] is inner
    assert d["b"] is inner
    assert d["x"] is array
    assert d["y"] is given
    assert array.tolist() == [1, 1, 1]


def test_arrays_that_are_brought_into_normal_form_do_not_hide_the_dict() -> None:
    class Labelled(np.ndarray):  # type: ignore[type-arg]
        pass

    d = {"a": np.ones(2).view(Labelled), "found": [1]}
    found = d["found"]

    @tm.jit
    def act(d: dict[str, Any]) -> None:
        d["n"] = d["a"] * 2
        d["found"].append(3)

    act(d)
    assert d["n"].tolist() == [2, 2]
    assert d["found"] is found
    assert found == [1, 3]


def test_what_cannot_be_reached_is_refused() -> None:
    with pytest.raises(TypeError, match=r"\[TM105\].*\n?.*deque"):
        tm.jit(lambda d: d[0] + 1)(deque([np.ones(2)]))
    with pytest.raises(NotImplementedError, match=r"puts something into a dict.*'k'"):
        tm.jit(lambda d: d.__setitem__("k", 1)).export("unused.so", {"a": np.ones(2)})


@pytest.mark.parametrize(
    "function", [lambda d: d.__setitem__("k", 1), lambda d: d["a"].__setitem__(0, 1.0)]
)
def test_a_program_refuses_functions_that_change_what_they_are_fed(function: Any) -> None:
    program = tm.Program(act=function)
    with pytest.raises(TypeError, match="'act' changes an array, dict or list"):
        program.run("act", {"d": {"a": np.ones(2)}})
