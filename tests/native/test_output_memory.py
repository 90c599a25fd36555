"""Memory of large results: taken back and given out again, bounded, and NumPy's in all else."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import resource
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

from native_kernels import KERNELS, addition, array, function, launch, vector_result
from tracemill.backends.llvm.native import memory_handler
from tracemill.backends.llvm.native.encoder import Frame, NativeSpecialisation, OutputSpec, SizeSpec
from tracemill.backends.llvm.native.layout import OutputKind, Size
from tracemill.backends.llvm.native.runtime import NativeRuntime

N = 1 << 16  # 512 KiB
X = np.arange(float(N))


@pytest.fixture
def add(runtime: NativeRuntime, compiled: Any) -> Any:
    return function(runtime, "xy", addition(compiled(*KERNELS)))


def handler(value: Any) -> str:
    name: str = np._core.multiarray.get_handler_name(value)  # type: ignore[attr-defined]
    return name


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.parametrize("shape", [(N,), (N + 1,), (3 << 17,), (1 << 20,)])
def test_a_large_result_is_an_array_as_numpy_makes_them(add: Any, shape: Any) -> None:
    x = np.ones(shape)
    made, usual = add(x, x), x + x
    np.testing.assert_array_equal(made, usual)
    assert made.flags.num == usual.flags.num
    assert made.flags.owndata
    assert (made.base, made.strides, made.dtype) == (None, usual.strides, usual.dtype)
    assert handler(made) == "tracemill"
    assert made.ctypes.data % (4096 if made.nbytes < 4 << 20 else 2 << 20) == 0


def test_small_and_empty_results_are_numpys_own(add: Any) -> None:
    for size in (0, 1, N // 2 - 1):
        assert handler(add(np.ones(size), np.ones(size))) == "default_allocator"


def test_memory_comes_back_with_the_next_call(runtime: NativeRuntime, add: Any) -> None:
    runtime.trim_memory()
    seen = {add(X, X).ctypes.data for _ in range(20)}
    assert len(seen) == 1
    first, second = add(X, X), add(X, X)
    assert first.ctypes.data != second.ctypes.data
    np.testing.assert_array_equal(first, second)
    places = {first.ctypes.data, second.ctypes.data}
    del first, second
    third, fourth = add(X, X), add(X, X)
    assert {third.ctypes.data, fourth.ctypes.data} == places


@pytest.mark.parametrize("size", [N, 1 << 20])
def test_calls_do_not_fault_pages_in(add: Any, size: int) -> None:
    x = np.ones(size)
    for _ in range(3):
        add(x, x)
    before = faults()
    for _ in range(50):
        add(x, x)
    assert faults() - before < 50  # one call that got fresh pages would have 128 or more


def test_large_arenas_come_from_it_too(runtime: NativeRuntime, compiled: Any) -> None:
    code = compiled(*KERNELS)
    frame = Frame()
    x = array(frame)
    out = vector_result(frame, x)
    size, arena = frame.slot(), frame.slot()
    spec = NativeSpecialisation(
        frame,
        (x,),
        (SizeSpec(Size.MUL, x.dims, frame.constant(8), size),),
        outputs=(out,),
        rows=(
            launch(code, "add", x.dims, x.data, x.data, arena),
            launch(code, "add", x.dims, arena, x.data, out.data),
        ),
        arena_bytes=size,
        arena=arena,
    )
    f = function(runtime, "x", spec)
    for value in (X, X[:10].copy(), X):
        np.testing.assert_array_equal(f(value), 3 * value)
    mapped, before = runtime.memory_use.mapped, faults()
    for _ in range(50):
        f(X)
    assert runtime.memory_use.mapped == mapped
    assert faults() - before < 50


def test_what_is_kept_is_bounded(runtime: NativeRuntime, add: Any) -> None:
    limit = runtime.memory_use.limit
    assert 0 < limit <= 512 << 20
    try:
        runtime.set_memory_limit(4 << 20)
        held = [add(X, X) for _ in range(32)]
        for value in held:
            np.testing.assert_array_equal(value, X + X)
        del held, value
        assert 0 < runtime.memory_use.kept <= 4 << 20
        long = np.ones(1 << 20)
        add(long, long)  # larger than the limit by itself
        assert runtime.memory_use.kept <= 4 << 20
        runtime.set_memory_limit(0)
        assert runtime.memory_use.kept == 0
        np.testing.assert_array_equal(add(X, X), X + X)
        assert runtime.memory_use.kept == 0
    finally:
        runtime.set_memory_limit(limit)


def test_the_oldest_goes_first(runtime: NativeRuntime, add: Any) -> None:
    limit = runtime.memory_use.limit
    try:
        runtime.trim_memory()
        runtime.set_memory_limit(3 * 8 * N)
        for factor in (1, 2, 1, 4, 1):  # 4 is larger than the limit and is never kept
            x = np.ones(factor * N)
            add(x, x)
        mapped = runtime.memory_use.mapped
        add(X, X)
        add(np.ones(2 * N), np.ones(2 * N))
        assert runtime.memory_use.mapped == mapped
        x = np.ones(2 * N + N // 2)
        add(x, x)  # pushes the others out
        add(X, X)
        assert runtime.memory_use.mapped == mapped + 2
    finally:
        runtime.set_memory_limit(limit)


def test_memory_does_not_grow_with_calls(runtime: NativeRuntime, add: Any) -> None:
    add(X, X)
    mapped = runtime.memory_use.mapped
    for _ in range(300):
        add(X, X)
    assert runtime.memory_use.mapped == mapped


def test_resizing_and_copying(add: Any) -> None:
    for target in (3, N - 10, N + 10, 8 * N, 0):
        value = add(X, X)
        value.resize(target, refcheck=False)
        expected = (X + X).copy()
        expected.resize(target, refcheck=False)
        np.testing.assert_array_equal(value, expected)
        assert handler(value) == "tracemill"
        value.resize(N, refcheck=False)
        np.testing.assert_array_equal(value[: min(target, N)], expected[:N])
    value = add(X, X)
    np.testing.assert_array_equal(np.resize(value, 2 * N), np.resize(X + X, 2 * N))
    for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), value.copy()):
        np.testing.assert_array_equal(other, value)
        assert handler(other) != "tracemill"
    part = value[N // 2 :: 7]
    del value
    gc.collect()
    add(X, -X)
    np.testing.assert_array_equal(part, (X + X)[N // 2 :: 7])


def test_tracemalloc_sees_large_results(add: Any) -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        value = add(X, X)
        assert tracemalloc.get_traced_memory()[0] - before >= value.nbytes
        del value
        assert tracemalloc.get_traced_memory()[0] - before < X.nbytes
    finally:
        tracemalloc.stop()


def test_impossible_sizes_raise_as_in_numpy(runtime: NativeRuntime, add: Any) -> None:
    for rank, kind in ((3, MemoryError), (4, ValueError), (5, ValueError)):
        frame = Frame()
        x = array(frame)
        out = OutputSpec(OutputKind.ARRAY, np.float64, (x.dims,) * rank, frame.slot())
        f = function(runtime, "x", NativeSpecialisation(frame, (x,), outputs=(out,)))
        with pytest.raises(kind):
            f(X)
    np.testing.assert_array_equal(add(X, X), X + X)


def test_many_threads_share_it(runtime: NativeRuntime, compiled: Any) -> None:
    spec = addition(compiled(*KERNELS))
    f = function(runtime, "xy", spec._replace(work=spec.frame.constant(10**6)))
    wrong: list[int] = []

    def work(number: int) -> None:
        x = np.full(N + 999 * (number % 3), float(number))
        held = []
        for turn in range(100):
            made = f(x, x)
            held.append(made)
            if turn % 3 == 2:
                wrong.extend(number for value in held if (value != 2 * number).any())
                held.clear()

    callers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_forked_child_has_lists_of_its_own(add: Any) -> None:
    kept = add(X, X)
    add(X, X)
    child = os.fork()
    if child == 0:
        good = all((add(X, X) == X + X).all() for _ in range(5)) and (kept == X + X).all()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(add(X, X), kept)


@pytest.mark.processes
def test_arrays_may_outlive_the_interpreter() -> None:
    program = """
        import sys, numpy as np, tracemill as tm

        @tm.jit
        def f(x):
            return x + x

        x = np.ones(1 << 20)
        np.kept = f(x)                      # goes with NumPy's own module
        cycle = [f(x)]
        cycle.append(cycle)
        sys.kept = f(x)
        class Late:
            def __init__(self): self.value = f(x)
            def __del__(self): print(self.value[0], self.value.flags.owndata)
        late = Late()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    said = [line for line in done.stderr.splitlines() if ": compiling " not in line]  # slow ones
    assert (done.returncode, done.stdout, said) == (0, "2.0 True\n", [])


def test_an_unknown_numpy_allocates_for_itself(
    compiled: Any, runtime: NativeRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_handler, "NPY_OWNDATA", 0x8)
    assert memory_handler.handler_unsupported() is not None
    assert runtime.memory_use.refused is None
    handler_address = runtime._process["mem_handler"]
    try:
        runtime._process["mem_handler"] = 0
        f = function(runtime, "xy", addition(compiled(*KERNELS)))
        assert handler(f(X, X)) == "default_allocator"
    finally:
        runtime._process["mem_handler"] = handler_address
