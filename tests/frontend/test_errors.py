"""Errors say the user's line, what was got, and what to write instead."""

from __future__ import annotations

import math
import re
import threading
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from traced import trace_function
from tracemill.compiler.errors import DTypeError, TraceError, TracemillError, UnsupportedError

X = np.arange(4.0)


def message(function: Any, *args: Any) -> str:
    """The text of the error, its place without folder and line number."""
    with pytest.raises(TracemillError) as caught:
        trace_function(function, *args)
    text = str(caught.value)
    return re.sub(r" at \S*/(\w+\.py):\d+", r" at \1", text)


def branch(x: Any) -> Any:
    seen = len(locals())
    if x.sum() > 0:
        return x
    return -x * seen


def loop(x: Any) -> Any:
    seen = len(locals())
    while np.any(x > 1):
        x = x / 2
    return x * seen


def test_an_if_that_cannot_be_moved_names_the_line_the_reason_and_what_to_write() -> None:
    assert message(branch, X) == (
        "TraceError [TM101] at test_errors.py, in branch\n"
        "  `if` needs to know whether <traced bool[] %greater> is true while the function "
        "is traced\n"
        "      if x.sum() > 0:\n"
        "  its value is known only when the compiled function runs; this statement cannot be moved "
        "into the graph: what it stands in has `yield`, `await`, a class, `global` or locals() in "
        "it\n"
        "  hint: write it in a function without them, or tm.cond(condition, f, g) and "
        "tm.while_loop(test, body, initial)"
    )


def test_a_while_that_cannot_be_moved_names_the_loop_to_write() -> None:
    text = message(loop, X)
    assert "`while` needs to know" in text
    assert "tm.while_loop(test, body, initial)" in text


def test_a_number_asked_of_a_traced_value_says_which_conversion() -> None:
    text = message(lambda x: [1, 2, 3][x[0].astype(int)], X)
    assert text.startswith("TraceError [TM102] at test_errors.py, in <lambda>\n  index() needs")
    assert "pass the number as a static argument" in text
    assert "[TM102]" in message(lambda x: np.zeros(x[0].astype(int)), X)
    assert "[TM102]" in message(lambda x: np.arange(x[0]), X)
    assert "[TM102]" in message(lambda x: x.tolist(), X)


def test_a_number_to_be_formatted_is_shown_by_tm_print() -> None:
    assert 'hint: show it with tm.print("{:.3f}", x)' in message(lambda x: f"{x.sum():.1f}", X)


def test_advice_names_only_what_there_is() -> None:
    for function in (branch, loop, lambda x: max(x, 0), lambda x: np.union1d(x, x),
                     lambda x: np.unique(x)):  # fmt: skip
        for name in re.findall(r"\btm\.(\w+)", message(function, X)):
            assert hasattr(tm, name), name


def test_a_result_of_unknown_size_is_refused_at_the_line_of_its_mask() -> None:
    def positive(x: Any) -> Any:
        return x[x > 0]

    assert message(positive, X).startswith(
        "UnsupportedError [TM112] at test_errors.py, in positive"
    )


def test_an_unsupported_function_names_what_does_its_work_and_not_what_is_spelt_like_it() -> None:
    for function, named, other in (
        (lambda x: np.setdiff1d(x[0], [1]), "np.isin", "np.union1d"),
        (lambda x: np.array_str(x), "tm.print", "np.array_split"),
        (lambda x: np.ma.sum(x), "where=mask", "np.ma.sum is"),
        (lambda x: np.roots(x[0]), "call it before or after", "np.round"),
        (lambda x: np.frompyfunc(lambda v: v, 1, 1)(x), "np.where chooses", "np.<lambda>"),
        (lambda x: np.argwhere(x), "np.where with three arguments", "np.argsort"),
        (lambda x: np.polymul(x[0], x[0]), "np.convolve", "np.polyval"),
        (lambda x: np.matrix(x), "plain arrays", "object arrays"),
        (lambda x: list(np.nditer(x)), "whole arrays", "WRITEBACK"),
    ):
        text = message(function, X)
        assert named in text
        assert other not in text


