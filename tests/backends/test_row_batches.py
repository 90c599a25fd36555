"""Rows and columns that are reduced or scanned side by side: the defined values, whatever the size.

Not here: lone reductions and wide columns (test_reductions.py).
"""

from __future__ import annotations

import numpy as np
import pytest

from kernel_runner import Compiled, sym
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.compiler.dims import minimum
from tracemill.compiler.kernel.kernel import (
    IndexValue,
    Kernel,
    Let,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Scan,
    Store,
)
from tracemill.compiler.kernel.monoids import BLOCK, fold
from tracemill.compiler.types import BOOL, F32, F64, I32, I64

pytestmark = pytest.mark.cpu

n, m, i, j, b = (sym(x) for x in "nmijb")
MACHINES = {"host": host_machine(), "v4": level_machine("x86-64-v4")}
LENGTHS = (*range(12), 15, 16, 17, 24, 31, 32, 33, 60, 63, 64, 65, 100, 128, 300, 4096, 4097, 9000)
JOINS = {"sum": np.add, "prod": np.multiply, "max": np.maximum}


def values(rng, shape, dtype):
    """Random numbers around zero."""
    return (rng.standard_normal(shape) * 9).astype(dtype.numpy)


def rows_kernel(monoid, dtype, vector, words=0):
    """o[i] = reduce of each row, after some words that change nothing."""
    body = [Load("a", "x", (i, j), dtype)]
    for k in range(words):
        body.append(Let(f"h{k}", "neg", (body[-1].name,), dtype))
    reduce = Reduce(("r",), monoid, "j", m, tuple(body), (body[-1].name,), (dtype,), vector=vector)
    loop = Parallel("i", n, (reduce, Store("o", (i,), "r")), threads=True)
    params = (Parameter("x", dtype, (n, m), "in"), Parameter("o", dtype, (n,), "out"))
    return Kernel("rows", params, ("n", "m"), (loop,))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("monoid", "dtype", "vector", "words"),
    [("sum", F32, 16, 0), ("sum", F64, 8, 0), ("prod", F32, 16, 2), ("sum", F32, 16, 30),
     ("max", F32, 16, 0), ("sum", I32, 16, 0), ("sum", F32, 8, 0), ("sum", F32, 32, 0)],
)  # fmt: skip
def test_every_row_of_a_batch_is_the_defined_tree(machine, monoid, dtype, vector, words, rng):
    run = Compiled(rows_kernel(monoid, dtype, vector, words), MACHINES[machine])
    for length in LENGTHS:
        x = values(rng, (37, length), dtype)
        if monoid == "prod":
            x = np.exp(x / 99).astype(dtype.numpy)
        if monoid == "max" and not length:
            continue
        o = np.ones(37, dtype.numpy)
        run(x, o, n=37, m=length, chunks=[(0, 3), (3, 36), (36, 37)])
        zero = JOINS[monoid].identity
        want = fold(JOINS[monoid], list(x.T)) if length else np.full(37, zero)
        np.testing.assert_array_equal(o, want, str(length))


@pytest.mark.parametrize("monoid", ["any", "all"])
def test_rows_of_bools(monoid, rng):
    run = Compiled(rows_kernel(monoid, BOOL, 64))
    for length in LENGTHS:
        for share in (0.0, 0.02, 0.98, 1.0):
            x = rng.random((37, length)) < share
            o = np.zeros(37, bool)
            run(x, o, n=37, m=length, chunks=[(0, 37)])
            np.testing.assert_array_equal(o, getattr(np, monoid)(x, axis=1), str(length))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("dtype", "vector"), [(F32, 16), (F64, 8), (I32, 16), (BOOL, 64)])
@pytest.mark.parametrize("monoid", ["argmax", "argmin"])
def test_the_first_place_in_each_row(machine, dtype, vector, monoid, rng):
    body = (Load("a", "x", (i, j), dtype), IndexValue("k", j))
    reduce = Reduce(("v", "w"), monoid, "j", m, body, ("a", "k"), (dtype, I64), vector=vector)
    loop = Parallel("i", n, (reduce, Store("o", (i,), "w")), threads=True)
    params = (Parameter("x", dtype, (n, m), "in"), Parameter("o", I64, (n,), "out"))
    run = Compiled(Kernel("places", params, ("n", "m"), (loop,)), MACHINES[machine])
    for length in LENGTHS[1:]:
        plain = rng.integers(0, 7, (37, length)).astype(dtype.numpy)
        cases = [plain, np.zeros_like(plain)]
        if dtype.is_float:
            with_nan = np.where(rng.random(plain.shape) < 0.1, np.nan, -plain)
            cases += [with_nan.astype(dtype.numpy), np.full_like(plain, np.inf)]
        for x in cases:
            o = np.full(37, -1)
            run(x, o, n=37, m=length, chunks=[(0, 20), (20, 37)])
            np.testing.assert_array_equal(o, getattr(np, monoid)(x, axis=1), str(length))


