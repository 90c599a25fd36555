"""Hand-written kernels as machine code against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_runner import Compiled, aligned, sym
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.compiler.kernel.kernel import (
    Check,
    Checked,
    Constant,
    For,
    If,
    IndexValue,
    Kernel,
    Let,
    Load,
    Local,
    Loop,
    Parallel,
    Parameter,
    Scan,
    Store,
    Update,
)
from tracemill.compiler.types import BOOL, C64, F32, F64, I8, I32, I64

pytestmark = pytest.mark.cpu

n, m, i, j = (sym(x) for x in "nmij")
MACHINES = {
    "host": host_machine(),
    "v3": level_machine("x86-64-v3"),
    "v2": level_machine("x86-64-v2"),
}
RNG = np.random.default_rng(5)


def rank1(*params):
    return tuple(
        Parameter(name, dtype, (n,), mode, strided) for name, dtype, mode, strided in params
    )


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def chain(dtype=F32, vector=16, unroll=1, strided=False):
    """o = (x + y) * x."""
    params = rank1(
        ("x", dtype, "in", strided), ("y", dtype, "in", strided), ("o", dtype, "out", strided)
    )
    body = (
        Load("a", "x", (i,), dtype),
        Load("b", "y", (i,), dtype),
        Let("c", "add", ("a", "b"), dtype),
        Let("d", "mul", ("c", "a"), dtype),
        Store("o", (i,), "d"),
    )
    loop = Parallel("i", n, body, vector=vector, unroll=unroll, threads=True)
    return Kernel("chain", params, ("n",), (loop,))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("vector", "unroll"), [(0, 1), (4, 1), (8, 2), (16, 1), (16, 4), (64, 1)])
def test_elementwise_of_every_size_in_chunks(machine, vector, unroll):
    run = Compiled(chain(F32, vector, unroll), MACHINES[machine])
    for size in (*range(71), 1000, 70001):
        x, y, o = floats(size), floats(size), floats(size)
        run(x, y, o, n=size, chunks=[(0, size // 3), (size // 3, size)])
        np.testing.assert_array_equal(o, (x + y) * x)


def test_nothing_outside_the_range_is_written():
    run = Compiled(chain())
    for begin, end in ((3, 40), (16, 17), (0, 0), (5, 5), (31, 64)):
        x, y, o = floats(64), floats(64), floats(64)
        before = o.copy()
        run(x, y, o, n=64, chunks=[(begin, end)])
        before[begin:end] = ((x + y) * x)[begin:end]
        np.testing.assert_array_equal(o, before)


def test_unaligned_arrays():
    run = Compiled(chain())
    for offset in (1, 2, 4, 60):
        x, y, o = (aligned(133, np.float32, offset=offset) for _ in range(3))
        x[:], y[:] = floats(133), floats(133)
        run(x, y, o, n=133, chunks=[(0, 133)])
        np.testing.assert_array_equal(o, (x + y) * x)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [F32, F64, I8, I64, C64], ids=lambda d: d.name)
@pytest.mark.parametrize("step", [1, 2, -1, -3, 0])
def test_strided_arrays(machine, dtype, step):
    run = Compiled(chain(dtype, 16 if not dtype.is_complex else 8, strided=True), MACHINES[machine])
    size = 53
    base = (floats(2, 400) * 9).astype(dtype.numpy)
    x = np.broadcast_to(base[0][:1], size) if step == 0 else base[0][200::step][:size]
    y = base[1][:size]
    o = np.zeros(3 * size, dtype.numpy)[::3]
    with np.errstate(all="ignore"):
        want = (x + y) * x
    run(x, y, o, n=size, chunks=[(0, size)])
    if dtype.is_complex:
        np.testing.assert_allclose(o, want, rtol=1e-5)
    else:
        np.testing.assert_array_equal(o, want)


@pytest.mark.parametrize("machine", MACHINES)
def test_mixed_dtypes_and_bools(machine):
    params = rank1(("x", F32, "in", False), ("k", I8, "in", False), ("p", BOOL, "in", False),
                   ("o", F64, "out", False), ("q", BOOL, "out", False))  # fmt: skip
    body = (
        Load("a", "x", (i,), F32),
        Load("b", "k", (i,), I8),
        Load("c", "p", (i,), BOOL),
        Let("d", "cast", ("b",), F64, {"dtype": F64}),
        Let("e", "cast", ("a",), F64, {"dtype": F64}),
        Let("f", "select", ("c", "d", "e"), F64),
        Let("g", "lt", ("d", "e"), BOOL),
        Store("o", (i,), "f"),
        Store("q", (i,), "g"),
    )
    kernel = Kernel("mixed", params, ("n",), (Parallel("i", n, body, vector=16),))
    run = Compiled(kernel, MACHINES[machine])
    for size in range(50):
        x, k = floats(size) * 50, RNG.integers(-128, 128, size).astype(np.int8)
        p = RNG.integers(0, 2, size).astype(bool)
        o, q = np.zeros(size), np.zeros(size, bool)
        run(x, k, p, o, q, n=size)
        np.testing.assert_array_equal(o, np.where(p, k, x.astype(float)))
        np.testing.assert_array_equal(q, k < x)


def test_loads_and_stores_under_a_mask():
    params = rank1(("x", F32, "in", False), ("p", BOOL, "in", False), ("o", F32, "out", False))
    body = (
        Load("c", "p", (i,), BOOL),
        Constant("z", 7.0, F32),
        Load("a", "x", (i,), F32, mask="c", other="z"),
        Let("h", "not", ("c",), BOOL),
        Let("b", "neg", ("a",), F32),
        Store("o", (i,), "b", mask="h"),
    )
    run = Compiled(Kernel("masks", params, ("n",), (Parallel("i", n, body, vector=16),)))
    for size in range(50):
        x, p, o = floats(size), RNG.integers(0, 2, size).astype(bool), np.ones(size, np.float32)
        run(x, p, o, n=size)
        np.testing.assert_array_equal(o, np.where(p, 1, -7))


@pytest.mark.parametrize("vector", [0, 16])
def test_iota_and_index_arithmetic(vector):
    params = rank1(("o", I64, "out", False))
    for index, want in (
        (i, lambda k: k),
        (3 * i - 5, lambda k: 3 * k - 5),
        (i // 3, lambda k: k // 3),
        ((i - 7) % 5, lambda k: (k - 7) % 5),
        (i // 8 + i % 8, lambda k: k // 8 + k % 8),
    ):
        body = (IndexValue("v", index), Store("o", (i,), "v"))
        run = Compiled(Kernel("iota", params, ("n",), (Parallel("i", n, body, vector=vector),)))
        o = np.zeros(100, np.int64)
        run(o, n=100)
        np.testing.assert_array_equal(o, want(np.arange(100)))


@pytest.mark.parametrize("vector", [0, 16])
@pytest.mark.parametrize("dtype", [I32, I64])
def test_gather_checks_its_indices(vector, dtype):
    params = (
        Parameter("t", F32, (m,), "in"),
        Parameter("k", dtype, (n,), "in"),
        Parameter("o", F32, (n,), "out"),
    )
    body = (
        Load("v", "k", (i,), dtype),
        Load("a", "t", (Checked("v", m),), F32),
        Store("o", (i,), "a"),
    )
    run = Compiled(Kernel("take", params, ("n", "m"), (Parallel("i", n, body, vector=vector),)))
    t, k = floats(23), RNG.integers(-23, 23, 37).astype(dtype.numpy)
    o = np.zeros(37, np.float32)
    assert run(t, k, o, n=37, m=23).failures == []
    np.testing.assert_array_equal(o, t[k])
    for bad in (23, -24, 1000):
        k[30] = bad
        assert run(t, k, o, n=37, m=23).failures[0] == (1, bad, 23)


def test_rows_of_a_table():
    params = (
        Parameter("t", F32, (m, 19), "in"),
        Parameter("k", I64, (n,), "in"),
        Parameter("o", F32, (n, 19), "out"),
    )
    body = (
        Load("v", "k", (i,), I64),
        Parallel("j", 19, (
            Load("a", "t", (Checked("v", m), j), F32),
            Store("o", (i, j), "a"),
        ), vector=16),
    )  # fmt: skip
    run = Compiled(Kernel("rows", params, ("n", "m"), (Parallel("i", n, body, threads=True),)))
    t, k, o = floats(11, 19), RNG.integers(-11, 11, 30), np.zeros((30, 19), np.float32)
    assert run(t, k, o, n=30, m=11, chunks=[(0, 30)]).failures == []
    np.testing.assert_array_equal(o, t[k])
    k[4] = 11
    assert run(t, k, o, n=30, m=11, chunks=[(0, 30)]).failures[0] == (1, 11, 11)


@pytest.mark.parametrize("vector", [0, 16])
def test_checks_report_the_number_of_what_failed(vector):
    params = rank1(("x", F32, "in", False))
    body = (
        Load("a", "x", (i,), F32),
        Constant("z", 0.0, F32),
        Constant("big", 10.0, F32),
        Let("low", "le", ("z", "a"), BOOL),
        Check("low"),
        Let("high", "lt", ("a", "big"), BOOL),
        Check("high"),
    )
    run = Compiled(Kernel("checks", params, ("n",), (Parallel("i", n, body, vector=vector),)))
    x = np.ones(40, np.float32)
    assert run(x, n=40).failures == []
    x[39] = 10
    assert run(x, n=40).failures[0][0] == 2
    x[39] = -1
    assert run(x, n=40).failures[0][0] == 1


def test_transposed_access_is_gathered():
    body = (Load("a", "x", (j, i), F32), Store("o", (i, j), "a"))
    loop = Parallel("i", m, (Parallel("j", n, body, vector=16),))
    params = (Parameter("x", F32, (n, m), "in"), Parameter("o", F32, (m, n), "out"))
    run = Compiled(Kernel("transpose", params, ("n", "m"), (loop,)))
    x, o = floats(37, 21), np.zeros((21, 37), np.float32)
    run(x, o, n=37, m=21)
    np.testing.assert_array_equal(o, x.T)


def test_ordered_loops_and_locals():
    body = (
        Local("t", F32, (8,)),
        For("j", 8, (Load("a", "x", (i, j), F32), Store("t", (7 - j,), "a"))),
        For("k", 8, (Load("b", "t", (sym("k"),), F32), Store("o", (i, sym("k")), "b"))),
    )
    params = (Parameter("x", F32, (n, 8), "in"), Parameter("o", F32, (n, 8), "out"))
    run = Compiled(Kernel("flip", params, ("n",), (Parallel("i", n, body),)))
    x, o = floats(5, 8), np.zeros((5, 8), np.float32)
    run(x, o, n=5)
    np.testing.assert_array_equal(o, x[:, ::-1])


@pytest.mark.parametrize("vector", [0, 8])
def test_loops_carry_values_and_leave_when_all_lanes_are_done(vector):
    body = (
        Load("x0", "x", (i,), F64),
        Constant("zero", 0, I64),
        Constant("one", 1, I64),
        Constant("limit", 1.0, F64),
        Constant("half", 0.5, F64),
        Loop(("v", "count"), ("x0", "zero"), "t", 1000, (
            Let("small", "le", ("v", "limit"), BOOL),
            Let("halved", "mul", ("v", "half"), F64),
            Let("v1", "select", ("small", "v", "halved"), F64),
            Let("more", "add", ("count", "one"), I64),
            Let("c1", "select", ("small", "count", "more"), I64),
        ), ("v1", "c1"), until="small", dtypes=(F64, I64)),
        Store("o", (i,), "count"),
    )  # fmt: skip
    params = rank1(("x", F64, "in", False), ("o", I64, "out", False))
    run = Compiled(Kernel("halve", params, ("n",), (Parallel("i", n, body, vector=vector),)))
    x, o = np.exp2(RNG.integers(0, 60, 37)).astype(float), np.zeros(37, np.int64)
    run(x, o, n=37)
    np.testing.assert_array_equal(o, np.log2(x))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("vector", [0, 16])
def test_scans_run_along_their_axis(reverse, vector):
    scan = Scan(("s",), "sum", "j", m, (Load("a", "x", (j, i), F32),), ("a",),
                (Store("o", (j, i), "s"),), (F32,), reverse)  # fmt: skip
    params = (Parameter("x", F32, (m, n), "in"), Parameter("o", F32, (m, n), "out"))
    run = Compiled(Kernel("scan", params, ("n", "m"), (Parallel("i", n, (scan,), vector=vector),)))
    x, o = floats(9, 37), np.zeros((9, 37), np.float32)
    run(x, o, n=37, m=9)
    want = (
        np.cumsum(x[::-1], 0, dtype=np.float32)[::-1]
        if reverse
        else np.cumsum(x, 0, dtype=np.float32)
    )
    np.testing.assert_array_equal(o, want)


@pytest.mark.parametrize("vector", [0, 16])
def test_updates_meet_in_order(vector):
    params = (
        Parameter("k", I64, (n,), "in"),
        Parameter("x", F32, (n,), "in"),
        Parameter("o", F32, (m,), "inout"),
    )
    body = (
        Load("v", "k", (i,), I64),
        Load("a", "x", (i,), F32),
        Update("o", (Checked("v", m),), "sum", "a"),
    )
    run = Compiled(Kernel("add_at", params, ("n", "m"), (Parallel("i", n, body, vector=vector),)))
    k, x, o = RNG.integers(0, 5, 101), floats(101), np.zeros(5, np.float32)
    want = o.copy()
    np.add.at(want, k, x)
    run(k, x, o, n=101, m=5)
    np.testing.assert_array_equal(o, want)


def test_conditions_choose_a_block():
    body = (
        Load("p", "c", (), BOOL),
        If("p", (Constant("one", 1.0, F32), Store("o", (), "one"))),
    )
    params = (Parameter("c", BOOL, (), "in"), Parameter("o", F32, (), "out"))
    run = Compiled(Kernel("if", params, (), body))
    for value in (False, True):
        o = np.zeros((), np.float32)
        run(np.array(value), o)
        assert o == value


def test_a_long_kernel_asks_and_stops():
    run = Compiled(chain())
    size = 1 << 23
    x = np.ones(size, np.float32)
    o = np.zeros(size, np.float32)
    assert run(x, x, o, n=size, chunks=[(0, size)]).polls >= 4
    o[:] = 0
    run(x, x, o, n=size, chunks=[(0, size)], cancel_at=2)
    assert o[0] == 2
    assert o[-1] == 0


def test_accesses_beyond_two_gigabytes_of_elements_use_wide_arithmetic():
    body = (IndexValue("v", i * 4_000_000_000), Store("o", (i,), "v"))
    run = Compiled(Kernel("wide", rank1(("o", I64, "out", False)), ("n",),
                          (Parallel("i", n, body, vector=8),)))  # fmt: skip
    o = np.zeros(20, np.int64)
    run(o, n=20)
    np.testing.assert_array_equal(o, np.arange(20) * 4_000_000_000)
