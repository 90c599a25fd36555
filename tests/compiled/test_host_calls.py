"""Calls of Python functions by compiled code.

Not here: prints (test_printing.py), the op without a frontend (tests/ir/test_host_call.py).
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tracemill as tm

pytestmark = pytest.mark.cpu
X = np.arange(6.0)


class Noted:
    """A function that notes what it was called with."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.calls: list[Any] = []

    def __call__(self, *args: Any) -> Any:
        self.calls.append(args)
        return self.function(*args)


def test_a_function_is_called_by_every_run_and_not_while_tracing() -> None:
    cosine = Noted(lambda k, x: np.cos(k * x))

    @tm.jit
    def f(x: Any) -> Any:
        y = tm.host_call(cosine, 2, x + 1, result=x)
        return (y * y).sum()

    f.lower(X)
    assert not cosine.calls
    for n in (6, 9, 0, 1, 9):
        x = np.arange(float(n))
        np.testing.assert_allclose(f(x), (np.cos(2 * (x + 1)) ** 2).sum(), rtol=1e-14)
        k, given = cosine.calls[-1]
        assert k == 2
        np.testing.assert_array_equal(given, x + 1)
    assert len(cosine.calls) == 5
    assert len(f.explain_recompiles()) <= 2  # one for the example, one for size 1


def test_nested_arguments_and_results_keep_their_kinds() -> None:
    def judged(given: Any) -> Any:
        assert type(given["n"]) is int
        assert type(given["total"]) is np.float64
        assert type(given["x"]) is np.ndarray
        assert given["text"] == "as it is"
        return {"m": given["total"] / given["n"], "at": (np.arange(3), True)}

    @tm.jit
    def f(x: Any, n: int) -> Any:
        declared = {"m": 0.0, "at": (tm.Spec(int, (3,)), True)}
        given = {"x": x, "n": n, "total": x.sum(), "text": "as it is"}
        made = tm.host_call(judged, given, result=declared)
        if made["at"][1]:
            return made["at"][0] * 2, made["m"]
        return made["at"][0], made["m"]

    doubled, mean = f(X, 6)
    np.testing.assert_array_equal(doubled, [0, 2, 4])
    assert (type(mean), mean) == (np.float64, 2.5)


def test_the_function_owns_what_it_is_given() -> None:
    kept: list[Any] = []

    def spoil(x: Any) -> Any:
        x += 100
        kept.append(x)
        return x * 2

    @tm.jit
    def f(x: Any) -> Any:
        made = tm.host_call(spoil, x, result=x)
        return made + x

    mine = X.copy()
    for _ in range(3):
        np.testing.assert_array_equal(f(mine), (X + 100) * 2 + X)
    np.testing.assert_array_equal(mine, X)
    for x in kept:
        np.testing.assert_array_equal(x, X + 100)


def test_calls_are_made_in_order_as_often_as_python_makes_them() -> None:
    said: list[Any] = []

    def say(word: str, at: Any = None) -> None:
        said.append((word, at))

    @tm.jit
    def f(x: Any) -> Any:
        tm.host_call(say, "begin", result=None)
        for i in range(len(x)):
            if x[i] > 2:
                tm.host_call(say, "large", i, result=None)
        tm.host_call(say, "end", result=None)
        tm.host_call(say, "end", result=None)

    for _ in range(2):
        said.clear()
        f(X)
        assert said == [("begin", None), *[("large", i) for i in (3, 4, 5)], *[("end", None)] * 2]


def test_results_steer_what_runs() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        count = 0
        while tm.host_call(lambda x: bool(x.sum() < 50), x, result=True):
            x = x * 2
            count += 1
        return x, count

    doubled, count = f(X)
    assert (doubled.sum(), count) == (60.0, 2)


def test_without_a_trace_it_is_a_call() -> None:
    assert tm.host_call(lambda x: x.sum(), X, result=0.0) == 15.0
    variable = tm.Variable(np.ones(3), name="v")
    made = tm.host_call(lambda v: v + 1, variable, result=np.zeros(3))
    np.testing.assert_array_equal(made, [2, 2, 2])
    compiled = tm.jit(lambda x: tm.host_call(lambda x, v: x[0] + v, x, variable, result=variable))
    with tm.disable_jit():
        np.testing.assert_array_equal(compiled(X), [1, 1, 1])
    np.testing.assert_array_equal(compiled(X), [1, 1, 1])