def test_an_array_that_cannot_be_compiled_is_named() -> None:
    act = tm.jit(lambda tree, x: x)
    for wrong, name in ((np.ones(2, ">f4"), "x"), (np.ma.ones(2), "x"), (np.array(["a"]), "x")):
        with pytest.raises(DTypeError, match=rf"\[TM210\](.|\n)*  {name} is an? "):
            act({}, wrong)
    with pytest.raises(DTypeError, match=r"  tree\['w'\]\[1\] is an array of object"):
        act({"w": [1, np.array([None])]}, 1)


def test_a_python_integer_that_does_not_fit_is_told() -> None:
    for number in (2**70, -(2**63) - 1):
        text = message(lambda x, n=number: x + n, np.ones(2, int))
        assert f"Python integer {number} out of bounds for int64" in text


def test_misfits_say_what_the_sizes_are_in_this_call() -> None:
    assert "in this call n is 4" in message(lambda x: x.reshape(3, 5), np.ones(4))
    assert "in this call m is 5" in message(lambda x, y: x @ y, np.ones((5, 4)), np.ones(5))


def test_an_unsupported_function_says_what_to_do() -> None:
    assert message(lambda x: np.array_repr(x), X) == (
        "UnsupportedError [TM110] at test_errors.py, in <lambda>\n"
        "  np.array_repr is not supported in a compiled function\n"
        "  hint: tm.print('{}', x) shows values when the function runs; call it after for the text"
    )
    for function in (
        lambda x: np.roots(x[0]),
        lambda x: np.array2string(x),
        lambda x: np.einsum_path("ij->j", x),
    ):
        with pytest.raises(UnsupportedError):
            trace_function(function, X)


def test_shapes_that_do_not_fit_are_shown() -> None:
    text = message(lambda x, y: x + y, np.ones(4), np.ones(5))
    assert text.startswith("ShapeError [TM204] at test_errors.py, in <lambda>\n")
    assert "got [n] and [m]" in text
    for function in (
        lambda x, y: x @ y,
        lambda x, y: np.concatenate([x[None], y[None]]),
        lambda x, y: np.stack([x, y]),
        lambda x, y: x.reshape(3, 3),
        lambda x, y: np.dot(x, y),
        lambda x, y: np.einsum("i,i", x, y),
        lambda x, y: np.broadcast_to(x, (3, 5)),
    ):
        with pytest.raises(ValueError) as caught:
            trace_function(function, np.ones(4), np.ones(5))
        assert "test_errors.py" in str(caught.value)


@pytest.mark.parametrize("axis", [1, -2, 7, 2**31, -(2**63)])
def test_an_axis_that_is_not_there_is_an_axis_error(axis: int) -> None:
    for function in (
        lambda x: x.sum(axis=axis),
        lambda x: np.mean(x, axis=axis),
        lambda x: np.argmax(x, axis=axis),
        lambda x: np.expand_dims(x, axis + 1 if axis > 0 else axis - 1),
        lambda x: np.concatenate([x, x], axis=axis),
        lambda x: np.flip(x, axis),
        lambda x: np.cumsum(x, axis),
    ):
        with pytest.raises(np.exceptions.AxisError):
            trace_function(function, X)


def test_a_leaked_value_says_where_it_was_made() -> None:
    leak: list[Any] = []
    trace_function(lambda x: leak.append(x + 1) or x, X)
    assert repr(leak[0]) == "<traced f64[n] %add, its trace has ended>"
    for use in (lambda: leak[0] + 1, lambda: np.sin(leak[0]), lambda: bool(leak[0][0] > 0)):
        with pytest.raises(TraceError, match="after that trace has ended") as caught:
            use()
        assert "test_errors.py" in str(caught.value)
    with pytest.raises(TraceError, match="after that trace has ended"):
        trace_function(lambda x: x + leak[0], X)
    with pytest.raises(TraceError, match="after that trace has ended"):
        np.asarray(leak[0])


