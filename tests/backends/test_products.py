"""Matrix products as machine code: all forms, odd sizes, epilogues, dtypes; bits when cut."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernel_runner import Compiled, aligned, sym
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.compiler.dims import Dim
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
from tracemill.compiler.kernel.products import split_contraction
from tracemill.compiler.types import BF16, C64, C128, F32, F64, I8, I32, I64

pytestmark = pytest.mark.cpu

RNG = np.random.default_rng(11)
n, m, k, b = (sym(x) for x in "nmkb")
i, j, p, z = (sym(x) for x in "ijpz")
MACHINES = {
    "host": host_machine(),
    "v3": level_machine("x86-64-v3"),
    "v2": level_machine("x86-64-v2"),
}


def matmul(dtype=F32, ta=False, tb=False, bias=False, batch=False, row=False, strided=False):
    """o = x @ y, then + c and relu."""
    front, at = ((b,), (z,)) if batch else ((), ())
    rows, row_at = ((1,), (0,)) if row else ((n,), (i,))
    left = (*front, k, *rows) if ta else (*front, *rows, k)
    left_at = (*at, p, *row_at) if ta else (*at, *row_at, p)
    right, right_at = ((m, k), (j, p)) if tb else ((k, m), (p, j))
    reduce = Reduce(("s",), "sum", "p", k, (
        Load("a", "x", left_at, dtype),
        Load("w", "y", (*at, *right_at), dtype),
        Let("q", "mul", ("a", "w"), dtype),
    ), ("q",), (dtype,), loose=True)  # fmt: skip
    params = [
        Parameter("x", dtype, left, "in", strided),
        Parameter("y", dtype, (*front, *right), "in", strided),
    ]
    after, value = [], "s"
    if bias:
        params.append(Parameter("c", dtype, (m,), "in"))
        after = [
            Load("cc", "c", (j,), dtype),
            Let("t", "add", ("s", "cc"), dtype),
            Constant("zero", 0, dtype),
            Let("u", "maximum", ("t", "zero"), dtype),
        ]
        value = "u"
    out = (*front, *(() if row else (n,)), m)
    params.append(Parameter("o", dtype, out, "out"))
    store = Store("o", (*at, *(() if row else (i,)), j), value)
    body = Parallel("j", m, (reduce, *after, store))
    if not row:
        body = Parallel("i", n, (body,), threads=True)
    if batch:
        body = Parallel("z", b, (body,))
    dims = (*(("b",) if batch else ()), *(() if row else ("n",)), "m", "k")
    return Kernel("matmul", tuple(params), dims, (body,))


class Product:
    """The launches of a product, one after another."""

    def __init__(self, kernel, machine="host"):
        self.split = split_contraction(kernel)
        self.compiled = [Compiled(s.kernel, MACHINES[machine]) for s in self.split.stages]

    def __call__(self, *arrays, cut=1, **dims):
        value = lambda size: size.evaluate(dims) if isinstance(size, Dim) else size
        made = [
            aligned(tuple(value(s) for s in t.shape), t.dtype.numpy) for t in self.split.temporaries
        ]
        every = [*arrays, *made]
        for stage, run in zip(self.split.stages, self.compiled):
            extent = value(stage.extent)
            edges = [extent * c // cut for c in range(cut + 1)]
            here = {name: dims[name] for name in run.kernel.dims}
            run(*(every[at] for at in stage.params), chunks=list(itertools.pairwise(edges)), **here)


def numbers(*shape, dtype=F32):
    if dtype.is_integer:
        return RNG.integers(-9, 9, shape).astype(dtype.numpy)
    if dtype.is_complex:
        return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype.numpy)
    return RNG.standard_normal(shape).astype(dtype.numpy)


def close(got, want, dtype, depth):
    if dtype.is_integer:
        np.testing.assert_array_equal(got, want)
        return
    eps = {16: 2.0**-8, 32: 2.0**-23, 64: 2.0**-52}[dtype.bits // (2 if dtype.is_complex else 1)]
    wide = np.complex128 if dtype.is_complex else np.float64
    bound = 4 * eps * (depth + 4) ** 0.75 * max(1, np.abs(want).max(initial=0))
    assert np.abs(got.astype(wide) - want).max(initial=0) <= bound


SIZES = [
    (1, 1, 1), (5, 7, 3), (24, 8, 512), (25, 33, 200), (12, 32, 400), (48, 128, 64), (49, 129, 65),
    (1, 100, 50), (100, 1, 33), (2, 300, 17), (61, 100, 5001), (30, 30, 0), (3, 4, 0),
]  # fmt: skip


def wide(array, dtype):
    return array.astype(np.complex128 if dtype.is_complex else np.float64)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("dtype", [F32, F64, I32, C64], ids=lambda d: d.name)
def test_products_of_many_sizes(machine, ta, tb, dtype):
    run = Product(matmul(dtype, ta, tb), machine)
    for rows, columns, depth in SIZES:
        x, y = numbers(rows, depth, dtype=dtype), numbers(depth, columns, dtype=dtype)
        o = numbers(rows, columns, dtype=dtype)
        left = np.ascontiguousarray(x.T) if ta else x
        right = np.ascontiguousarray(y.T) if tb else y
        run(left, right, o, n=rows, m=columns, k=depth)
        close(o, wide(x, dtype) @ wide(y, dtype), dtype, depth)


@pytest.mark.parametrize("dtype", [I8, I64, BF16, C128], ids=lambda d: d.name)
def test_products_of_other_dtypes(dtype):
    run = Product(matmul(dtype))
    for rows, columns, depth in ((5, 7, 3), (50, 40, 300)):
        x, y = numbers(rows, depth, dtype=dtype), numbers(depth, columns, dtype=dtype)
        o = np.zeros((rows, columns), dtype.numpy)
        run(x, y, o, n=rows, m=columns, k=depth)
        want = wide(x, dtype) @ wide(y, dtype)
        close(o, want.astype(np.int64).astype(np.int8) if dtype is I8 else want, dtype, depth)


@pytest.mark.parametrize("machine", MACHINES)
def test_epilogue_and_batches(machine):
    run = Product(matmul(bias=True, batch=True), machine)
    for batches, rows, columns, depth in ((1, 3, 5, 7), (3, 30, 40, 150), (2, 49, 130, 5)):
        x, y, c = numbers(batches, rows, depth), numbers(batches, depth, columns), numbers(columns)
        o = np.zeros((batches, rows, columns), np.float32)
        run(x, y, c, o, b=batches, n=rows, m=columns, k=depth)
        close(o, np.maximum(x.astype(float) @ y + c, 0), F32, depth)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("tb", [False, True])
def test_one_row(machine, tb):
    run = Product(matmul(row=True, tb=tb, bias=True), machine)
    for columns, depth in ((1, 1), (5, 9), (127, 33), (7000, 17), (300, 1000)):
        x, y, c = numbers(1, depth), numbers(depth, columns), numbers(columns)
        o = np.zeros(columns, np.float32)
        run(x, np.ascontiguousarray(y.T) if tb else y, c, o, m=columns, k=depth)
        close(o, np.maximum(x.astype(float) @ y + c, 0)[0], F32, depth)


def test_strided_operands():
    run = Product(matmul(strided=True))
    for rows, columns, depth in ((5, 7, 30), (50, 40, 300)):
        x, y = numbers(rows, 2 * depth)[:, ::2], numbers(columns, depth).T
        o = np.zeros((rows, columns), np.float32)
        run(x, y, o, n=rows, m=columns, k=depth)
        close(o, x.astype(float) @ y, F32, depth)


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize("sizes", [(100, 300, 77), (20, 500, 300), (130, 40, 9000)])
def test_bits_do_not_depend_on_how_a_launch_is_cut(tb, sizes):
    run = Product(matmul(tb=tb))
    rows, columns, depth = sizes
    x, y = numbers(rows, depth), numbers(*((columns, depth) if tb else (depth, columns)))
    results = []
    for cut in (1, 2, 3, 8):
        o = np.zeros((rows, columns), np.float32)
        run(x, y, o, cut=cut, n=rows, m=columns, k=depth)
        results.append(o.tobytes())
    assert len(set(results)) == 1
