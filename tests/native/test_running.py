"""Rows: arenas, failures, commits, loops, host calls, Variables, interruption, callers at once."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any

import numpy as np
import pytest

from interruption import interrupt_after
from native_kernels import KERNELS, Slow, addition, array, function, launch, vector_result
from tracemill.backends.llvm.native.encoder import (
    CellSpec,
    Frame,
    InputSpec,
    NativeSpecialisation,
    RowSpec,
    SizeSpec,
    array_flags,
)
from tracemill.backends.llvm.native.host import ArrayCall
from tracemill.backends.llvm.native.layout import Cell, Kind, RowKind, Size, Source
from tracemill.backends.llvm.native.memory import Record, Words

X, Y = np.arange(8.0), np.linspace(2, 3, 8)


@pytest.fixture
def code(compiled: Any) -> Any:
    return compiled(*KERNELS)


def chain(code: Any, work_ns: int = 0) -> NativeSpecialisation:
    """(x + y) + y, with x + y in the arena."""
    frame = Frame()
    x, y = array(frame, 0), array(frame, 1)
    out = vector_result(frame, x)
    size, arena, middle = frame.slot(), frame.slot(), frame.slot()
    work = frame.constant(work_ns)
    return NativeSpecialisation(
        frame,
        (x, y),
        (
            SizeSpec(Size.EQUAL, x.dims, y.dims),
            SizeSpec(Size.MUL, x.dims, frame.constant(8), size),
            SizeSpec(Size.ALIGN, size, target=size),
            SizeSpec(Size.ADD, size, frame.constant(64), size),
        ),
        addresses=(SizeSpec(Size.ADD, arena, frame.constant(64), middle),),
        outputs=(out,),
        rows=(
            launch(code, "add", x.dims, x.data, y.data, middle, work=work),
            launch(code, "add", x.dims, middle, y.data, out.data, work=work),
        ),
        arena_bytes=size,
        arena=arena,
        work=work,
        keep=(code,),
    )


def test_the_arena_grows_with_the_call(runtime: Any, code: Any) -> None:
    f = function(runtime, "xy", chain(code))
    for count in (8, 3, 100_000, 0, 5):
        x, y = np.arange(float(count)), np.ones(count)
        np.testing.assert_array_equal(f(x, y), x + y + y)


def test_callers_at_once_have_arenas_of_their_own(runtime: Any, code: Any) -> None:
    f = function(runtime, "xy", chain(code, work_ns=10**6))  # releases the GIL, uses the pool
    wrong = []

    def work(number: int) -> None:
        x, y = np.full(20_000, float(number)), np.ones(20_000)
        for _ in range(100):
            if not (f(x, y) == number + 2.0).all():
                wrong.append(number)

    callers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


def test_a_specialisation_may_be_removed_while_it_runs(runtime: Any, code: Any) -> None:
    frame = Frame()
    started, removed = threading.Event(), threading.Event()

    def between() -> None:
        started.set()
        assert removed.wait(20)

    spec = chain(code)
    host = RowSpec(RowKind.HOST, callable=ArrayCall(between, ()))
    f = function(runtime, "xy", spec._replace(rows=(spec.rows[0], host, spec.rows[1])))
    results = []
    caller = threading.Thread(target=lambda: results.append(f(X, Y)))
    caller.start()
    assert started.wait(20)
    runtime.remove(f, f._installed[0])
    del spec, frame
    removed.set()
    caller.join()
    np.testing.assert_array_equal(results[0], X + Y + Y)
    with pytest.raises(Slow):
        f(X, Y)


def test_a_frame_larger_than_the_stack_room(runtime: Any, code: Any) -> None:
    spec = chain(code)
    spec.frame.slot(1000)
    f = function(runtime, "xy", spec)
    for _ in range(3):
        np.testing.assert_array_equal(f(X, Y), X + Y + Y)


def checked(code: Any) -> NativeSpecialisation:
    """Fails for negative elements of x, then o += x."""
    frame = Frame()
    x = array(frame, 0)
    target = array(frame, 1, flags=array_flags(contiguous=True, writeable=True))
    return NativeSpecialisation(
        frame,
        (x, target),
        (SizeSpec(Size.EQUAL, x.dims, target.dims),),
        overlaps=((0, 1),),
        rows=(
            launch(code, "refuse_negative", x.dims, x.data),
            launch(code, "add", x.dims, x.data, target.data, target.data),
        ),
        outputs=(vector_result(frame, x),),
    )


def test_a_failed_check_raises_and_commits_nothing(runtime: Any, code: Any) -> None:
    f = function(runtime, "xo", checked(code))
    target = np.zeros(8)
    f(X, target)
    np.testing.assert_array_equal(target, X)
    with pytest.raises(ArithmeticError) as caught:
        f(X - 3.0, target)
    assert caught.value.args == (5, 2, 0, 0, 0)
    np.testing.assert_array_equal(target, X)
    f(X, target)
    np.testing.assert_array_equal(target, 2 * X)


def endless(code: Any, work_ns: int) -> NativeSpecialisation:
    frame = Frame()
    work = frame.constant(work_ns)
    rows = (launch(code, "forever", frame.constant(4), work=work),)
    return NativeSpecialisation(frame, rows=rows, work=work)


def test_interrupting_a_long_kernel(runtime: Any, code: Any) -> None:
    f = function(runtime, "", endless(code, work_ns=10**9))
    g = function(runtime, "xy", addition(code))
    with interrupt_after(0.15) as sent, pytest.raises(KeyboardInterrupt):
        f()
    assert time.monotonic() - sent[0] < 0.5
    np.testing.assert_array_equal(g(X, Y), X + Y)


def test_a_time_limit(runtime: Any, code: Any) -> None:
    f = function(runtime, "", endless(code, work_ns=10**9))
    runtime.set_time_limit(f, 0.02)
    with pytest.raises(ArithmeticError) as caught:
        f()
    assert caught.value.args[0] == -1


def test_host_calls_see_arrays_and_may_raise(runtime: Any, code: Any) -> None:
    frame = Frame()
    x = array(frame, 0)
    seen = []

    def show(values: np.ndarray[Any, Any]) -> None:
        if values.sum() == 0:
            raise LookupError("nothing to show")
        seen.append(values.copy())

    call = ArrayCall(show, ((np.dtype(np.float64), 1),))
    rows = (RowSpec(RowKind.HOST, words=(x.data, x.dims), callable=call),)
    out = vector_result(frame, x)
    add = launch(code, "add", x.dims, x.data, x.data, out.data)
    for work in (0, 10**9):
        spec = NativeSpecialisation(
            frame, (x,), outputs=(out,), rows=(*rows, add), work=frame.constant(work)
        )
        f = function(runtime, "x", spec)
        np.testing.assert_array_equal(f(X), 2 * X)
        np.testing.assert_array_equal(seen.pop(), X)
        with pytest.raises(LookupError, match="nothing to show"):
            f(np.zeros(3))
        np.testing.assert_array_equal(f(Y), 2 * Y)


def test_a_loop_of_rows(runtime: Any, code: Any) -> None:
    """count down from n; out = x added n times to zeros"""
    frame = Frame()
    x = array(frame, 0)
    turns = frame.slot(2)
    number = InputSpec(Source.ARGUMENT, Kind.INT, origin=1, value=turns)
    out = vector_result(frame, x)
    bytes_, scratch = frame.slot(), frame.slot()
    copy = RowSpec(RowKind.COPY, words=(out.data, scratch, bytes_))
    spec = NativeSpecialisation(
        frame,
        (x, number),
        (SizeSpec(Size.MUL, x.dims, frame.constant(8), bytes_),),
        later_sizes=(SizeSpec(Size.SUB, turns, frame.constant(1), turns),),
        outputs=(out,),
        rows=(
            RowSpec(RowKind.ALLOC, target=scratch, extent=bytes_),
            launch(code, "scale", x.dims, x.data, frame.constant(np.zeros(1).ctypes.data), scratch),
            RowSpec(RowKind.JUMP_IF_ZERO, extent=turns, target=6),
            launch(code, "add", x.dims, x.data, scratch, scratch),
            RowSpec(RowKind.COMPUTE, first=0, length=1),
            RowSpec(RowKind.JUMP, target=2),
            copy,
            RowSpec(RowKind.FREE, target=scratch),
        ),
    )
    f = function(runtime, "xn", spec)
    for count in (0, 1, 5):
        np.testing.assert_array_equal(f(X, count), X * count)


class Variable:
    """Two buffers behind a cell."""

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self.buffers = [value.copy(), value.copy()]
        self.dims = Words(value.shape)
        self.cell = Record(Cell)
        self.cell["data"], self.cell["spare"] = (buffer.ctypes.data for buffer in self.buffers)
        self.cell["ndim"], self.cell["dims"] = value.ndim, self.dims.address

    @property
    def value(self) -> np.ndarray[Any, Any]:
        return next(b for b in self.buffers if b.ctypes.data == self.cell["data"])


def update(code: Any, variable: Variable, swap: bool) -> NativeSpecialisation:
    """v += x after a check of x; in place, or into the spare buffer and swapped."""
    frame = Frame()
    x = array(frame, 0)
    data, spare, dims = frame.slot(), frame.slot(), frame.slot()
    use = CellSpec(variable.cell.address, 1, data, dims, spare if swap else -1, written=True)
    add = launch(code, "add", x.dims, data, x.data, spare if swap else data)
    check = launch(code, "refuse_negative", x.dims, x.data)
    swapped = RowSpec(RowKind.SWAP, cell=variable.cell.address, extent=data)
    return NativeSpecialisation(
        frame,
        (x,),
        (SizeSpec(Size.EQUAL, x.dims, dims),),
        cells=(use,),
        rows=(add, check, swapped) if swap else (check, add),
        outputs=(vector_result(frame, x),),
        keep=(variable,),
    )


@pytest.mark.parametrize("swap", [False, True])
def test_variables_change_only_when_a_call_succeeds(runtime: Any, code: Any, swap: bool) -> None:
    variable = Variable(Y)
    f = function(runtime, "x", update(code, variable, swap))
    f(X)
    np.testing.assert_array_equal(variable.value, Y + X)
    with pytest.raises(ArithmeticError):
        f(X - 1)
    np.testing.assert_array_equal(variable.value, Y + X)
    f(X)
    np.testing.assert_array_equal(variable.value, Y + X + X)
    assert variable.cell["version"] == 2
    assert variable.cell["lock"] & 0xFFFFFFFF == 0
    variable.cell["ndim"] = 2
    with pytest.raises(Slow):
        f(X)
    variable.cell["ndim"], variable.cell["data"] = 1, 0
    with pytest.raises(Slow):
        f(X)


def test_a_locked_variable_makes_calls_wait(runtime: Any, code: Any) -> None:
    variable = Variable(Y)
    f = function(runtime, "x", update(code, variable, swap=False))
    runtime.acquire(variable.cell.address, False)
    done = threading.Event()
    caller = threading.Thread(target=lambda: (f(X), done.set()))
    caller.start()
    assert not done.wait(0.05)
    runtime.release(variable.cell.address, False)
    assert done.wait(20)
    caller.join()
    np.testing.assert_array_equal(variable.value, Y + X)


def test_a_lock_held_across_a_fork_is_free_in_the_child(runtime: Any, code: Any) -> None:
    variable = Variable(Y)
    f = function(runtime, "x", update(code, variable, swap=False))
    runtime.acquire(variable.cell.address, True)
    child = os.fork()
    if child == 0:
        f(X)
        os._exit(0 if (variable.value == Y + X).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    runtime.release(variable.cell.address, True)
    f(X)


def test_variables_from_many_threads_lose_no_update(runtime: Any, code: Any) -> None:
    variable = Variable(np.zeros(8))
    spec = update(code, variable, swap=True)
    slow_spec = spec._replace(work=spec.frame.constant(10**6))
    f = function(runtime, "x", slow_spec)

    def work() -> None:
        for _ in range(200):
            f(X)

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    np.testing.assert_array_equal(variable.value, X * 800)
    assert ctypes.c_int64.from_address(variable.cell.field("version")).value == 800
