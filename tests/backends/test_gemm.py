"""Matrix products at the edges: what is read and written, in which order, and by which form."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fenced import Fenced
from kernel_runner import Compiled, sym
from lanes import random_values, same_bits
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.backends.llvm.module import texts
from tracemill.backends.llvm.native.loader import load
from tracemill.backends.llvm.skeletons import quick_code
from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.kernel import products
from tracemill.compiler.kernel.contraction import contraction_of
from tracemill.compiler.kernel.interpreter import interpret
from tracemill.compiler.kernel.kernel import Constant, Load, Parallel, walk
from tracemill.compiler.kernel.lowering import lower
from tracemill.compiler.kernel.packing import packing_of
from tracemill.compiler.kernel.products import split_contraction
from tracemill.compiler.kernel.region import Region
from tracemill.compiler.kernel.verifier import verify_kernel
from tracemill.compiler.types import dtype_named

pytestmark = pytest.mark.cpu

MACHINES = {
    "host": host_machine(),
    "v3": level_machine("x86-64-v3"),
    "v2": level_machine("x86-64-v2"),
}
FORMS = {
    "nn": ("m, k", "k, n", "[1, 0]"),
    "nt": ("m, k", "n, k", "[1, 1]"),
    "tn": ("k, m", "k, n", "[0, 0]"),
    "tt": ("k, m", "n, k", "[0, 1]"),
}


def matmul(form="nn", dtype="f32", epilogue="", extra=""):
    """The text of ``%y = a @ b``; `epilogue` goes on from %y to %r."""
    left, right, axes = FORMS[form]
    result = "%r" if epilogue else "%y"
    return f"""graph @f(%a: {dtype}[{left}], %b: {dtype}[{right}]{extra}) -> {dtype}[m, n] {{
  %y = contract %a, %b {{axes=[{axes}], batch=[]}} : {dtype}[m, n]
{epilogue}  return {result}
}}"""


def kernel_of(text, strided=()):
    graph = parse_graph(text)
    region = Region(
        tuple(graph.params), tuple(graph.nodes), tuple(graph.results), frozenset(strided)
    )
    return lower(region).kernel


class Quick(Compiled):
    """One kernel's quick code."""

    def load(self, machine):
        return load(quick_code(self.kernel, machine))


