"""Loops as they run: what trips cost, Ctrl-C and time limits, text and plan.

Not here: what loops compute (test_control_flow.py).
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import tracemill as tm
from interruption import interrupt_after
from tracemill import engine

pytestmark = pytest.mark.cpu


# -- laws of cost


def test_the_number_of_trips_compiles_nothing_and_needs_no_memory():
    @tm.jit
    def f(x, n):
        def body(i, c):
            a, b = c
            return b, (a + b[::-1]) * 0.5 + i * 1e-9

        return tm.fori_loop(0, n, body, (x, x + 1))

    x = np.arange(70_000.0)
    f(x, 1)
    (version,) = f.dispatcher.versions
    runtime = engine.native()
    f(x, 2)
    before = runtime.memory_use
    f(x, 3)
    few = runtime.memory_use
    f(x, 300)
    many = runtime.memory_use
    assert f.dispatcher.versions == [version]
    assert many.mapped - few.mapped == few.mapped - before.mapped == 0
    assert many.reused - few.reused == few.reused - before.reused
    with tm.disable_jit():
        want = f(x, 300)
    for a, b in zip(f(x, 300), want):
        np.testing.assert_allclose(a, b)


# -- ends


def test_an_endless_loop_stops_at_ctrl_c():
    w = tm.Variable(np.zeros(2), name="endless loop")

    @tm.jit
    def forever(x):
        w.assign(w.read() + 1)
        return tm.while_loop(lambda c: c > 0, lambda c: c + 1e-9, x)

    assert forever(-1.0) == -1
    with interrupt_after(0.05) as sent, pytest.raises(KeyboardInterrupt):
        forever(1.0)
    assert time.monotonic() - sent[0] < 0.5
    np.testing.assert_array_equal(w.read(), [1, 1])
    assert forever(-2.0) == -2
    np.testing.assert_array_equal(w.read(), [2, 2])


def test_an_endless_loop_ends_at_the_time_limit():
    f = tm.jit(lambda x: tm.while_loop(lambda c: c[0] > 0, lambda c: (c[0] + 1e-9,), (x,)))
    f(-1.0)
    engine.native().set_time_limit(f, 0.05)
    with pytest.raises(TimeoutError):
        f(1.0)


# -- looking inside


def test_text_plan_and_page_show_bodies():
    @tm.jit
    def f(x, n):
        return tm.fori_loop(0, n, lambda i, c: tm.cond(i > 1, lambda: c[::-1], lambda: c * 2), x)

    lowered = f.lower(np.arange(3.0), 2)
    assert "for 0:i64, %n, %x {carried=1}" in lowered.text
    assert " yield " in lowered.text
    assert "cond" in lowered._repr_html_()
    plan = str(lowered.plan)
    assert "for i from" in plan
    assert "} else {" in plan
    assert " launch " in plan
    assert any(row.kernel for row in f.profile(np.arange(3.0), 2).rows)
