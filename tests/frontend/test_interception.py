"""The user's own functions, wherever they are, see traced creation functions and builtins."""

from __future__ import annotations

import functools
import importlib
import linecache
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import traced_callee
import tracemill as tm
from traced import assert_equal, assert_same, trace_function
from traced_callee import Model, shifted
from tracemill.compiler.errors import TraceError

X = np.arange(4.0) + 0.5


def test_a_helper_in_another_module_is_traced_for_all_sizes() -> None:
    def function(x: Any) -> Any:
        return shifted(x) + 1

    call = trace_function(function, np.arange(8.0))
    for size in (3, 9, 50):
        x = np.arange(float(size)) ** 2
        assert_equal(call(x), function(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: traced_callee.scaled(x),
        lambda x: traced_callee.network(x),
        lambda x: Model(4)(x),
        lambda x: Model(len(x)).forward(x),
        lambda x: functools.partial(lambda a, b: np.zeros(len(a)) + b, x)(b=x),
        lambda x: list(map(lambda q: np.full(q.shape, 2.0) * q, [x, x + 1])),  # noqa: C417
        lambda x: {"f": lambda q: np.ones(q.shape) * q}["f"](x),
        lambda x: functools.reduce(lambda a, b: a + np.zeros(len(b)), [x, x, x]),
        lambda x: sorted([3, 1, 2], key=lambda n: -n)[0] * x,
        lambda x: [np.zeros(n.shape) + n for n in (x, x[1:])],
        lambda x: sum(np.full(2, v) for v in x),
        lambda x: math.sqrt(x.sum()) + math.sin(x[0]) + math.floor(x[1]) + math.pi,
        lambda x: (math.exp(x[0]), math.hypot(x[0], x[1]), math.log(x[1], 2.0), math.isnan(x[0])),
        lambda x: (float(x[0]), int(x[1]), complex(x[2]), bool(x[0] > 0) if False else 1),
        lambda x: (max(x[0], x[1], 0.7), min(2, x[1]), max(x), round(x[1]), abs(-x[0])),
        lambda x: (isinstance(x, np.ndarray), type(x) is np.ndarray, isinstance(x.sum(), float)),
        lambda x: np.array([[x[0], 0], [1, x[1]]]) @ np.array([1.0, 2.0]),
        lambda x: np.float32(x[0]) + np.int64(3),
        lambda x: np.prod((2, 3)) * x + np.sqrt(2.0),
        lambda x: [v * i for i, v in enumerate(x)],
        lambda x: x.reshape(2, -1).shape + (len(x), x.size),
    ],
)
def test_callables_of_every_kind_are_intercepted(function: Any) -> None:
    assert_same(function, X)


def test_closures_generators_and_nested_functions_are_intercepted() -> None:
    scale = 2.0
    weights = np.arange(4.0)

    def function(x: Any) -> Any:
        def inner(q: Any, n: int = 2) -> Any:
            return np.zeros(q.shape) + scale * n + weights

        parts = (inner(q) for q in (x, x * 2))
        first, second = parts
        total = np.zeros(len(x))
        for i in range(x.shape[0]):
            total[i] = first[i] + second[-1 - i]
        while total.ndim < 2:
            total = total[None]
        return total

    assert_same(function, X)


def test_a_class_with_a_method_of_its_own_is_intercepted() -> None:
    class Local:
        def __init__(self, x: Any) -> None:
            self.first = np.zeros(x.shape)
            self.first[0] = x[0]

        def both(self) -> Any:
            return self.first + self.__other()

        def __other(self) -> Any:
            return np.ones(len(self.first))

    assert_same(lambda x: Local(x).both(), X)


def test_code_without_source_runs_on_substituted_globals() -> None:
    space: dict[str, Any] = {"table": np.arange(4.0)}
    text = """
import numpy as np, math
from numpy import zeros
def function(x, d=2.0):
    out = zeros(x.shape)
    out[1:] = x[1:]
    return out * len(x) + table[0] + math.sqrt(x[1]) + np.full(4, d), float(x[0]), table + 1
"""
    exec(text, space)
    assert_same(space["function"], X)


def test_names_of_the_program_name_the_values() -> None:
    def function(x: Any) -> Any:
        hidden = np.tanh(x)
        low, high = hidden - 1, hidden + 1
        return low * high

    graph = trace_function(function, X).result.graph
    assert {"hidden", "low", "high"} <= {node.results[0].name for node in graph.nodes}


def test_nodes_carry_the_user_s_file_line_and_function() -> None:
    graph = trace_function(lambda x: shifted(x), X).result.graph
    places = {(n.location.function, n.location.file) for n in graph.nodes if n.location}
    assert ("shifted", traced_callee.__file__) in places


def test_an_exception_of_the_function_passes_through_and_the_next_trace_works() -> None:
    with pytest.raises(RuntimeError, match="no use for 1 axes") as caught:
        trace_function(traced_callee.broken, X)
    assert "raise RuntimeError" in str(caught.traceback[-1].statement)
    assert_same(lambda x: x + 1, X)


def test_a_rewritten_function_that_outlives_its_trace_is_an_ordinary_function() -> None:
    kept: list[Any] = []

    def function(x: Any) -> Any:
        def inner(q: Any) -> Any:
            values = {"a": np.zeros(3)}
            values["a"][0] = q
            return values["a"] + len(values)

        kept.append(inner)
        return x

    trace_function(function, X)
    np.testing.assert_array_equal(kept[0](5.0), [6.0, 1.0, 1.0])


def test_the_global_random_state_is_refused() -> None:
    with pytest.raises(TraceError, match="global random state"):
        trace_function(lambda x: x + np.random.rand(4), X)
    assert_same(lambda x: x + np.random.default_rng(0).normal(size=4), X)


def test_what_a_file_says_by_now_is_not_the_source_of_what_was_loaded_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "edited_since.py"
    text = "import numpy as np\n\ndef f(x):\n    return np.sin(x) + 1\n\ng = lambda x: x * 2\n"
    file.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("edited_since")
    file.write_text(text.replace("+ 1", "- 100").replace("* 2", "* 200"))
    linecache.checkcache()
    assert tm.jit(module.f)(0.0) == 1
    assert tm.jit(module.g)(3.0) == 6


def test_lines_of_a_long_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of code so long that its lines are kept in a table."""
    count = 700
    steps = "".join(f"    x = (x +\n         {i}.5)\n\n" for i in range(count))
    (tmp_path / "long_function.py").write_text(f"def f(x):\n{steps}    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    function = importlib.import_module("long_function").f
    graph = tm.jit(function).lower(np.ones(3)).graph
    lines = [node.location.line for node in graph.nodes if node.op.name == "add"]
    assert lines == [2 + 3 * i for i in range(count)]
