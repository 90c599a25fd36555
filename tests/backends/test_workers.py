"""Compile workers: the same code as here, one that dies names its kernel, none is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kernel_runner import sym
from tracemill.backends.cpu import crew, worker
from tracemill.backends.cpu.backend import CpuBackend
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
    crew._end_all()


def test_kernels_of_a_few_scalars_are_not_optimised() -> None:
    assert not worker.is_light(chain(1))
    n, i = 3, sym("i")
    body = (Load("a", "x", (i,), F32), Store("o", (i,), "a"))
    params = (Parameter("x", F32, (n,), "in"), Parameter("o", F32, (n,), "out"))
    small = Kernel("small", params, (), (Parallel("i", n, body),))
    assert worker.is_light(small)
    assert not worker.is_light(replace(small, body=(Parallel("i", 17, body),)))
    assert not worker.is_light(replace(small, body=(Parallel("j", 6, small.body),)))
    assert CpuBackend().compile_kernels([small]).compiled == 1


def started() -> subprocess.Popen[bytes]:
    """A worker that has said it is ready."""
    return crew._start(crew._crew)


def codes(kernels: list[Kernel]) -> list[bytes]:
    made: dict[int, bytes] = {}
    crew.compile_all(kernels, host_machine(), made.__setitem__)
    return [made[number] for number in range(len(kernels))]


def job(kernel: Kernel) -> Any:
    return crew._Job(0, kernel, host_machine(), None)


def test_a_worker_makes_the_code_that_is_made_here() -> None:
    process = started()
    for kernel in KERNELS[:3]:
        assert crew._ask(process, job(kernel)) == worker.compiled(kernel, host_machine())
    crew._end(process)


def test_a_list_is_shared_and_every_kernel_gets_its_own_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    ask = crew._ask
    first = threading.Event()

    def counted(process: Any, job: Any) -> Any:
        asked.append(job.number)
        first.set()
        return ask(process, job)

    here = worker.compiled

    def patient(kernel: Kernel, machine: Any) -> bytes:
        assert first.wait(60)  # so that the worker has its share on any machine
        return here(kernel, machine)

    monkeypatch.setattr(crew, "_ask", counted)
    monkeypatch.setattr(worker, "compiled", patient)
    made = codes(KERNELS)
    assert made == [here(kernel, host_machine()) for kernel in KERNELS]
    assert asked


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
    process = started()
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(process.pid, signal.SIGABRT)
    os.kill(process.pid, signal.SIGCONT)
    answer = crew._ask(process, job(KERNELS[0]))
    assert isinstance(answer, crew.WorkerDied)
    assert "SIGABRT" in str(answer)
    error = crew._stopped(KERNELS[0], answer)
    assert isinstance(error, CompileError)
    assert KERNELS[0].name in str(error)
    crew._end(process)


def test_the_kernel_is_not_blamed_for_a_worker_ended_from_outside() -> None:
    process = started()
    os.kill(process.pid, signal.SIGSTOP)
    os.kill(process.pid, signal.SIGKILL)
    assert crew._ask(process, job(KERNELS[0])) is None
    assert process.poll() is not None
    crew._end(process)


def test_an_interrupted_list_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(kernel: Kernel, machine: Any) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(worker, "compiled", interrupted)
        with pytest.raises(KeyboardInterrupt):
            codes(KERNELS)
    assert crew._crew.jobs.empty()
    assert len(codes(KERNELS)) == len(KERNELS)


def test_a_list_ends_with_the_worker_that_dies_and_the_next_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    died = crew.WorkerDied("LLVM ERROR: planted")
    taken = threading.Event()

    def dies(process: Any, job: Any) -> Any:
        taken.set()
        return died

    here = worker.compiled

    def patient(kernel: Kernel, machine: Any) -> bytes:
        assert taken.wait(60)
        return here(kernel, machine)

    with monkeypatch.context() as patched:
        patched.setattr(crew, "_ask", dies)
        patched.setattr(worker, "compiled", patient)
        with pytest.raises(CompileError, match=r"(?s)chain_.*planted"):
            codes(KERNELS)
    assert crew._crew.jobs.empty()
    assert len(codes(KERNELS)) == len(KERNELS)


def test_what_code_generation_raises_is_raised_here(monkeypatch: pytest.MonkeyPatch) -> None:
    process = started()
    bad = Kernel("bad", (), (), (Store("nowhere", (), "nothing"),))
    assert crew._ask(process, job(bad)) is None
    assert isinstance(crew._ask(process, job(KERNELS[0])), bytes)
    crew._end(process)
    with pytest.raises(KeyError):
        codes([bad, *KERNELS])
    assert crew._crew.jobs.empty()


def test_without_a_worker_the_work_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "_PROGRAM", "raise SystemExit(3)")
    assert len(codes(KERNELS)) == len(KERNELS)
    deadline = time.monotonic() + 60
    while crew._crew.threads and time.monotonic() < deadline:
        os.sched_yield()
    assert crew._crew.broken
    assert not crew.pays(KERNELS * 100)
    assert len(codes(KERNELS)) == len(KERNELS)


def test_an_idle_worker_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "IDLE_SECONDS", 0.01)
    assert len(codes(KERNELS)) == len(KERNELS)
    deadline = time.monotonic() + 60
    while crew._crew.threads and time.monotonic() < deadline:
        os.sched_yield()
    assert (crew._crew.threads, crew._crew.processes) == (0, [])
    assert len(codes(KERNELS)) == len(KERNELS)


def test_a_worker_ends_when_its_parent_closes_the_pipe() -> None:
    process = started()
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(60) == 0


def test_a_forked_child_has_workers_of_its_own() -> None:
    process = started()
    child = os.fork()
    if child == 0:
        good = crew._crew.processes == [] and len(codes(KERNELS)) == len(KERNELS)
        crew._end_all()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert isinstance(crew._ask(process, job(KERNELS[0])), bytes)
    crew._end(process)


SCRIPT = """
import os, sys, threading
import numpy as np
import tracemill as tm
from tracemill.backends.cpu import crew
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
ready = crew._start(crew._crew)
print(ready.pid)
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
