"""Updates of Variables from many threads, compiled and not; how many kernels an update takes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tracemill as tm
from tracemill.compiler.plan import Launch


def test_compiled_and_plain_updates_of_many_threads_are_all_counted():
    n = tm.Variable(np.zeros((), np.int64))
    add = tm.jit(lambda: n.assign(n + 1))
    add()

    def work(index):
        for _ in range(1000):
            if index % 2:
                add()
            else:
                n.assign_add(1)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert n.read() == 8001


@pytest.mark.parametrize("name", ["SGD", "Momentum", "Adagrad", "RMSProp", "Adam"])
def test_an_update_is_one_kernel_for_each_variable(name):
    variables = [tm.Variable(np.zeros((5, 4), np.float32)), tm.Variable(np.zeros(7, np.float32))]
    opt = getattr(tm.optim, name)(variables)
    step = tm.jit(lambda g, h: opt.apply([g, h]))
    plan = step.lower(np.ones((5, 4), np.float32), np.ones(7, np.float32)).plan
    rows = getattr(plan, "rows", None) or plan.plan.rows
    launches = [row for row in rows if isinstance(row, Launch)]
    numbers = 3 if name == "Adam" else 0  # the next step, and its powers of the two betas
    assert len(launches) <= 2 + numbers


def test_operators_and_items_that_cannot_update_a_variable_say_what_can():
    w = tm.Variable(np.zeros(3))

    def add(x):
        part = w
        part += x

    def put(x):
        w[0] = x

    for function in (add, tm.jit(add)):
        with pytest.raises(TypeError, match=r"write w\.assign_add\(value\)"):
            function(1.0)
    for function in (put, tm.jit(put)):
        with pytest.raises(TypeError, match=r"w\.assign\(a\)"):
            function(1.0)
    assert w.read().tolist() == [0, 0, 0]
