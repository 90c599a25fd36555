"""`tm.print` inside compiled functions and outside: what is shown, and in which order."""

from __future__ import annotations

import re
import threading

import ml_dtypes
import numpy as np
import pytest

import tracemill as tm

X = np.arange(3.0)


def test_a_line_is_printed_at_every_call_with_the_values_of_that_call(capsys):
    @tm.jit
    def f(x, k):
        y = x * k
        tm.print("y = {}, k = {}", y, k)
        return y.sum()

    for k in (1.0, 2.0, -0.5):
        f(X, k)
    assert capsys.readouterr().out.splitlines() == [
        "y = [0. 1. 2.], k = 1.0",
        "y = [0. 2. 4.], k = 2.0",
        "y = [-0.  -0.5 -1. ], k = -0.5",
    ]
    assert len(f.explain_recompiles()) == 1


def test_lines_keep_the_order_of_the_program(capsys):
    @tm.jit
    def f(x):
        for step in range(4):
            x = x + x.sum()
            tm.print("{}: {}", step, x[0])
            tm.print("after {}", step)
        return x

    f(np.ones(2))
    f(np.ones(2))
    once = ["0: 3.0", "after 0", "1: 9.0", "after 1", "2: 27.0", "after 2", "3: 81.0", "after 3"]
    assert capsys.readouterr().out.splitlines() == once * 2


def test_a_value_is_shown_as_it_was_there_not_as_it_became(capsys):
    w = tm.Variable(np.zeros(2), name="print_w")

    @tm.jit
    def f(x):
        tm.print("w {} x {}", w, x)
        x[0] = 7
        w.assign(x)
        tm.print("w {} x {}", w, x)

    f(np.ones(2))
    assert capsys.readouterr().out.splitlines() == [
        "w [0. 0.] x [1. 1.]",
        "w [7. 1.] x [7. 1.]",
    ]


def test_formats_apply_to_numbers_and_to_each_number_of_an_array(capsys):
    @tm.jit
    def f(x, n, b, h):
        tm.print("{:.2f} {:5.1f} {:d} {} {:.1f} {{}}", x, x[1], n, b, h)

    f(X / 3, 4, True, np.ones(2, ml_dtypes.bfloat16))
    shown = capsys.readouterr().out
    assert shown == "[0.00 0.33 0.67]   0.3 4 True [1.0 1.0] {}\n"


def test_what_is_known_while_tracing_is_part_of_the_text(capsys):
    @tm.jit
    def f(x, tag="{loss}"):
        tm.print("{} {} {:>6} {}", tag, None, "up", x.dtype)
        return x

    f(X)
    assert capsys.readouterr().out == "{loss} None     up float64\n"


def test_views_empty_arrays_and_strided_arguments_are_shown(capsys):
    @tm.jit
    def f(x):
        tm.print("{} {} {}", x[::-1], x[:0], x.T)
        return x

    f(np.arange(12).reshape(3, 4)[::2, ::3])
    lines = capsys.readouterr().out
    assert lines == "[[ 8 11]\n [ 0  3]] [] [[ 0  8]\n [ 3 11]]\n"


def test_a_captured_array_is_shown_as_it_is_at_the_call(capsys):
    captured = np.zeros(2)
    f = tm.jit(lambda x: tm.print("{}", captured) or x)
    f(1.0)
    captured[1] = 5
    f(1.0)
    assert capsys.readouterr().out == "[0. 0.]\n[0. 5.]\n"


def test_a_gradient_prints_once_and_is_not_changed_by_it(capsys):
    def loss(x):
        value = (x * x).sum()
        tm.print("loss {}", value)
        return value

    for gradient in (tm.grad(loss), tm.jit(tm.grad(loss))):
        np.testing.assert_array_equal(gradient(X), 2 * X)
        assert capsys.readouterr().out == "loss 5.0\n"
    w = tm.Variable(X, name="print_gradient")

    @tm.jit
    def step():
        (slope,) = tm.gradients(loss(w.read()), [w])
        tm.print("slope {}", slope)
        return slope

    np.testing.assert_array_equal(step(), 2 * X)
    assert capsys.readouterr().out == "loss 5.0\nslope [0. 2. 4.]\n"


def test_outside_a_trace_it_prints_at_once(capsys):
    tm.print("{} {:.1f} {}", [1, "a"], X, tm.Variable(np.ones(2), name="print_outside"))
    with tm.disable_jit():
        tm.jit(lambda x: tm.print("x {}", x))(X)
    assert capsys.readouterr().out == "[1, 'a'] [0.0 1.0 2.0] [1. 1.]\nx [0. 1. 2.]\n"


def test_a_program_prints_what_its_entries_print(capsys):
    def entry(x):
        tm.print("entry got {}", x)
        return x + 1

    program = tm.Program(entry=tm.jit(entry))
    np.testing.assert_array_equal(program.run("entry", {"x": X}), X + 1)
    assert capsys.readouterr().out == "entry got [0. 1. 2.]\n"


def test_a_function_over_two_devices_prints(capsys):
    @tm.jit
    def f(x):
        with tm.device("cpu:1"):
            y = x + 1
            tm.print("there {}", y)
        return y * 2

    np.testing.assert_array_equal(f(X), (X + 1) * 2)
    assert capsys.readouterr().out == "there [1. 2. 3.]\n"


@pytest.mark.parametrize(
    ("template", "values"),
    [("{} {}", (X,)), ("", (X,)), ("{name}", (X,)), ("{0}", (X,)), ("{!r}", (X,)), ("{", ()),
     ("{:d}", (X,)), ("{:wrong}", (X,))],
)  # fmt: skip
def test_a_template_that_does_not_fit_is_refused_at_the_users_line(template, values):
    for call in (tm.print, tm.jit(lambda *a: tm.print(template, *a))):
        with pytest.raises(ValueError, match=r"\[TM203\] at .*test_printing.py:\d+") as caught:
            call(template, *values) if call is tm.print else call(*values)
        assert "needs a fitting text" in str(caught.value)


def test_an_error_of_the_output_reaches_the_caller_and_the_next_call_works(monkeypatch, capsys):
    class Broken:
        def write(self, text):
            raise OSError("the pipe is broken")

    f = tm.jit(lambda x: tm.print("{}", x) or x)
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Broken())
        with pytest.raises(OSError, match="the pipe is broken"):
            f(X)
    f(X)
    assert capsys.readouterr().out == "[0. 1. 2.]\n"


def test_threads_print_whole_lines(capsys):
    f = tm.jit(lambda x: tm.print("start {} end", x.sum()) or x)
    f(X)
    threads = [threading.Thread(target=lambda: [f(X) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(re.findall(r"start 3\.0 end", capsys.readouterr().out)) == 81


def test_a_star_import_leaves_pythons_own_print():
    names: dict[str, object] = {}
    exec("from tracemill import *", names)
    assert "print" not in names
    assert "print" in dir(tm)