def test_a_traced_value_stored_in_an_object_from_outside_is_refused_at_once() -> None:
    class Model:
        state: Any = None

    model = Model()

    def function(x: Any) -> Any:
        model.state = x + 1
        return x

    with pytest.raises(TraceError, match=r"tm\.Variable"):
        trace_function(function, X)


def test_what_cannot_be_part_of_a_computation_is_named() -> None:
    with pytest.raises(TraceError, match="dict objects"):
        trace_function(lambda x: np.add(x, {}), X)
    for array in (
        np.array(["a"]),
        np.array([1], object),
        np.array([1], ">f8"),
        np.array(["2020-01-01"], "M8[D]"),
    ):
        with pytest.raises(DTypeError, match="cannot be compiled"):
            trace_function(lambda x, a=array: (x, np.asarray(a)), X)
    with pytest.raises(TypeError):
        trace_function(lambda x: x + "a", X)


def test_integers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(OverflowError):
        trace_function(lambda x, k: x * k, X, 2**64)
    with pytest.raises(OverflowError):
        trace_function(lambda k: k + 2**64, np.arange(3))


def test_bad_shapes_counts_and_steps_raise_as_in_numpy() -> None:
    for function, kind in (
        (lambda x: np.zeros((2, -1)), ValueError),
        (lambda x: x.reshape(-1, -1), ValueError),
        (lambda x: x[:: np.int64(0)], ValueError),
        (lambda x: np.arange(1, 5, 0), ZeroDivisionError),
        (lambda x: np.split(x, 3), ValueError),
        (lambda x: np.split(x, 0), ValueError),
        (lambda x: np.concatenate([]), ValueError),
        (lambda x: np.stack([]), ValueError),
        (lambda x: np.transpose(x, (0, 0)), ValueError),
        (lambda x: np.pad(x, -1), ValueError),
        (lambda x: np.zeros((2**31, 2**31, 2)), MemoryError),
        (lambda x: np.argmax(np.zeros(0)), ValueError),
        (lambda x: np.max(np.zeros((0, 3)), axis=0), ValueError),
        (lambda x: x @ 2.0, ValueError),
        (lambda x: np.einsum("ij->i", x), ValueError),
        (lambda x: np.einsum("i->ii", x), ValueError),
        (lambda x: np.squeeze(x, 0), ValueError),
        (lambda x: x.sum(where=x > 0, axis=(0, 0)), ValueError),
        (lambda x: np.max(x, where=x > 0), ValueError),
        (lambda x: x.foo, AttributeError),
        (lambda x: int(x), TypeError),
        (lambda x: np.full(3, "a"), TypeError),
    ):
        with pytest.raises(kind):
            trace_function(function, X)


def test_two_threads_trace_side_by_side() -> None:
    results: list[Any] = []

    def work(k: int) -> None:
        call = trace_function(lambda x: np.zeros(x.shape) + x * k, X)
        results.append((k, call(X)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    for k, result in results:
        np.testing.assert_array_equal(result, X * k)


INSTEAD: list[tuple[Any, str, str]] = [
    (lambda x: sum(1 for v in x if v > 2), "TM101", "np.count_nonzero(condition)"),
    (lambda x: [v for v in x if v > 2], "TM101", "np.where(condition, a, b)"),
    (lambda x: math.erf(x[0]), "TM110", "tm.special.erf is"),
    (lambda x: math.gamma(x[0]), "TM110", "outside"),
]


@pytest.mark.parametrize(("function", "code", "hint"), INSTEAD, ids=[row[2] for row in INSTEAD])
def test_the_hint_names_what_does_the_same_in_the_graph(
    function: Any, code: str, hint: str
) -> None:
    text = message(function, X)
    assert code in text
    assert hint in text.partition("hint: ")[2]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: f"{x.mean()}",
        lambda x: {"text": str(x[0])},
        lambda x: (x, "%s is it" % x.sum()),  # noqa: UP031  a way of Python's
    ],
)
def test_texts_of_values_of_the_run_are_not_returned(function: Any) -> None:
    text = message(function, X)
    assert "TM102" in text
    assert "is returned" in text
    assert "tm.print" in text
