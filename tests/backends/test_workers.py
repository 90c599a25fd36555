"""Compile workers: the same code as here, one that dies names its kernel, none is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kernel_runner import sym
from tracemill.backends.cpu import crew, effort, hands, wire, worker
from tracemill.backends.cpu.backend import CpuBackend
from tracemill.backends.cpu.wire import Effort, Request
from tracemill.backends.llvm.machine import host_machine
from tracemill.compiler.errors import CompileError
from tracemill.compiler.kernel.kernel import Kernel, Let, Load, Parallel, Parameter, Store
from tracemill.compiler.types import F32

pytestmark = [pytest.mark.cpu, pytest.mark.processes]


def chain(length: int) -> Kernel:
    """out = tanh of tanh of ... x, kernels of different shape."""
    n, i = sym("n"), sym("i")
    steps = [Let(f"v{at + 1}", "tanh", (f"v{at}",), F32) for at in range(length)]
    body = (Load("v0", "x", (i,), F32), *steps, Store("o", (i,), f"v{length}"))
    params = (Parameter("x", F32, (n,), "in"), Parameter("o", F32, (n,), "out"))
    return Kernel(f"chain_{length}", params, ("n",), (Parallel("i", n, body, vector=16),))


KERNELS = [chain(number % 4 + 1) for number in range(4)] + [
    replace(chain(number % 4 + 1), body=(replace(chain(number % 4 + 1).body[0], vector=width),))
    for number, width in enumerate([8, 8, 8, 8, 4, 4, 4, 4])
]


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A crew of one worker whatever the machine, ended afterwards."""
    monkeypatch.setattr(crew, "_crew", crew._Crew())
    monkeypatch.setattr(crew, "_hands", lambda: 0 if crew._crew.broken else 1)
    monkeypatch.setattr(crew, "_START_SECONDS", 0.01)
    yield
    for process in list(hands._alive):
        process.end()


def test_kernels_of_a_few_scalars_are_not_optimised() -> None:
    assert not effort.is_light(chain(1))
    n, i = 3, sym("i")
    body = (Load("a", "x", (i,), F32), Store("o", (i,), "a"))
    params = (Parameter("x", F32, (n,), "in"), Parameter("o", F32, (n,), "out"))
    small = Kernel("small", params, (), (Parallel("i", n, body),))
    assert effort.is_light(small)
    assert not effort.is_light(replace(small, body=(Parallel("i", 17, body),)))
    assert not effort.is_light(replace(small, body=(Parallel("j", 6, small.body),)))
    assert CpuBackend().compile_kernels([small]).compiled == 1


def request(kernel: Kernel, effort: Effort = Effort.BEST) -> Request:
    return Request(kernel, host_machine(), effort)


def codes(kernels: list[Kernel], effort: Effort = Effort.BEST) -> list[bytes]:
    made: dict[int, bytes] = {}
    crew.compile_all([request(kernel, effort) for kernel in kernels], made.__setitem__)
    return [made[number] for number in range(len(kernels))]


def asked(process: hands.Worker, kernel: Kernel, effort: Effort = Effort.BEST) -> bytes | None:
    process.send(wire.packed(request(kernel, effort)))
    return process.receive()


@pytest.mark.parametrize("effort", Effort)
def test_a_worker_makes_the_code_that_is_made_here(effort: Effort) -> None:
    process = hands.Worker()
    for kernel in KERNELS[:3]:
        assert asked(process, kernel, effort) == worker.answer(request(kernel, effort))
    process.send(wire.packed(Request(KERNELS[0], None)))
    assert process.receive() == worker.compiled(KERNELS[0], host_machine())


