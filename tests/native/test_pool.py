"""The thread pool: every iteration once, for many callers, across forks, cancelled in time."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any

import pytest

from tracemill.backends.llvm.native.control import Control
from tracemill.backends.llvm.native.language import Ptr, fetch_add, i64, pointer, ref, store_release
from tracemill.backends.llvm.native.memory import Words


def count_up(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    cells = pointer(Ptr[i64], args[0])
    for index in range(begin, end):
        fetch_add(ref(cells[index]), 1)


def slow_count(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    cells = pointer(Ptr[i64], args[0])
    for index in range(begin, end):
        for turn in range(2000):
            store_release(ref(cells[index]), turn)
        fetch_add(ref(cells[index]), 1)


def fails_at(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    for index in range(begin, end):
        if index == args[0]:
            ctl.fail(ctl, 7, 3, index, begin, end)
            return


def forever(ctl: Control, args: Ptr[i64], begin: i64, end: i64) -> None:
    while ctl.poll(ctl) == 0:
        pass


def run(runtime: Any, code: Any, name: str, count: int, grain: int, threads: int = 0) -> list[int]:
    cells = (ctypes.c_int64 * count)()
    args = Words([ctypes.addressof(cells)])
    runtime.launch(
        runtime.control_block(), code.address_of(name), args.address, count, grain, threads
    )
    return list(cells)


@pytest.fixture
def code(compiled: Any) -> Any:
    return compiled(count_up, slow_count, fails_at, forever)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_iteration_runs_once(runtime: Any, code: Any, threads: int) -> None:
    runtime.set_num_threads(threads)
    try:
        for count in (0, 1, 2, 7, 100, 1001):
            for grain in (1, 3, 64, 5000):
                assert run(runtime, code, "count_up", count, grain) == [1] * count
    finally:
        runtime.set_num_threads(2)


def test_many_python_threads_use_the_pool_at_once(runtime: Any, code: Any) -> None:
    runtime.set_num_threads(4)
    failures = []

    def work() -> None:
        for _ in range(200):
            if run(runtime, code, "count_up", 300, 7) != [1] * 300:
                failures.append(1)

    callers = [threading.Thread(target=work) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    runtime.set_num_threads(2)
    assert not failures
    assert not any(caller.is_alive() for caller in callers)


def test_the_pool_wakes_after_it_fell_asleep(runtime: Any, code: Any) -> None:
    run(runtime, code, "slow_count", 64, 1)
    deadline = time.monotonic() + 10
    while runtime._pool["sleepers"] == 0:
        assert time.monotonic() < deadline, "idle workers keep spinning"
        os.sched_yield()
    assert run(runtime, code, "slow_count", 64, 1) == [2000] * 64


def test_the_first_failure_is_kept_and_stops_the_job(runtime: Any, code: Any) -> None:
    ctl = runtime.control_block()
    args = Words([500])
    runtime.launch(ctl, code.address_of("fails_at"), args.address, 10**9, 10)
    assert (ctl["error_state"], ctl["error_code"], ctl["error_node"]) == (2, 7, 3)
    words = (ctypes.c_int64 * 3).from_address(ctl.field("error_words"))
    place, begin, end = words
    assert place == 500
    assert begin <= 500 < end
    assert ctl["cancel"] == 1


def test_a_deadline_ends_a_kernel(runtime: Any, code: Any) -> None:
    ctl = runtime.control_block()
    ctl["deadline"] = time.monotonic_ns() + 20_000_000
    began = time.monotonic()
    runtime.launch(ctl, code.address_of("forever"), 0, 2, 1)
    assert ctl["error_code"] == -1
    assert 0.015 < time.monotonic() - began < 5


def test_a_forked_child_starts_workers_of_its_own(runtime: Any, code: Any) -> None:
    assert run(runtime, code, "slow_count", 64, 1) == [2000] * 64
    child = os.fork()
    if child == 0:
        good = all(run(runtime, code, "slow_count", 64, 1) == [2000] * 64 for _ in range(5))
        os._exit(0 if good and runtime._pool["started"] == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert run(runtime, code, "slow_count", 64, 1) == [2000] * 64


def test_sizes_that_make_no_sense_are_refused(runtime: Any) -> None:
    for threads in (0, -1, 10**6):
        with pytest.raises(ValueError, match="expected 1 to 4096 threads"):
            runtime.set_num_threads(threads)


def test_a_launch_is_spread_over_no_more_threads_than_its_work_is_worth(runtime: Any) -> None:
    runtime.set_num_threads(4)
    assert runtime.spread(1000, 1, 100) == (1000, 1)
    assert runtime.spread(1000, 1, 20_000) == (84, 3)
    assert runtime.spread(1000, 200, 10**9) == (200, 4)
