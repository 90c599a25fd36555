"""Numbers outside a function that it counts up: refused with the line, never done once only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.errors import TraceError

pytestmark = pytest.mark.cpu

calls = 0
scale = 2.0
settings: dict[str, Any] = {"calls": 0, "rates": [1, 2]}


class Model:
    built_with: Any = None
    total = 0

    def __init__(self) -> None:
        self.count = 0
        self.depth = 0
        self.built = False

    def counting(self, x: Any) -> Any:
        self.count += 1  # here: attribute
        return x * 2

    def counting_in_full(self, x: Any) -> Any:
        self.count = self.count + 1  # here: written out
        return x * 2

    def class_default(self, x: Any) -> Any:
        self.total += 1.5  # here: class attribute
        return x * 2

    def through_a_method(self, x: Any) -> Any:
        return self.counting(x) + 1

    def up_and_down(self, x: Any) -> Any:
        self.depth += 1
        y = x * self.depth
        self.depth -= 1
        return y

    def build_once(self, x: Any) -> Any:
        if not self.built:
            self.built_with = x.ndim
            self.built = True
        return x * self.built_with


def global_count(x: Any) -> Any:
    global calls
    calls += 1  # here: global
    return x + 1


def global_in_full(x: Any) -> Any:
    global calls
    calls = calls + 1  # here: global in full
    return x + 1


def in_a_dict(x: Any) -> Any:
    settings["calls"] += 1  # here: dict
    return x + 1


def in_a_list(x: Any) -> Any:
    settings["rates"][0] = settings["rates"][0] * 2  # here: list
    return x + 1


def helper(x: Any) -> Any:
    return global_count(x) * 2


def enclosed() -> Callable[..., Any]:
    n = 0

    def act(x: Any) -> Any:
        nonlocal n
        n += 1  # here: nonlocal
        return x + n

    return act


def enclosed_helper() -> Callable[..., Any]:
    inner = enclosed()
    return lambda x: inner(x)


REFUSED: dict[str, tuple[Callable[..., Any], str, str]] = {
    "attribute": (Model().counting, "Model.count is changed from 0 to 1", "attribute"),
    "written out": (Model().counting_in_full, "Model.count is changed from 0 to 1", "written out"),
    "class": (Model().class_default, "Model.total is changed from 0 to 1.5", "class attribute"),
    "method": (Model().through_a_method, "Model.count is changed from 0 to 1", "attribute"),
    "global": (global_count, "the global calls is changed from 0 to 1", "global"),
    "global in full": (global_in_full, "the global calls is changed from 0 to 1", "global in full"),
    "in a helper": (helper, "the global calls is changed from 0 to 1", "global"),
    "dict": (in_a_dict, r"an item \['calls'\] is changed from 0 to 1", "dict"),
    "list": (in_a_list, r"an item \[0\] is changed from 1 to 2", "list"),
    "nonlocal": (enclosed(), "n of the enclosing function is changed from 0 to 1", "nonlocal"),
    "nonlocal in a helper": (
        enclosed_helper(), "n of the enclosing function is changed from 0 to 1", "nonlocal"
    ),
}  # fmt: skip


def line_of(mark: str) -> int:
    with open(__file__) as file:
        lines = [line.rstrip() for line in file]
    return next(n for n, line in enumerate(lines, 1) if line.endswith(f"# here: {mark}"))


@pytest.mark.parametrize("case", REFUSED)
def test_a_number_that_would_be_counted_once_is_refused_at_its_line(case: str) -> None:
    function, message, mark = REFUSED[case]
    compiled = tm.jit(function)
    for _ in range(2):  # it has its old value again
        with pytest.raises(TraceError, match=message) as got:
            compiled(np.ones(3))
        assert got.value.code == "TM107"
        assert f"test_outside_numbers.py:{line_of(mark)}" in str(got.value)
        assert "tm.Variable" in str(got.value)


def test_a_function_without_source_is_looked_at_too() -> None:
    space: dict[str, Any] = {"n": 1}
    exec("def act(x):\n    global n\n    n += 1\n    return x * n\n", space)
    with pytest.raises(TraceError, match="the global n is changed from 1 to 2"):
        tm.jit(space["act"])(np.ones(3))
    assert space["n"] == 1


def test_what_ends_as_it_began_and_what_is_made_at_the_first_call_is_no_error() -> None:
    model = Model()
    assert tm.jit(model.up_and_down)(np.ones(2)).tolist() == [1, 1]
    assert tm.jit(model.build_once)(np.ones(2)).tolist() == [1, 1]
    assert (model.depth, model.built_with) == (0, 1)


def test_a_counter_of_the_function_s_own_is_no_error() -> None:
    @tm.jit
    def act(x: Any) -> Any:
        n = 0

        def more() -> int:
            nonlocal n
            n += 1
            return n

        return x * (more() + more())

    assert act(np.ones(2)).tolist() == [3, 3]


def test_numbers_that_are_read_are_still_guarded() -> None:
    global scale
    act = tm.jit(lambda x: x * scale)
    assert act(np.ones(2)).tolist() == [2, 2]
    scale = 3.0
    assert act(np.ones(2)).tolist() == [3, 3]
    scale = 2.0


def test_plain_python_counts_under_disable_jit() -> None:
    model = Model()
    with tm.disable_jit():
        tm.jit(model.counting)(np.ones(2))
    assert model.count == 1


def test_a_variable_counts_every_call() -> None:
    n = tm.Variable(0)

    @tm.jit
    def act(x: Any) -> Any:
        n.assign_add(1)
        return x * n

    assert [act(np.ones(1))[0] for _ in range(3)] == [1, 2, 3]
