"""Forks and Ctrl-C at any moment leave a process that goes on and is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.cpu, pytest.mark.processes]

FORKS = """
import os
import signal
import threading
import numpy as np
import tracemill as tm

@tm.jit
def f(x):
    return np.sin(x).sum()

@tm.jit
def placed(x):
    with tm.device("cpu:1"):
        return x + 1

x = np.ones(3)
want = f(x)
placed(x)

def compile_many():
    for k in range(12):
        tm.jit(eval(f"lambda x: np.sin(x + {k}) * {k}"))(x)

thread = threading.Thread(target=compile_many)
thread.start()
children = 0
while thread.is_alive() or not children:
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        made = tm.jit(lambda x: np.cos(x) + x * x)(x)
        right = f(x) == want and np.allclose(made, np.cos(x) + x * x) and placed(x)[0] == 2
        os._exit(0 if right else 3)
    assert os.waitpid(pid, 0)[1] == 0
    children += 1
print("done")
"""


def test_a_child_forked_while_a_thread_compiles_can_compile(
    run_python: Callable[..., str],
) -> None:
    assert run_python(FORKS, TRACEMILL_CACHE="off") == "done\n"


INTERRUPTIONS = """
import random
import os
import signal
import sys
import threading
import time
import numpy as np
import tracemill as tm

x = np.arange(5.0)
large = np.ones(100_000)

@tm.jit
def wave(x, k):
    return np.sin(x) * k

@tm.jit
def rebind(d, k):
    d["a"] = d["a"] * k
    return d["a"].sum()

def fresh(k):
    space = {"np": np}
    exec(f"def made(x): return np.sin(x * {k}.5) + {k}", space)
    return tm.jit(space["made"])(x)

want = wave(large, 2.0)
rebind({"a": np.ones(3)}, 3.0)
ends = time.monotonic() + 6
over = False
done = interrupted = 0

def interrupt():
    while not over:
        time.sleep(random.random() * 0.02)
        os.kill(os.getpid(), signal.SIGINT)

def work():
    global done, interrupted
    while time.monotonic() < ends:
        try:
            k = done % 40
            assert np.allclose(fresh(k), np.sin(x * (k + 0.5)) + k)
            assert np.array_equal(wave(large, 2.0), want)
            assert rebind({"a": np.ones(3)}, 3.0) == 9.0
            done += 1
        except KeyboardInterrupt:
            interrupted += 1

signal.signal(signal.SIGINT, signal.SIG_IGN)
thread = threading.Thread(target=interrupt)
thread.start()
signal.signal(signal.SIGINT, signal.default_int_handler)
while time.monotonic() < ends:
    try:
        work()
    except KeyboardInterrupt:
        pass
signal.signal(signal.SIGINT, signal.SIG_IGN)
over = True
thread.join()
assert interrupted > 10
assert np.allclose(fresh(50), np.sin(x * 50.5) + 50)
print("done")
"""


def test_interruptions_while_compiling_leave_the_process_whole(
    run_python: Callable[..., str],
) -> None:
    assert run_python(INTERRUPTIONS, TRACEMILL_CACHE="off").endswith("done\n")
