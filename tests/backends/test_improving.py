"""Quick code first, better code while it runs: which kernels, what is rewritten, what is stored."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernel_runner import sym
from tracemill import engine
from tracemill.backends.cpu import effort, hands, improving
from tracemill.backends.cpu.backend import CpuBackend
from tracemill.backends.cpu.improving import Improver, Job
from tracemill.backends.cpu.mapped import MappedCode
from tracemill.compiler.kernel.kernel import (
    Constant,
    Kernel,
    Let,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Store,
)
from tracemill.compiler.types import F32

pytestmark = [pytest.mark.cpu, pytest.mark.processes]

n, m, i = sym("n"), sym("m"), sym("i")
X = np.linspace(-2, 2, 37, dtype=np.float32)
OPS = ("tanh", "sin", "exp", "log1p", "cos", "arctan", "square", "abs")


def layer(*ops: str, scale: float = 2.0) -> Kernel:
    """out = ops of x, one after another, times `scale`."""
    names = [f"v{at}" for at in range(len(ops) + 1)]
    steps = [Let(b, op, (a,), F32) for op, a, b in zip(ops, names, names[1:], strict=False)]
    ends = (Constant("s", scale, F32), Let("r", "mul", (names[-1], "s"), F32))
    body = (Load("v0", "x", (i,), F32), *steps, *ends, Store("o", (i,), "r"))
    params = (Parameter("x", F32, (n,), "in"), Parameter("o", F32, (n,), "out"))
    return Kernel("_".join(ops), params, ("n",), (Parallel("i", n, body, vector=16),))


def product() -> Kernel:
    """A matrix product."""
    k, j = sym("k"), sym("j")
    loads = (Load("a", "x", (i, k), F32), Load("b", "y", (k, j), F32))
    inner = (*loads, Let("c", "mul", ("a", "b"), F32))
    total = Reduce(("r",), "sum", "k", m, inner, ("c",), (F32,), loose=True)
    rows = Parallel("j", n, (total, Store("o", (i, j), "r")))
    params = tuple(
        Parameter(name, F32, shape, mode)
        for name, shape, mode in (("x", (n, m), "in"), ("y", (m, n), "in"), ("o", (n, n), "out"))
    )
    return Kernel("product", params, ("n", "m"), (Parallel("i", n, (rows,)),))


SECONDS = 300.0  # a busy machine has little time for workers that step back
KERNELS = [layer(a, b) for a in OPS for b in OPS[:2]]


@pytest.fixture(autouse=True)
def any_list_is_long(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(effort, "LONG_LIST", 0.001)
    monkeypatch.setattr(improving, "NICE", 0)
    yield
    for process in list(hands._alive):
        process.end()


class Store_(dict[str, bytes]):
    """A code store in memory."""

    def put(self, key: str, payload: bytes) -> None:
        self[key] = payload


class Table:
    """Words with the addresses of kernels, as a plan's rows have them."""

    def __init__(self, addresses: Any) -> None:
        self.words = (ctypes.c_int64 * len(addresses))(*addresses)

    @property
    def places(self) -> list[int]:
        start = ctypes.addressof(self.words)
        return [start + 8 * at for at in range(len(self.words))]

    def run(self, at: int) -> np.ndarray[Any, Any]:
        out = np.zeros_like(X)
        args = (ctypes.c_int64 * 3)(X.ctypes.data, out.ctypes.data, len(X))
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
        control = engine.native().control_block()
        kind(self.words[at])(control.address, ctypes.addressof(args), 0, len(X))
        return out


def names(kernels: Any) -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in kernels}


def test_what_runs_long_gets_the_best_code_at_once() -> None:
    kernels = names([*KERNELS, product()])
    light = Kernel("light", (), (), (Parallel("i", 3, ()),))
    assert effort.quick_first(kernels | {"light": light}, {}) == names(KERNELS).keys()
    times = {"tanh_sin": effort.LONG_RUN, "tanh_tanh": effort.LONG_RUN - 1}
    assert effort.quick_first(kernels, times) == names(KERNELS).keys() - {"tanh_sin"}
    for time, is_quick in ((0, True), (1, True), (effort.SHORT_PRODUCT, False), (None, False)):
        assert ("product" in effort.quick_first(kernels, {"product": time})) == is_quick


