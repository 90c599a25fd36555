"""Two CPU devices in one process: placement, one transfer per value and destination."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tracemill as tm

_fresh = itertools.count()


def variable(value, device=None):
    return tm.Variable(value, name=f"device test {next(_fresh)}", device=device)


def test_two_devices_compute_what_one_does_and_move_each_value_once():
    w = variable(np.full(3, 2.0), "cpu:1")

    def body(x):
        a = x + 1
        with tm.device("cpu:1"):
            b = a * w
            c = a - b
        w.assign(b)
        return a + b, c

    f = tm.jit(body)
    state = np.full(3, 2.0)
    for step in range(5):
        x = np.arange(3.0) + step
        got = f(x)
        a = x + 1
        b = a * state
        np.testing.assert_array_equal(got[0], a + b)
        np.testing.assert_array_equal(got[1], a - b)
        state = b
    np.testing.assert_array_equal(np.asarray(w), state)
    transport = f.dispatcher.versions[0].partitioned.transport
    assert set(transport._transfers.values()) == {5}
    assert len(transport._transfers) == 3  # a there, b and c back: once each


def test_operations_on_a_variable_run_where_it_is():
    w = variable(np.ones(2), "cpu:1")
    f = tm.jit(lambda x: x * w)
    np.testing.assert_array_equal(f(np.arange(2.0)), np.arange(2.0))
    programs = f.dispatcher.versions[0].partitioned.programs
    assert {p.device for p in programs} == {"cpu:0", "cpu:1"}


def test_a_value_used_often_on_another_device_is_sent_once():
    def body(x):
        a = x * 2
        with tm.device("cpu:1"):
            parts = [a + i for i in range(5)]
            return sum(parts)

    f = tm.jit(body)
    np.testing.assert_array_equal(f(np.ones(4)), body_of_one_device(np.ones(4)))
    programs = f.dispatcher.versions[0].partitioned.programs
    assert sum(len(p.sends) for p in programs) == 2  # a there, the sum back


def body_of_one_device(x):
    return sum(x * 2 + i for i in range(5))


def test_an_error_on_one_device_reaches_the_caller_and_the_next_call_works():
    def body(x, i):
        with tm.device("cpu:1"):
            y = x[i]
        return y + 1

    f = tm.jit(body)
    with pytest.raises(IndexError, match="index 9"):
        f(np.arange(3.0), np.array([9]))
    np.testing.assert_array_equal(f(np.arange(3.0), np.array([1])), [2.0])


def test_devices_that_do_not_exist_are_refused():
    @tm.jit
    def f(x):
        with tm.device("tpu:0"):
            return x + 1

    with pytest.raises(Exception, match="there is no device 'tpu:0'"):
        f(np.ones(2))


def test_variables_of_another_store_are_reached():
    from tracemill.runtime.store import VariableStore

    store = VariableStore()
    w = tm.Variable(np.ones(2), name="own store", store=store)
    f = tm.jit(lambda x: w.assign(w + x))
    f(np.ones(2))
    np.testing.assert_array_equal(store.read("own store"), [2.0, 2.0])