def waits_for_workers(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The calling thread compiles only when a worker has its share; what workers were given."""
    given: list[Kernel] = []
    first = threading.Event()
    packed, here = wire.packed, worker.answer

    def counted(request: Request) -> bytes:
        given.append(request.kernel)
        first.set()
        return packed(request)

    def patient(request: Request) -> bytes:
        assert first.wait(60)
        return here(request)

    monkeypatch.setattr(wire, "packed", counted)
    monkeypatch.setattr(worker, "answer", patient)
    return given


@pytest.mark.parametrize("effort", Effort)
def test_a_list_is_shared_and_every_kernel_gets_its_own_code(
    monkeypatch: pytest.MonkeyPatch, effort: Effort
) -> None:
    alone = [worker.answer(request(kernel, effort)) for kernel in KERNELS]
    given = waits_for_workers(monkeypatch)
    assert codes(KERNELS, effort) == alone
    assert given


def test_the_back_end_asks_workers_only_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    share = crew.compile_all

    def counted(kernels: Any, *rest: Any) -> None:
        asked.append(len(kernels))
        share(kernels, *rest)

    monkeypatch.setattr(crew, "compile_all", counted)
    backend = CpuBackend()
    assert backend.compile_kernels(KERNELS[:3]).compiled == 3
    assert asked == []
    assert backend.compile_kernels(KERNELS).compiled == 9
    assert asked == [9]
    assert CpuBackend(workers=False).compile_kernels(KERNELS).compiled == 12
    assert asked == [9]


def test_a_worker_that_dies_is_an_error_that_names_the_kernel() -> None:
    process = hands.Worker()
    end_with(process, signal.SIGABRT)
    with pytest.raises(hands.WorkerDied, match="SIGABRT") as died:
        process.receive()
    assert not died.value.outside
    error = crew._stopped(KERNELS[0], died.value)
    assert isinstance(error, CompileError)
    assert KERNELS[0].name in str(error)


def end_with(process: hands.Worker, number: int) -> None:
    """Let a worker die with a request in its pipe."""
    pid = process.process.pid
    os.kill(pid, signal.SIGSTOP)
    process.send(wire.packed(request(KERNELS[0])))
    os.kill(pid, number)
    os.kill(pid, signal.SIGCONT)


def test_the_kernel_is_not_blamed_for_a_worker_ended_from_outside() -> None:
    process = hands.Worker()
    end_with(process, signal.SIGKILL)
    with pytest.raises(hands.WorkerDied) as died:
        process.receive()
    assert died.value.outside
    with pytest.raises(hands.WorkerDied) as gone:
        asked(process, KERNELS[0])
    assert gone.value.outside


def test_an_interrupted_list_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(request: Request) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(worker, "answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            codes(KERNELS)
    assert crew._crew.jobs.empty()
    assert len(codes(KERNELS)) == len(KERNELS)


def test_a_list_ends_with_the_worker_that_dies_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(process: hands.Worker) -> bytes:
        raise hands.WorkerDied("LLVM ERROR: planted")

    with monkeypatch.context() as patched:
        waits_for_workers(patched)
        patched.setattr(hands.Worker, "receive", dies)
        with pytest.raises(CompileError, match=r"(?s)chain_.*planted"):
            codes(KERNELS)
    wait_for(lambda: crew._crew.threads == 0)
    assert crew._crew.jobs.empty()
    assert len(codes(KERNELS)) == len(KERNELS)


def test_what_a_worker_had_when_it_was_ended_is_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(process: hands.Worker) -> bytes:
        raise hands.WorkerDied("memory is short", outside=True)

    alone = [worker.compiled(kernel, host_machine()) for kernel in KERNELS]
    waits_for_workers(monkeypatch)
    monkeypatch.setattr(hands.Worker, "receive", ended)
    assert codes(KERNELS) == alone


def wait_for(condition: Callable[[], bool]) -> None:
    """Until another thread has done it."""
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        os.sched_yield()
    assert condition()


def test_what_code_generation_raises_is_raised_here() -> None:
    process = hands.Worker()
    bad = Kernel("bad", (), (), (Store("nowhere", (), "nothing"),))
    assert asked(process, bad) is None
    assert isinstance(asked(process, KERNELS[0]), bytes)
    with pytest.raises(KeyError):
        codes([bad, *KERNELS])
    wait_for(crew._crew.jobs.empty)


def test_without_a_worker_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hands, "_PROGRAM", "raise SystemExit(3)")
    assert len(codes(KERNELS)) == len(KERNELS)
    wait_for(lambda: crew._crew.threads == 0)
    assert crew._crew.broken
    assert not crew.pays([request(kernel) for kernel in KERNELS * 100])
    assert len(codes(KERNELS)) == len(KERNELS)


def test_an_idle_worker_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "IDLE_SECONDS", 0.01)
    assert len(codes(KERNELS)) == len(KERNELS)
    wait_for(lambda: (crew._crew.threads, hands._alive) == (0, set()))
    assert len(codes(KERNELS)) == len(KERNELS)


def test_a_worker_ends_when_its_parent_closes_the_pipe() -> None:
    process = hands.Worker().process
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0


def test_a_worker_steps_back_as_far_as_it_is_told() -> None:
    for nice in (0, 19):
        pid = hands.Worker(nice).process.pid
        now = os.getpriority(os.PRIO_PROCESS, pid)
        assert now == min(os.getpriority(os.PRIO_PROCESS, 0) + nice, 19)


def test_a_forked_child_has_workers_of_its_own() -> None:
    process = hands.Worker()
    child = os.fork()
    if child == 0:
        good = hands._alive == set() and len(codes(KERNELS)) == len(KERNELS)
        for own in list(hands._alive):
            own.end()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert isinstance(asked(process, KERNELS[0]), bytes)


SCRIPT = """
import os, sys, threading
import numpy as np
import tracemill as tm
from tracemill.backends.cpu import crew, hands
print("module runs once")
crew._START_SECONDS = 0.01
crew._hands = lambda: 1
OPS = [np.tanh, np.sin, np.exp, np.cos]

@tm.jit
def f(x):
    for number in range(8):
        x = OPS[number % 4](x * (number + 0.5)).sum(0, keepdims=True) * x
    return x

f(np.ones((3, 4)))
ready = hands.Worker()
print(ready.process.pid)
"""


@pytest.mark.parametrize("ending", ["", "os.kill(os.getpid(), 9)", "sys.exit(3)"])
def test_a_script_without_a_guard_leaves_no_worker(ending: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT) + "sys.stdout.flush()\n" + ending],
        capture_output=True,
        text=True,
        env={**os.environ, "TRACEMILL_CACHE": "off"},
    )
    lines = done.stdout.split("\n")
    assert lines[0] == "module runs once"
    assert lines.count("module runs once") == 1
    deadline = time.monotonic() + 60
    while os.path.exists(f"/proc/{lines[1]}") and time.monotonic() < deadline:
        os.sched_yield()
    assert not os.path.exists(f"/proc/{lines[1]}"), done.stderr