def test_a_short_list_gets_the_best_code_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "LONG_LIST", 1.0)
    assert effort.quick_first(names(KERNELS), {}) == frozenset()


def test_every_word_is_rewritten_and_the_bits_stay() -> None:
    said: list[str] = []
    store = Store_()
    codes = MappedCode()
    backend = CpuBackend(codes=codes, report=said.append)
    loaded = backend.compile_kernels(KERNELS, store)
    assert loaded.compiled == len(KERNELS)
    table = Table(loaded.addresses * 2)
    codes.follow(table, table.places)
    before = [table.run(at) for at in range(len(KERNELS))]
    quick = loaded.addresses
    assert backend.improving.wait(SECONDS)
    state = backend.improving.state
    # What was done before `follow` was rewritten by it, all others by the background.
    assert (state.waiting, state.done, state.failed) == (0, len(KERNELS), 0)
    assert state.rewritten <= len(table.words)
    assert not set(quick) & set(table.words)
    assert tuple(table.words) == codes.best(loaded.addresses) * 2
    for at, want in enumerate(before):
        assert table.run(at).tobytes() == want.tobytes()
    assert len(said) >= 2


def test_better_code_is_the_code_of_a_list_that_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store_()
    backend = CpuBackend()
    backend.compile_kernels(KERNELS, store)
    assert backend.improving.wait(SECONDS)
    monkeypatch.setattr(effort, "LONG_LIST", 1000.0)
    alone = Store_()
    CpuBackend().compile_kernels(KERNELS, alone)
    assert {key: store[key] for key in alone} == alone
    assert len(store) == 2 * len(alone)


def test_the_next_process_takes_the_best_code_there_is() -> None:
    store = Store_()
    backend = CpuBackend()
    stored = backend.compile_kernels(KERNELS, store).stored
    assert backend.improving.wait(SECONDS)
    for one in stored[:5]:
        del store[one.key]
    again = CpuBackend()
    assert again.compile_kernels(KERNELS, store).compiled == 0
    assert again.improving.wait(SECONDS)
    assert again.improving.state.done == 5
    assert all(one.key in store for one in stored)
    best = CpuBackend()
    assert best.compile_kernels(KERNELS, store).compiled == 0
    assert best.improving.state == improving.Improved(0, 0, 0, 0)


def test_copies_of_a_template_are_improved_together() -> None:
    kernels = [layer("tanh", scale=1.3 + at) for at in range(8)]
    codes = MappedCode()
    backend = CpuBackend(codes=codes)
    loaded = backend.compile_kernels(kernels, Store_())
    assert loaded.compiled == 1
    table = Table(loaded.addresses)
    codes.follow(table, table.places)
    before = [table.run(at) for at in range(len(kernels))]
    assert backend.improving.wait(SECONDS)
    assert tuple(table.words) == codes.best(loaded.addresses)
    assert not set(table.words) & set(loaded.addresses)
    assert [table.run(at).tobytes() for at in range(8)] == [b.tobytes() for b in before]
    for at, got in enumerate(before):
        np.testing.assert_allclose(got, np.tanh(X) * np.float32(1.3 + at), rtol=1e-6)


def test_words_of_what_is_gone_are_not_written() -> None:
    codes = MappedCode()
    backend = CpuBackend(codes=codes)
    add = backend.improving.add
    jobs: list[Job] = []
    backend.improving.add = lambda given: jobs.extend(given)  # type: ignore[method-assign]
    loaded = backend.compile_kernels(KERNELS[:8], Store_())
    stays, goes = Table(loaded.addresses), Table(loaded.addresses)
    codes.follow(stays, stays.places)
    codes.follow(goes, goes.places)
    gone = weakref.ref(goes)
    del goes
    gc.collect()
    assert gone() is None
    add(jobs)
    assert backend.improving.wait(SECONDS)
    assert backend.improving.state.rewritten == 8
    assert tuple(stays.words) == codes.best(loaded.addresses)