def test_what_follows_a_row_knows_its_results_in_lanes_and_in_loops(rng):
    """The mean is subtracted in a second reduction and in a loop over the row."""
    load = lambda name, axis: Load(name, "x", (i, sym(axis)), F32)
    body = (
        IndexValue("size", m),
        Let("count", "convert", ("size",), F32),
        Reduce(("total",), "sum", "j", m, (load("a", "j"),), ("a",), (F32,), vector=16),
        Let("mean", "div", ("total", "count"), F32),
        Reduce(("square",), "sum", "k", m, (
            load("c", "k"), Let("d", "sub", ("c", "mean"), F32), Let("e", "mul", ("d", "d"), F32),
        ), ("e",), (F32,), vector=16),
        Store("o", (i,), "square"),
        Parallel("l", m, (
            load("f", "l"), Let("g", "sub", ("f", "mean"), F32), Store("y", (i, sym("l")), "g"),
        ), vector=16),
    )  # fmt: skip
    params = (
        Parameter("x", F32, (n, m), "in"),
        Parameter("o", F32, (n,), "out"),
        Parameter("y", F32, (n, m), "out"),
    )
    run = Compiled(Kernel("rows", params, ("n", "m"), (Parallel("i", n, body, threads=True),)))
    for length in LENGTHS[1:]:
        x = values(rng, (21, length), F32)
        o, y = np.zeros(21, np.float32), np.zeros_like(x)
        run(x, o, y, n=21, m=length, chunks=[(0, 5), (5, 21)])
        mean = fold(np.add, list(x.T)) / np.float32(length)
        np.testing.assert_array_equal(y, x - mean[:, None])
        np.testing.assert_array_equal(o, fold(np.add, list(y.T * y.T)))


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("monoid", "dtype", "vector"),
    [("sum", F32, 16), ("sum", F64, 8), ("max", F32, 16), ("sum", I32, 16), ("any", BOOL, 64)],
)
def test_few_columns_are_the_defined_tree(machine, monoid, dtype, vector, rng):
    """Blocks of 4,096 rows; a factor for each column, where there are numbers."""
    row = b * BLOCK + i
    body = [Load("a", "x", (row, j), dtype)]
    before = []
    if dtype is not BOOL:
        before = [Load("f", "w", (j,), dtype)]
        body.append(Let("c", "mul", ("a", "f"), dtype))
    name = body[-1].name
    reduce = Reduce(
        ("r",), monoid, "i", minimum(BLOCK, n - b * BLOCK), tuple(body), (name,), (dtype,)
    )
    lanes = Parallel("j", m, (*before, reduce, Store("o", (b, j), "r")), vector=vector, unroll=4)
    blocks = sym("k")
    params = (
        Parameter("x", dtype, (n, m), "in"),
        Parameter("w", dtype, (m,), "in"),
        Parameter("o", dtype, (blocks, m), "out"),
    )
    loop = Parallel("b", blocks, (lanes,), threads=True)
    run = Compiled(Kernel("columns", params, ("n", "m", "k"), (loop,)), MACHINES[machine])
    join = JOINS.get(monoid, np.logical_or)
    for rows in (1, 7, 8, 63, 64, 65, 300, 4096, 4099, 8192 + 77):
        for columns in (1, 2, 9, 10, 16, 33, 64, 65, 100):
            count = -(-rows // BLOCK)
            x = values(rng, (rows, columns), dtype)
            w = values(rng, columns, dtype)
            o = np.zeros((count, columns), dtype.numpy)
            run(x, w, o, n=rows, m=columns, k=count, chunks=[(0, count)])
            whole = x if dtype is BOOL else x * w
            want = [fold(join, list(whole[at : at + BLOCK])) for at in range(0, rows, BLOCK)]
            np.testing.assert_array_equal(o, want, f"{rows} {columns}")


@pytest.mark.parametrize("machine", [*MACHINES, "v3", "v2"])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("monoid", "dtype"), [("sum", F32), ("prod", F64), ("sum", I32)])
@pytest.mark.parametrize("along_rows", [False, True])
@pytest.mark.parametrize("unroll", [1, 8])
def test_scans_side_by_side_are_numpys(machine, reverse, monoid, dtype, along_rows, unroll, rng):
    place = (i, j) if along_rows else (j, i)
    scan = Scan(
        ("p",), monoid, "j", m, (Load("a", "x", place, dtype),), ("a",),
        (Store("o", place, "p"),), (dtype,), reverse,
    )  # fmt: skip
    marks = {} if along_rows else {"vector": 8, "unroll": unroll}
    shape = (n, m) if along_rows else (m, n)
    params = (Parameter("x", dtype, shape, "in"), Parameter("o", dtype, shape, "out"))
    kernel = Kernel(
        "scans", params, ("n", "m"), (Parallel("i", n, (scan,), threads=True, **marks),)
    )
    run = Compiled(kernel, MACHINES.get(machine) or level_machine(f"x86-64-{machine}"))
    for count in (1, 7, 8, 9, 64, 65, 130):
        for length in (0, 1, 5, 100):
            x = values(rng, (count, length) if along_rows else (length, count), dtype)
            o = np.zeros_like(x)
            half = count // 2
            run(x, o, n=count, m=length, chunks=[(0, half), (half, count)])
            flip = slice(None, None, -1 if reverse else 1)
            axis = 1 if along_rows else 0
            turned = x[:, flip] if along_rows else x[flip]
            want = JOINS[monoid].accumulate(turned, axis=axis, dtype=dtype.numpy)
            np.testing.assert_array_equal(o, want[:, flip] if along_rows else want[flip])
