"""Reductions as machine code: the defined tree bit for bit, rows, columns, any order."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from kernel_runner import Compiled, sym
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.compiler.kernel.kernel import (
    IndexValue,
    Kernel,
    Let,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Store,
)
from tracemill.compiler.kernel.monoids import fold
from tracemill.compiler.types import F32, F64, I8, I32, I64

pytestmark = pytest.mark.cpu

n, m, i, j = (sym(x) for x in "nmij")
MACHINES = {
    "host": host_machine(),
    "v3": level_machine("x86-64-v3"),
    "v2": level_machine("x86-64-v2"),
}
RNG = np.random.default_rng(5)
KEPT = []  # memory of arrays with a guard behind them


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def reduction(monoid, dtype, vector, heavy=False, extent=None, **marks):
    """r = reduce over x."""
    yields = [Load("a", "x", (i,), dtype)]
    name = "a"
    if heavy:
        for k in range(30):
            yields.append(Let(f"h{k}", "neg", (name,), dtype))
            name = f"h{k}"
    reduce = Reduce(
        ("r",), monoid, "i", extent or n, tuple(yields), (name,), (dtype,), vector=vector, **marks
    )
    params = (Parameter("x", dtype, (extent or n,), "in"), Parameter("o", dtype, (), "out"))
    return Kernel("reduce", params, ("n",), (reduce, Store("o", (), "r")))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("vector", [0, 4, 8, 16, 64])
def test_sums_are_the_defined_tree_bit_for_bit(machine, vector, heavy):
    run = Compiled(reduction("sum", F32, vector, heavy), MACHINES[machine])
    for size in (*range(1, 70), 128, 191, 4095, 4096, 4097, 8192, 3 * 4096 + 5, 5 * 4096 + 777):
        x, o = floats(size), np.zeros((), np.float32)
        run(x, o, n=size)
        assert o == fold(lambda a, b: a + b, list(x)), size
    o = np.ones((), np.float32)
    run(floats(0), o, n=0)
    assert o == 0
    assert not np.signbit(o)


@pytest.mark.parametrize("extent", [1, 5, 16, 17, 64, 100, 4096, 5000])
@pytest.mark.parametrize("vector", [0, 16])
def test_sums_of_known_length(extent, vector):
    run = Compiled(reduction("sum", F32, vector, extent=extent))
    x, o = floats(extent), np.zeros((), np.float32)
    run(x, o, n=0)
    assert o == fold(lambda a, b: a + b, list(x))


@pytest.mark.parametrize("monoid", ["max", "min", "prod"])
@pytest.mark.parametrize("vector", [0, 16])
def test_other_float_monoids(monoid, vector):
    run = Compiled(reduction(monoid, F32, vector))
    ufunc = {"max": np.maximum, "min": np.minimum, "prod": np.multiply}[monoid]
    for size in (1, 5, 63, 64, 65, 1000, 5000):
        x, o = np.exp(floats(size) / 99), np.zeros((), np.float32)
        run(x, o, n=size)
        np.testing.assert_allclose(o, ufunc.reduce(x), rtol=1e-4 if monoid == "prod" else 0)
        x[size // 2] = np.nan
        run(x, o, n=size)
        assert np.isnan(o)


@pytest.mark.parametrize("vector", [0, 16])
@pytest.mark.parametrize("monoid", ["sum", "prod", "max", "min"])
def test_integer_monoids_in_any_order(vector, monoid):
    run = Compiled(reduction(monoid, I32, vector))
    ufunc = {"max": np.maximum, "min": np.minimum, "prod": np.multiply, "sum": np.add}[monoid]
    for size in (*range(1, 70), 5000):
        x = RNG.integers(-(1 << 31), 1 << 31, size).astype(np.int32)
        o = np.zeros((), np.int32)
        run(x, o, n=size)
        assert o == ufunc.reduce(x, dtype=np.int32)


@pytest.mark.parametrize("vector", [0, 8])
def test_argmax_takes_the_first_and_nan_wins(vector):
    body = (Load("a", "x", (i,), F64), IndexValue("k", i))
    reduce = Reduce(("v", "w"), "argmax", "i", n, body, ("a", "k"), (F64, I64), vector=vector)
    params = (Parameter("x", F64, (n,), "in"), Parameter("o", I64, (), "out"))
    run = Compiled(Kernel("argmax", params, ("n",), (reduce, Store("o", (), "w"))))
    for size in (*range(1, 40), 500):
        x, o = RNG.integers(0, 9, size).astype(float), np.zeros((), np.int64)
        run(x, o, n=size)
        assert o == np.argmax(x)
        x[size // 2 :: 3] = np.nan
        run(x, o, n=size)
        assert o == np.argmax(x)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [F32, F64, I32])
def test_column_sums(machine, dtype):
    reduce = Reduce(("r",), "sum", "i", n, (Load("a", "x", (i, j), dtype),), ("a",), (dtype,))
    loop = Parallel("j", m, (reduce, Store("o", (j,), "r")), vector=16, unroll=2, threads=True)
    params = (Parameter("x", dtype, (n, m), "in"), Parameter("o", dtype, (m,), "out"))
    run = Compiled(Kernel("columns", params, ("n", "m"), (loop,)), MACHINES[machine])
    for rows, columns in ((1, 5), (3, 40), (64, 33), (65, 1), (200, 50), (4200, 35)):
        x, o = (floats(rows, columns) * 99).astype(dtype.numpy), np.zeros(columns, dtype.numpy)
        run(x, o, n=rows, m=columns, chunks=[(0, columns // 2), (columns // 2, columns)])
        want = fold(lambda a, b: a + b, list(x))
        np.testing.assert_array_equal(o, want)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("dtype", "monoid"), [(F32, "sum"), (F64, "prod"), (F32, "max"), (I32, "sum")]
)
def test_short_sums_of_rows_that_all_results_share(machine, dtype, monoid):
    k = sym("k")
    body = (
        Load("a", "x", (i, k), dtype),
        Load("b", "y", (k, j), dtype),
        Let("c", "mul", ("a", "b"), dtype),
    )
    reduce = Reduce(("r",), monoid, "k", sym("l"), body, ("c",), (dtype,))
    lanes = Parallel("j", m, (reduce, Store("o", (i, j), "r")), vector=8, unroll=4)
    params = (
        Parameter("x", dtype, (n, sym("l")), "in"),
        Parameter("y", dtype, (sym("l"), m), "in"),
        Parameter("o", dtype, (n, m), "out"),
    )
    kernel = Kernel("pairs", params, ("n", "m", "l"), (Parallel("i", n, (lanes,)),))
    run = Compiled(kernel, MACHINES[machine])
    join = {"sum": np.add, "prod": np.multiply, "max": np.maximum}[monoid]
    for length in (*range(1, 12), 28, 63, 64, 65, 200, 4100):
        x, y = ((floats(*shape) * 9).astype(dtype.numpy) for shape in ((2, length), (length, 43)))
        o = np.zeros((2, 43), dtype.numpy)
        with np.errstate(all="ignore"):
            run(x, y, o, n=2, m=43, l=length)
            want = fold(join, list((x[:, :, None] * y[None]).swapaxes(0, 1)))
        np.testing.assert_array_equal(o, want)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("columns", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", [F32, F64, I32, I8])
def test_columns_of_few_are_picked_out_of_rows(machine, columns, dtype):
    loads = tuple(Load(f"a{c}", "x", (i, c), dtype) for c in range(columns))
    names = tuple(a.name for a in loads)
    total = tuple(f"r{c}" for c in range(columns))
    reduce = Reduce(total, "sum", "i", n, loads, names, (dtype,) * columns, vector=16)
    stores = tuple(Store("o", (c,), name) for c, name in enumerate(total))
    params = (Parameter("x", dtype, (n, columns), "in"), Parameter("o", dtype, (columns,), "out"))
    run = Compiled(Kernel("few", params, ("n",), (reduce, *stores)), MACHINES[machine])
    for size in (*range(20), 63, 64, 65, 5000):
        x, o = at_the_end_of_a_page(floats(size, columns) * 99, dtype), np.ones(columns)
        o = o.astype(dtype.numpy)
        run(x, o, n=size)
        with np.errstate(all="ignore"):
            want = fold(lambda a, b: a + b, list(x)) if size else np.zeros(columns)
        np.testing.assert_array_equal(o, want)


def at_the_end_of_a_page(values, dtype):
    """The array where reading one byte beyond it ends the process."""
    size = values.size * dtype.itemsize
    whole = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, whole + mmap.PAGESIZE)
    KEPT.append(memory)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + whole), mmap.PAGESIZE, 0)
    made = np.frombuffer(memory, dtype.numpy, values.size, whole - size).reshape(values.shape)
    made[...] = values.astype(dtype.numpy)
    return made


@pytest.mark.parametrize("rows", [255, 256, 257, 600, 4096 + 300])
def test_columns_of_integers_and_floats_in_groups_of_rows(rows):
    for dtype in (F32, F64, I32):
        reduce = Reduce(("r",), "sum", "i", n, (Load("a", "x", (i, j), dtype),), ("a",), (dtype,))
        loop = Parallel("j", m, (reduce, Store("o", (j,), "r")), vector=8, threads=True)
        params = (Parameter("x", dtype, (n, m), "in"), Parameter("o", dtype, (m,), "out"))
        run = Compiled(Kernel("columns", params, ("n", "m"), (loop,)))
        x, o = (floats(rows, 37) * 99).astype(dtype.numpy), np.zeros(37, dtype.numpy)
        run(x, o, n=rows, m=37, chunks=[(0, 37)])
        np.testing.assert_array_equal(o, fold(lambda a, b: a + b, list(x)))


def softmax(vector):
    load = lambda name: Load(name, "x", (i, j), F32)
    body = (
        Reduce(("top",), "max", "j", m, (load("a"),), ("a",), (F32,), vector=vector),
        Reduce(("total",), "sum", "k", m, (
            Load("b", "x", (i, sym("k")), F32),
            Let("c", "sub", ("b", "top"), F32),
            Let("d", "exp", ("c",), F32),
        ), ("d",), (F32,), vector=vector),
        Parallel("l", m, (
            Load("e", "x", (i, sym("l")), F32),
            Let("f", "sub", ("e", "top"), F32),
            Let("g", "exp", ("f",), F32),
            Let("h", "div", ("g", "total"), F32),
            Store("y", (i, sym("l")), "h"),
        ), vector=vector),
    )  # fmt: skip
    params = (Parameter("x", F32, (n, m), "in"), Parameter("y", F32, (n, m), "out"))
    return Kernel("softmax", params, ("n", "m"), (Parallel("i", n, body, threads=True),))


@pytest.mark.parametrize("vector", [0, 8, 16])
def test_row_softmax(vector):
    run = Compiled(softmax(vector))
    for rows, columns in ((1, 1), (3, 7), (4, 64), (2, 100), (3, 5000)):
        x, y = floats(rows, columns) * 4, np.zeros((rows, columns), np.float32)
        run(x, y, n=rows, m=columns, chunks=[(0, rows)])
        e = np.exp(x.astype(float) - x.max(1, keepdims=True))
        np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200, 4097, 3 * 4096 + 9])
def test_several_column_reductions_share_a_loop(rows):
    """mean, then sum of squares around it, of every column; and the maximum."""
    load = lambda name, axis: Load(name, "x", (sym(axis), j), F32)
    body = (
        Reduce(("s",), "sum", "i", n, (load("a", "i"),), ("a",), (F32,)),
        Reduce(("q",), "sum", "k", n, (
            load("b", "k"),
            Let("d", "sub", ("b", "s"), F32),
            Let("e", "mul", ("d", "d"), F32),
        ), ("e",), (F32,)),
        Reduce(("t", "at"), "argmax", "l", n, (load("c", "l"), IndexValue("w", sym("l"))),
               ("c", "w"), (F32, I64)),
        Store("o", (j,), "q"),
        Store("p", (j,), "at"),
    )  # fmt: skip
    loop = Parallel("j", m, body, vector=16, threads=True)
    params = (Parameter("x", F32, (n, m), "in"), Parameter("o", F32, (m,), "out"),
              Parameter("p", I64, (m,), "out"))  # fmt: skip
    run = Compiled(Kernel("columns", params, ("n", "m"), (loop,)))
    for columns in (1, 17, 1100):
        x = floats(rows, columns)
        o, p = np.zeros(columns, np.float32), np.zeros(columns, np.int64)
        run(x, o, p, n=rows, m=columns, chunks=[(0, columns // 3), (columns // 3, columns)])
        total = fold(lambda a, b: a + b, list(x))
        np.testing.assert_array_equal(o, fold(lambda a, b: a + b, list((x - total) ** 2)))
        np.testing.assert_array_equal(p, x.argmax(0))