def test_a_kernel_that_cannot_be_improved_keeps_its_code() -> None:
    said: list[str] = []
    improver = Improver(said.append)
    bad = Kernel("bad", (), (), (Store("nowhere", (), "nothing"),))
    taken: list[bytes] = []

    def take(code: bytes) -> int:
        taken.append(code)
        return 3

    def refuse(code: bytes) -> int:
        raise ValueError("no code")

    good = KERNELS[0]
    improver.add([Job(bad, None, take), Job(good, None, refuse), Job(good, None, take)])
    assert improver.wait(SECONDS)
    assert improver.state == improving.Improved(0, 1, 2, 3)
    assert len(taken) == 1
    assert any("no code" in text for text in said)


def test_a_worker_that_dies_costs_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    improver = Improver()
    receive = hands.Worker.receive
    deaths = [hands.WorkerDied("LLVM ERROR: planted")]

    def dies_once(process: hands.Worker) -> bytes | None:
        if deaths:
            raise deaths.pop()
        return receive(process)

    monkeypatch.setattr(improving, "MOST", 1)
    monkeypatch.setattr(hands.Worker, "receive", dies_once)
    improver.add([Job(kernel, None, lambda code: 1) for kernel in KERNELS[:4]])
    assert improver.wait(SECONDS)
    assert improver.state == improving.Improved(0, 3, 1, 3)


def test_workers_that_are_ended_from_outside_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    improver = Improver()

    def ended(process: hands.Worker) -> bytes | None:
        raise hands.WorkerDied("memory is short", outside=True)

    monkeypatch.setattr(improving, "MOST", 1)
    monkeypatch.setattr(hands.Worker, "receive", ended)
    improver.add([Job(kernel, None, lambda code: 1) for kernel in KERNELS[:4]])
    assert improver.wait(SECONDS)
    assert improver.state == improving.Improved(0, 0, 4, 0)


def test_a_forked_child_leaves_the_work_to_its_parent() -> None:
    backend = CpuBackend()
    loaded = backend.compile_kernels(KERNELS, Store_())
    want = Table(loaded.addresses).run(3).tobytes()
    child = os.fork()
    if child == 0:
        good = backend.improving.state.waiting == 0 and backend.improving.wait(0)
        good = good and Table(loaded.addresses).run(3).tobytes() == want
        more = CpuBackend()
        good = good and more.compile_kernels(KERNELS[:4], Store_()).compiled == 4
        good = good and more.improving.wait(SECONDS) and more.improving.state.done == 4
        for process in list(hands._alive):
            process.end()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert backend.improving.wait(SECONDS)
    assert backend.improving.state.done == len(KERNELS)


SCRIPT = """
import os, sys
import numpy as np
import tracemill as tm
from tracemill import engine
from tracemill.backends.cpu import effort, improving
effort.LONG_LIST, improving.NICE = 0.001, 0
OPS = [np.tanh, np.sin, np.exp, np.cos, np.arctan, np.square]

@tm.jit
def f(x):
    for a in OPS:
        for b in OPS:
            x = a(b(x) - x.sum()) + x
    return x

x = np.linspace(-1, 1, 12).reshape(3, 4)
first = f(x)
print(engine.backend().improving.state.waiting > 0)
"""
WAITING = """
assert engine.backend().improving.wait(300)
state = engine.backend().improving.state
assert state.failed == 0 and state.done >= 36, state
assert f(x).tobytes() == first.tobytes()
assert state.rewritten >= 1, state
print(state.done)
"""


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_process_ends_without_waiting_for_better_code(ending: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT) + "sys.stdout.flush()\n" + ending],
        capture_output=True, text=True, env={**os.environ, "TRACEMILL_CACHE": "off"}, timeout=120,
    )  # fmt: skip
    assert run.stdout.split() == ["True"]
    assert run.returncode == {"": 0, "sys.exit(3)": 3}.get(ending, -9)
    assert "Error" not in run.stderr


def test_calls_of_a_function_go_to_better_code_and_the_log_says_so() -> None:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT + WAITING)],
        capture_output=True, text=True, timeout=400,
        env={**os.environ, "TRACEMILL_CACHE": "off", "TRACEMILL_LOG": "background"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert int(run.stdout.split()[1]) >= 36
    assert "tracemill background:" in run.stderr
    assert "compiled quickly" in run.stderr
    assert "calls go to better code now" in run.stderr