WRONG = {
    "dtype": (lambda x: x.astype(np.float32), "it returned float32 where float64 is declared"),
    "shape": (lambda x: x[:1], r"it returned shape \(1,\) where \(6,\) is declared"),
    "number": (lambda x: 3.0, r"it returned shape \(\) where \(6,\) is declared"),
    "complex": (lambda x: 3j, "it returned complex128 where float64 is declared"),
    "text": (lambda x: "a", "it returned <U1 where float64 is declared"),
    "object": (lambda x: object(), "it returned object where float64 is declared"),
    "nothing": (lambda x: None, r"it returned None where \* is declared"),
    "two": (lambda x: (x, x), r"it returned \(\*, \*\) where \* is declared"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_was_not_declared_is_refused(kind: str) -> None:
    function, text = WRONG[kind]

    def f(x: Any) -> Any:
        x[0] = 7
        return tm.host_call(function, x, result=x)

    x = X.copy()
    with pytest.raises(TypeError, match=rf"TM268.*{__file__}(.|\n)*{text}"):
        tm.jit(f)(x)
    np.testing.assert_array_equal(x, X)
    with pytest.raises(TypeError, match=rf"TM268(.|\n)*{text}"):
        f(x)


def test_numbers_must_fit() -> None:
    compiled = tm.jit(lambda x, n: tm.host_call(lambda n: n, n, result=tm.Spec(np.int8)) + x)
    assert compiled(np.int8(1), 100) == 101
    with pytest.raises(OverflowError):
        compiled(np.int8(1), 300)


def test_what_the_function_raises_is_raised() -> None:
    state = tm.Variable(np.zeros(6), name="s")

    def divide(x: Any, d: int) -> Any:
        return x / (1 // d)

    @tm.jit
    def f(x: Any, d: int) -> Any:
        state.assign(x)
        x[0] = 9
        return tm.host_call(divide, x, d, result=x)

    x = X.copy()
    with pytest.raises(ZeroDivisionError) as caught:
        f(x, 0)
    assert caught.value.__notes__ == [
        f"in the function that tm.host_call calls at {__file__}:"
        f"{f.__wrapped__.__code__.co_firstlineno + 4}, in f"
    ]
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(state.read(), np.zeros(6))
    np.testing.assert_array_equal(f(x, 1), [9, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(state.read(), X)


def test_an_interruption_ends_the_call() -> None:
    def interrupt(x: Any) -> Any:
        raise KeyboardInterrupt

    compiled = tm.jit(lambda x: tm.host_call(interrupt, x, result=x))
    with pytest.raises(KeyboardInterrupt):
        compiled(X)


def test_the_function_may_call_compiled_functions() -> None:
    inner = tm.jit(lambda x: np.exp(-x * x).sum())
    large = np.linspace(-3, 3, 300_000)

    @tm.jit
    def outer(x: Any) -> Any:
        return np.sin(x) * tm.host_call(inner, x * 2, result=0.0)

    want = np.sin(large) * np.exp(-4 * large * large).sum()
    np.testing.assert_allclose(outer(large), want, rtol=1e-12)
    made: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda at=at: made.update({at: outer(large)})) for at in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at in range(4):
        np.testing.assert_array_equal(made[at], outer(large))


@pytest.mark.parametrize("result", [int, "f8", object(), tm.Spec(float, (None,))])
def test_a_description_that_is_none(result: Any) -> None:
    compiled = tm.jit(lambda x: tm.host_call(np.sum, x, result=result))
    with pytest.raises(TypeError, match=r"TM268|TM210"):
        compiled(X)


def test_lanes_are_called_one_by_one() -> None:
    total = Noted(lambda row, k: row.sum() * k)

    @tm.jit
    def f(rows: Any) -> Any:
        return tm.vmap(lambda row: tm.host_call(total, row, 3, result=0.0) + row[0])(rows)

    for shape in ((3, 4), (5, 4), (0, 4)):
        total.calls.clear()
        rows = np.random.default_rng(0).standard_normal(shape)
        np.testing.assert_allclose(f(rows), rows.sum(axis=1) * 3 + rows[:, 0], rtol=1e-14)
        assert [row.shape for row, _ in total.calls] == [(4,)] * shape[0]


def test_lanes_that_do_not_take_a_branch_are_not_called() -> None:
    root = Noted(lambda v: v**0.5)

    def lane(v: Any) -> Any:
        return tm.cond(v > 0, lambda v: tm.host_call(root, v, result=0.0), lambda v: v * 0, v)

    values = np.array([4.0, -1.0, 9.0])
    np.testing.assert_array_equal(tm.jit(tm.vmap(lane))(values), [2, 0, 3])
    assert [v for (v,) in root.calls] == [4, 9]


def test_a_rule_of_the_user_s_gives_a_derivative() -> None:
    def plain(x: Any) -> Any:
        return tm.host_call(np.sin, x, result=x)

    with pytest.raises(tm.TracemillError, match=r"TM120(.|\n)*tm.custom_vjp gives the function"):
        tm.jit(tm.grad(lambda x: plain(x).sum()))(X)
    with pytest.raises(tm.TracemillError, match=r"TM120(.|\n)*tm.custom_jvp gives the function"):
        tm.jit(lambda x: tm.jvp(plain, (x,), (x,)))(X)
    ruled = tm.custom_vjp(plain)
    ruled.defvjp(lambda x: (plain(x), x), lambda x, g: (g * np.cos(x),))
    np.testing.assert_allclose(tm.jit(tm.grad(lambda x: ruled(x).sum()))(X), np.cos(X), rtol=1e-15)


def test_it_is_no_part_of_an_exported_library(tmp_path: Any) -> None:
    compiled = tm.jit(lambda x: tm.host_call(np.sum, x, result=0.0))
    with pytest.raises(tm.TracemillError, match=r"TM113(.|\n)*back into Python \(function='sum#"):
        compiled.export(tmp_path / "f.so", X)


def test_devices_pass_what_it_reads_and_gives() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        with tm.device("cpu:1"):
            y = x * 2
        return tm.host_call(lambda y: y + 1, y, result=y) * 3

    np.testing.assert_array_equal(f(X), (X * 2 + 1) * 3)


KEPT = """
import numpy as np
import tracemill as tm

def first(x): return x + 1
def second(x): return x * 2

@tm.jit
def f(x):
    a = tm.host_call({functions[0]}, x, result=x)
    return a + tm.host_call({functions[1]}, x, result=x)

print(f(np.arange(3.0)), f.explain_recompiles()[0].compiled)
"""


def test_a_kept_plan_calls_the_functions_of_this_process(run_python: Any, tmp_path: Any) -> None:
    cache = {"TRACEMILL_CACHE": str(tmp_path)}
    for functions, want in (
        (("first", "second"), "[1. 4. 7.] 1"),
        (("first", "second"), "[1. 4. 7.] 0"),
        (("second", "first"), "[1. 4. 7.] 0"),
        (("second", "second"), "[0. 4. 8.] 0"),
    ):
        shown = run_python(KEPT.format(functions=functions), **cache)
        assert shown.strip() == want


SHAPED = [
    lambda b: tm.host_call(np.transpose, b, result=b.T).reshape(-1),
    lambda b: np.reshape(tm.host_call(np.transpose, b, result=b.T), (b.shape[0], -1)),
    lambda b: tm.host_call(np.transpose, b @ b.T, result=b @ b.T)[..., None],
    lambda b: tm.host_call(np.transpose, b.reshape(-1)[:, None], result=b.reshape(1, -1))[0],
    lambda b: [(v := tm.host_call(np.transpose, b, result=b.T)), v.reshape(-1), v[None], v.T],
    lambda b: tm.host_call(lambda x: x.ravel() * 2, b, result=b.reshape(-1)).reshape(b.shape),
]


@pytest.mark.parametrize("function", SHAPED)
def test_results_are_declared_before_they_are_reshaped(function: Any) -> None:
    """Plain NumPy is the same function with calls made at once."""
    wide = np.arange(48.0).reshape(6, 8)
    for b in (wide, wide[::2, ::2], wide.T, wide[::-1], wide[:, :1]):
        got = tm.jit(function)(b)
        with tm.disable_jit():
            want = function(b)
        for mine, theirs in zip(got, want, strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_result_is_written_where_it_is_assigned() -> None:
    def doubled(b: Any) -> None:
        b[...] = tm.host_call(lambda x: x * 2, b, result=b)
        b[0] = tm.host_call(lambda x: x + 1, b[1], result=b[1])
        b.reshape(-1)[:2] = tm.host_call(np.ravel, b[:1, :2], result=b[0, :2])

    for shape in (np.s_[:], np.s_[:, :], np.s_[::2, ::2]):
        mine, theirs = (np.arange(48.0).reshape(6, 8) for _ in range(2))
        tm.jit(doubled)(mine[shape])
        with tm.disable_jit():
            doubled(theirs[shape])
        np.testing.assert_array_equal(mine, theirs)
