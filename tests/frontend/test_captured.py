"""What a function reads from outside is never stale: arrays are inputs, values are guarded."""

from __future__ import annotations

from typing import Any

import numpy as np

from traced import assert_equal, trace_function
from tracemill.tracing.guards import CaptureGuard

scale = 2.0
table = np.arange(3.0)
unused = 5


def broken(call: Any, *args: Any) -> str | None:
    found = call.broken_guard(args)
    return found if found is None else found.split(" is ")[0]


def test_a_global_number_and_a_global_function_are_guarded(monkeypatch: Any) -> None:
    call = trace_function(lambda x: x * scale + len(x), np.ones(3))
    assert broken(call, np.ones(3)) is None
    monkeypatch.setitem(globals(), "scale", 3.0)
    assert broken(call, np.ones(3)) == f"global scale of {__name__}"
    monkeypatch.setitem(globals(), "scale", 2)
    assert broken(call, np.ones(3)) == f"global scale of {__name__}"
    monkeypatch.setitem(globals(), "unused", 6)
    monkeypatch.setitem(globals(), "scale", 2.0)
    assert broken(call, np.ones(3)) is None


def test_a_captured_array_is_an_input_and_seen_when_it_changes(monkeypatch: Any) -> None:
    call = trace_function(lambda x: x + table, np.ones(3))
    (item,) = [i for i in call.result.inputs if i.kind == "captured"]
    assert (item.name, item.value) == ("table", table) or item.value is table
    changed = table.copy()
    table[0] = 7
    assert_equal(call(np.ones(3)), np.array([8.0, 2.0, 3.0]))
    table[...] = changed
    monkeypatch.setitem(globals(), "table", np.arange(4.0))
    assert broken(call, np.ones(3)) == f"global table of {__name__}"


def test_closure_cells_attributes_and_containers_are_guarded() -> None:
    class Config:
        rate = 0.5

    config = Config()
    factors = [1.0, 2.0]
    settings = {"bias": 3, "w": np.ones(3), "layers": [np.ones(3), np.zeros(3)]}
    power = 2

    def function(x: Any) -> Any:
        for layer in settings["layers"]:
            x = x * settings["w"] + layer
        return x**power * config.rate * factors[0] + settings["bias"]

    call = trace_function(function, np.ones(3))
    assert broken(call, np.ones(3)) is None
    config.rate = 0.25
    assert (broken(call, np.ones(3)) or "").endswith(".rate")
    config.rate = 0.5
    factors[1] = 9.0
    assert (broken(call, np.ones(3)) or "").startswith("factors of ")
    factors[1] = 2.0
    settings["bias"] = 4
    assert "['bias']" in (broken(call, np.ones(3)) or "")
    settings["bias"] = 3
    settings["layers"].append(np.ones(3))  # type: ignore[attr-defined]
    assert "layers" in (broken(call, np.ones(3)) or "")
    settings["layers"].pop()  # type: ignore[attr-defined]
    power = 3
    assert (broken(call, np.ones(3)) or "").startswith("power of ")


def test_objects_passed_as_static_arguments_are_guarded_by_their_attributes() -> None:
    class Model:
        def __init__(self) -> None:
            self.w, self.k = np.ones(3), 2

        def __call__(self, x: Any) -> Any:
            return x * self.w + self.k

    model = Model()
    call = trace_function(lambda x, m: m(x), np.ones(3), model)
    assert_equal(call(np.ones(3), model), np.full(3, 3.0))
    model.k = 5
    assert broken(call, np.ones(3), model) is not None
    assert any(isinstance(g, CaptureGuard) and g.path.endswith(".k") for g in call.result.guards)


def test_objects_made_while_tracing_are_not_guarded() -> None:
    class Local:
        def __init__(self, x: Any) -> None:
            self.x, self.n, self.items = x, 3, [1, 2]

    def function(x: Any) -> Any:
        local = Local(x)
        local.n += 1
        return local.x * local.n + local.items[0]

    guards: Any = trace_function(function, np.ones(3)).result.guards
    paths = [guard.path for guard in guards]
    assert not [path for path in paths if path.endswith((".n", ".x", ".items"))]


def test_read_only_arrays_become_constants() -> None:
    fixed = np.arange(3.0)
    fixed.flags.writeable = False
    result = trace_function(lambda x: x + fixed, np.ones(3)).result
    assert [item.kind for item in result.inputs] == ["argument"]


def test_scalar_arguments_stay_run_time_inputs_until_python_needs_their_value() -> None:
    call = trace_function(lambda x, h: x * h + h**2, np.ones(3), 2.0)
    assert not call.result.guards
    for h in (1.0, 3.5, -0.0):
        assert_equal(call(np.ones(3), h), np.ones(3) * h + h**2)
    call = trace_function(lambda x, k, f: x * k if f else [x] * k, np.ones(3), 2, False)
    assert [g.text for g in call.result.guards] == ["argument 2 == False", "argument 1 == 2"]
    assert_equal(call(np.ones(3), 2, False), [np.ones(3)] * 2)
    assert broken(call, np.ones(3), 3, False) == "argument 1 == 2"
    assert broken(call, np.ones(3), 2, 0) == "argument 2 == False"