class Product:
    """The launches of a product; `large` forces packing, or forbids it."""

    def __init__(self, kernel, machine="host", large=None, monkeypatch=None, kind=Compiled):
        if large is not None:
            monkeypatch.setattr(products, "_large", lambda *_: int(large))
        self.kernel = kernel
        self.split = split_contraction(kernel)
        self.compiled = [kind(s.kernel, MACHINES[machine]) for s in self.split.stages]

    def __call__(self, *arrays, cuts=1, **dims):
        value = lambda size: size.evaluate(dims) if isinstance(size, Dim) else size
        every = list(arrays)
        for t in self.split.temporaries:
            shape = tuple(value(s) for s in t.shape)
            size = math.prod(shape) * t.dtype.itemsize
            made = np.full(size // t.dtype.itemsize, _poison(t.dtype), t.dtype.numpy)
            every.append(made.reshape(shape))
        for stage, run in zip(self.split.stages, self.compiled):
            extent = value(stage.extent)
            edges = sorted({extent * c // cuts for c in range(cuts + 1)})
            here = {name: dims[name] for name in run.kernel.dims}
            chunks = list(itertools.pairwise(edges))
            run(*(every[at] for at in stage.params), chunks=chunks, **here)


def _poison(dtype):
    return 77 if dtype.is_integer else np.nan


def numbers(rng, shape, dtype="f32"):
    numpy = dtype_named(dtype).numpy
    if dtype_named(dtype).is_integer:
        return rng.integers(0, 100, shape).astype(numpy)
    if dtype_named(dtype).is_complex:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(numpy)
    return rng.standard_normal(shape).astype(numpy)


EPSILON = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53,
           "c64": 2.0**-22, "c128": 2.0**-51}  # fmt: skip


def check(got, a, b, dtype):
    """Within ``k * epsilon * |a| |b|``, and one rounding of the result; integers exactly."""
    if dtype_named(dtype).is_integer:
        want = (a.astype(np.int64) @ b.astype(np.int64)).astype(got.dtype)
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if dtype_named(dtype).is_complex else np.float64
    want = a.astype(wide) @ b.astype(wide)
    bound = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    sums = EPSILON.get({"f16": "f32", "bf16": "f32"}.get(dtype, dtype))
    allowed = a.shape[1] * sums * bound * (1 if sums > 2.0**-50 else 1.01)
    allowed = allowed + EPSILON[dtype] * np.abs(want) * 1.01
    assert (np.abs(got.astype(wide) - want) <= allowed).all()


def operands(rng, form, dtype, m, n, k):
    a, b = numbers(rng, (m, k), dtype), numbers(rng, (k, n), dtype)
    left = np.ascontiguousarray(a.T) if form[0] == "t" else a
    right = np.ascontiguousarray(b.T) if form[1] == "t" else b
    return a, b, left, right


SIZES = [(1, 1, 1), (1, 130, 9), (5, 1, 40), (2, 3, 17), (13, 33, 29), (12, 32, 8), (47, 31, 64),
         (48, 128, 65), (49, 129, 63), (97, 257, 100), (11, 7, 513), (25, 1030, 20)]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_nothing_outside_the_operands_is_touched(machine, large, form, rng, monkeypatch):
    run = Product(kernel_of(matmul(form)), machine, large, monkeypatch)
    for (m, n, k), at_end in itertools.product(SIZES, (False, True)):
        a, b, left, right = operands(rng, form, "f32", m, n, k)
        fences = [Fenced(4 * x.size) for x in (left, right)] + [Fenced(4 * m * n)]
        x, y = (
            f.array(s.shape, s.dtype, at_end) for f, s in zip(fences, (left, right), strict=False)
        )
        x[...], y[...] = left, right
        o = fences[2].array((m, n), np.float32, at_end)
        run(x, y, o, m=m, n=n, k=k)
        check(o, a, b, "f32")


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i8", "u16", "i32", "i64", "c64", "c128"])
def test_every_dtype(dtype, form, large, rng, monkeypatch):
    run = Product(kernel_of(matmul(form, dtype)), "host", large, monkeypatch)
    for m, n, k in SIZES[:9]:
        a, b, left, right = operands(rng, form, dtype, m, n, k)
        o = np.zeros((m, n), dtype_named(dtype).numpy)
        run(left, right, o, m=m, n=n, k=k)
        check(o, a, b, dtype)


@pytest.mark.parametrize("large", [False, True])
def test_any_strides(large, rng, monkeypatch):
    run = Product(kernel_of(matmul(), (0, 1)), "host", large, monkeypatch)
    views = [
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
        lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        lambda x: x,
    ]
    for (m, n, k), left, right in itertools.product([(5, 40, 33), (50, 70, 600)], views, views):
        a, b = numbers(rng, (m, k)), numbers(rng, (k, n))
        o = np.zeros((m, n), np.float32)
        run(left(a), right(b), o, m=m, n=n, k=k)
        check(o, a, b, "f32")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("size", [(1, 700, 90), (7, 300, 50), (100, 300, 600), (130, 1100, 40)])
def test_bits_depend_neither_on_cuts_nor_on_the_way(machine, size, rng, monkeypatch):
    m, n, k = size
    a, b = numbers(rng, (m, k)), numbers(rng, (k, n))
    found = set()
    for large in (False, True):
        run = Product(kernel_of(matmul()), machine, large, monkeypatch)
        for cuts in (1, 2, 3, 8, 50):
            o = np.zeros((m, n), np.float32)
            run(a, b, o, cuts=cuts, m=m, n=n, k=k)
            found.add(o.tobytes())
    assert len(found) == 1


EPILOGUE = """  %z = add %y, %c : f32[m, n]
  %q = maximum %z, 0.0 : f32[m, n]
  %t = tanh %q : f32[m, n]
  %r = add %t, %d : f32[m, n]
"""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("large", [False, True])
def test_the_rest_of_the_kernel_runs_on_the_sums(machine, large, rng, monkeypatch):
    text = matmul("nn", "f32", EPILOGUE, ", %c: f32[n], %d: f32[m, 1]")
    run = Product(kernel_of(text), machine, large, monkeypatch)
    for m, n, k in SIZES:
        a, b = numbers(rng, (m, k)), numbers(rng, (k, n))
        c, d = numbers(rng, (n,)), numbers(rng, (m, 1))
        o = np.zeros((m, n), np.float32)
        run(a, b, c, d, o, m=m, n=n, k=k)
        want = np.tanh(np.maximum(a.astype(float) @ b + c, 0)) + d
        assert np.abs(o - want).max() <= (k + 8) * 2.0**-20


@pytest.mark.parametrize("large", [False, True])
def test_batches_and_several_summed_axes(large, rng, monkeypatch):
    text = """graph @f(%a: f32[b, s, m, k], %b: f32[b, s, n, k]) -> f32[b, m, n] {
  %y = contract %a, %b {axes=[[1, 1], [3, 3]], batch=[[0, 0]]} : f32[b, m, n]
  return %y
}"""
    run = Product(kernel_of(text), "host", large, monkeypatch)
    for batches, sums, m, n, k in ((1, 1, 1, 1, 1), (3, 4, 30, 50, 20), (2, 2, 13, 9, 600)):
        a, b = numbers(rng, (batches, sums, m, k)), numbers(rng, (batches, sums, n, k))
        for cuts in (1, 5):
            o = np.zeros((batches, m, n), np.float32)
            run(a, b, o, cuts=cuts, b=batches, s=sums, m=m, n=n, k=k)
            for z in range(batches):
                flat = [x[z].transpose(1, 0, 2).reshape(x.shape[2], -1) for x in (a, b)]
                check(o[z], flat[0], flat[1].T, "f32")


VECTORS = {
    "matrix, vector": ("%a: f32[m, k], %b: f32[k]", "[1, 0]", "m"),
    "transposed matrix, vector": ("%a: f32[k, m], %b: f32[k]", "[0, 0]", "m"),
    "vector, matrix": ("%a: f32[k], %b: f32[k, m]", "[0, 0]", "m"),
    "two vectors": ("%a: f32[k], %b: f32[k]", "[0, 0]", ""),
}


@pytest.mark.parametrize("form", VECTORS)
def test_vectors(form, rng):
    params, axes, result = VECTORS[form]
    text = f"""graph @f({params}) -> f32[{result}] {{
  %y = contract %a, %b {{axes=[{axes}], batch=[]}} : f32[{result}]
  return %y
}}"""
    run = Product(kernel_of(text))
    for m, k in ((1, 1), (3, 5), (130, 77), (33, 4100), (5000, 9)):
        shapes = [
            tuple({"m": m, "k": k}[s.strip()] for s in part.split("]")[0].split(","))
            for part in params.split("f32[")[1:]
        ]
        a, b = (numbers(rng, shape) for shape in shapes)
        results = set()
        for cuts in (1, 3):
            o = np.zeros((m,) if result else (), np.float32)
            run(a, b, o, cuts=cuts, m=m, k=k)
            results.add(o.tobytes())
        first = a.T if form.startswith("transposed") else a
        bound = k * 2.0**-23 * (np.abs(first).astype(float) @ np.abs(b))
        assert (np.abs(o - first.astype(float) @ b) <= bound).all()
        assert len(results) == 1


def test_one_kernel_serves_every_size(rng):
    run = Product(kernel_of(matmul()))
    for m, n, k in [(0, 3, 4), (3, 0, 4), (3, 4, 0), (1, 1, 1), (300, 400, 500), (4, 5, 6)]:
        a, b = numbers(rng, (m, k)), numbers(rng, (k, n))
        o = np.full((m, n), 7, np.float32)
        run(a, b, o, m=m, n=n, k=k)
        check(o, a, b, "f32")


@pytest.mark.parametrize("dtype", ["f32", "i8", "f16", "c64"])
@pytest.mark.parametrize("form", FORMS)
def test_packing_says_what_it_does(dtype, form, rng, monkeypatch):
    """Both stages, interpreted as the plain loops they are, give the original's result."""
    monkeypatch.setattr(products, "_large", lambda *_: 1)
    kernel = kernel_of(matmul(form, dtype))
    split = split_contraction(kernel)
    dims = {"m": 3, "n": 37, "k": 4}
    a, b, left, right = operands(rng, form, dtype, dims["m"], dims["n"], dims["k"])
    packed = split.temporaries[0]
    shape = tuple(s.evaluate(dims) if isinstance(s, Dim) else s for s in packed.shape)
    o = np.zeros((dims["m"], dims["n"]), a.dtype)
    every = [left, right, o, np.zeros(shape, packed.dtype.numpy)]
    for stage in split.stages:
        verify_kernel(stage.kernel)
        sizes = {name: dims[name] for name in stage.kernel.dims}
        interpret(stage.kernel, [every[at] for at in stage.params], sizes)
    check(o, a, b, dtype)
    found = packing_of(split.stages[0].kernel)
    assert found is not None
    assert found.source.buffer == split.stages[0].kernel.params[0].name
    assert contraction_of(split.stages[1].kernel).right.panels


def test_roles_follow_the_store():
    text = """graph @f(%a: f32[m, k], %b: f32[n, k]) -> f32[n, m] {
  %y = contract %a, %b {axes=[[1, 1]], batch=[]} : f32[m, n]
  %z = transpose %y {perm=[1, 0]} : f32[n, m]
  return %z
}"""
    found = contraction_of(kernel_of(text))
    assert (found.left.buffer, found.right.buffer) == ("b", "a")
    assert found.columns == sym("m")


def test_what_is_no_product_is_left_alone():
    kernel = kernel_of(matmul())
    assert contraction_of(kernel) is not None

    def changed(change):
        outer = kernel.body[0]
        inner = outer.body[0]
        reduce, *after = inner.body
        made = Parallel(inner.axis, inner.extent, change(reduce, after))
        return replace(kernel, body=(replace(outer, body=(made,)),))

    strict = changed(lambda r, after: (replace(r, loose=False), *after))
    largest = changed(lambda r, after: (replace(r, monoid="max"), *after))
    causal = changed(lambda r, after: (replace(r, extent=sym("i") + 1), *after))
    assert all(contraction_of(k) is None for k in (strict, largest, causal))
    assert split_contraction(strict) is None


def test_a_masked_copy_that_packs_otherwise_is_not_packing(monkeypatch):
    monkeypatch.setattr(products, "_large", lambda *_: 1)
    kernel = split_contraction(kernel_of(matmul())).stages[0].kernel
    assert packing_of(kernel) is not None

    def rewritten(body):
        made = []
        for s in body:
            if isinstance(s, Parallel):
                s = replace(s, body=rewritten(s.body))
            if isinstance(s, Constant) and s.name == "zero":
                s = replace(s, value=1.0)
            made.append(s)
        return tuple(made)

    assert any(isinstance(s, Load) for s in walk(kernel.body))
    assert packing_of(replace(kernel, body=rewritten(kernel.body))) is None


def test_the_microkernel_keeps_its_sums_in_registers(monkeypatch):
    monkeypatch.setattr(products, "_large", lambda *_: 1)
    if not host_machine().has_avx512:
        machine, sums = level_machine("x86-64-v3"), 12
    else:
        machine, sums = host_machine(), 24
    kernel = split_contraction(kernel_of(matmul())).stages[1].kernel
    text = texts([kernel], machine)["asm"]
    body = text.split("k0_micro:")[1].split(".Lfunc_end")[0]
    assert body.count("vfmadd") == sums
    assert "(%rsp)" not in body


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "i64", "bf16"])
def test_quick_code_of_a_product_computes_the_bits_of_the_best(machine, dtype, rng, monkeypatch):
    rest = f"  %s = tanh %y : {dtype}[m, n]\n  %r = add %s, %y : {dtype}[m, n]\n"
    if dtype == "i64":
        rest = "  %s = mul %y, %y : i64[m, n]\n  %r = sub %s, %y : i64[m, n]\n"
    for form in FORMS:
        kernel = kernel_of(matmul(form, dtype, rest))
        best, quick = (Product(kernel, machine, False, monkeypatch, k) for k in (Compiled, Quick))
        for m, n, k in ((1, 1, 1), (4, 16, 16), (7, 33, 5), (45, 130, 96)):
            a = random_values(dtype_named(dtype), m * k, rng).reshape(shaped(form, m, k, 0))
            b = random_values(dtype_named(dtype), k * n, rng).reshape(shaped(form, k, n, 1))
            made = [np.zeros((m, n), dtype_named(dtype).numpy) for _ in range(2)]
            for run, out in zip((best, quick), made, strict=True):
                run(a, b, out, m=m, n=n, k=k)
            assert same_bits(*made).all(), (form, m, n, k)


def shaped(form, rows, columns, side):
    """A matrix as this side of a form is stored."""
    return (columns, rows) if form[side] == "t" else (rows, columns)
