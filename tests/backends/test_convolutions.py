"""Convolutions as machine code: layouts, strides, odd sizes, dtypes, machines; bits when cut.

The oracle is a loop over the window with one product of matrices each, in float64.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fenced import Fenced
from kernel_runner import Compiled
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.compiler.dims import Dim
from tracemill.compiler.ir.builder import Builder
from tracemill.compiler.ir.parser import parse_graph
from tracemill.compiler.kernel.contraction import contraction_of
from tracemill.compiler.kernel.interpreter import interpret
from tracemill.compiler.kernel.lowering import lower
from tracemill.compiler.kernel.products import split_contraction
from tracemill.compiler.kernel.region import Region
from tracemill.compiler.kernel.windows import PANELS, ROWS, merged, windowed_of
from tracemill.compiler.types import TensorType, dtype_named

pytestmark = pytest.mark.cpu

MACHINES = {
    "host": host_machine(),
    "v3": level_machine("x86-64-v3"),
    "v2": level_machine("x86-64-v2"),
}
FIRST, LAST = "channels first", "channels last"


def graph_of(layout=FIRST, dtype="f32", stride=1, dilation=1, window=(3, 2)):
    """A convolution, a bias and relu; sizes open but for the window's."""
    kind = dtype_named(dtype)
    n, c, h, w, o = map(Dim.symbol, "nchwo")
    image, weights = ((n, c, h, w), (o, c, *window))
    axes, moved = ((1, 1),), ((2, 2), (3, 3))
    if layout == LAST:
        image, weights = ((n, h, w, c), (*window, c, o))
        axes, moved = ((3, 2),), ((1, 0), (2, 1))
    build = Builder("f")
    x = build.param("x", TensorType(kind, image))
    y = build.param("w", TensorType(kind, weights))
    bias = build.param("b", TensorType(kind, (o,)))
    windows = tuple((i, j, stride, dilation) for i, j in moved)
    made = build.convolve(x, y, axes=axes, batch=(), windows=windows)
    if layout == LAST:
        made = build.transpose(made, perm=(0, 2, 3, 1))
    shape = (1, 1, 1, o) if layout == LAST else (1, o, 1, 1)
    made = build.add(made, build.reshape(bias, shape=shape))
    made = build.maximum(made, build.constant(0, kind))
    return build.finish([made])


class Convolution:
    """The kernel of a convolution."""

    def __init__(self, machine="host", **options):
        graph = graph_of(**options)
        region = Region(tuple(graph.params), tuple(graph.nodes), tuple(graph.results))
        self.kernel = lower(region).kernel
        self.split = split_contraction(self.kernel)
        assert len(self.split.stages) == 1
        assert not self.split.temporaries
        self.compiled = Compiled(self.split.stages[0].kernel, MACHINES[machine])

    def __call__(self, *arrays, cut=1, **dims):
        extent = self.split.stages[0].extent
        extent = extent.evaluate(dims) if isinstance(extent, Dim) else extent
        edges = sorted({extent * c // cut for c in range(cut + 1)})
        self.compiled(*arrays, chunks=list(itertools.pairwise(edges)), **dims)


def right_answer(x, w, b, stride=1, dilation=1):
    """Channels first, in float64: one product of matrices for each position of the window."""
    kind, wide = x.dtype, np.float64 if x.dtype.kind != "i" else np.int64
    x, w, b = (a.astype(wide) for a in (x, w, b))
    if dilation < 0:
        w, dilation = w[:, :, ::-1, ::-1], -dilation
    rows = (x.shape[2] - (w.shape[2] - 1) * dilation - 1) // stride + 1
    columns = (x.shape[3] - (w.shape[3] - 1) * dilation - 1) // stride + 1
    total = np.zeros((x.shape[0], w.shape[0], rows, columns), wide)
    for u, v in np.ndindex(w.shape[2:]):
        part = x[:, :, u * dilation :: stride, v * dilation :: stride][:, :, :rows, :columns]
        total += np.einsum("oc,nchw->nohw", w[:, :, u, v], part)
    total = total + b[:, None, None]
    return np.maximum(total if kind.kind != "i" else total.astype(kind), 0)


def operands(rng, sizes, window, dtype="f32"):
    n, c, h, w, o = sizes
    kind = dtype_named(dtype).numpy
    if dtype[0] == "i":
        return [rng.integers(-5, 6, s).astype(kind) for s in
                ((n, c, h, w), (o, c, *window), (o,))]  # fmt: skip
    return [rng.standard_normal(s).astype(kind) for s in ((n, c, h, w), (o, c, *window), (o,))]


def run(convolution, x, w, b, layout, stride=1, dilation=1, cut=1):
    want = right_answer(x, w, b, stride, dilation)
    sizes = dict(zip("nchw", x.shape), o=w.shape[0])
    got = np.full(want.shape, 77, x.dtype)
    if layout == LAST:
        x, w = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.transpose(w, (2, 3, 1, 0)).copy()
        got = np.ascontiguousarray(np.moveaxis(got, 1, -1))
    convolution(x, w, b, got, cut=cut, **{k: sizes[k] for k in convolution.kernel.dims})
    return (np.moveaxis(got, -1, 1) if layout == LAST else got), want


def close(got, want, depth):
    if got.dtype.kind == "i":
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    eps = {2: 2.0**-8, 4: 2.0**-23, 8: 2.0**-52}[got.dtype.itemsize]
    bound = 4 * eps * (depth + 4) ** 0.75 * max(1, np.abs(want).max(initial=0))
    assert np.abs(got.astype(np.float64) - want).max(initial=0) <= bound


SIZES = [  # n, c, h, w, o
    (1, 1, 3, 2, 5), (2, 3, 5, 7, 4), (1, 17, 4, 35, 13), (3, 5, 9, 34, 49), (2, 2, 20, 18, 100),
    (1, 70, 6, 5, 25), (5, 1, 8, 67, 12), (0, 3, 5, 5, 4), (2, 0, 5, 5, 4), (2, 3, 5, 5, 0),
]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("layout", [FIRST, LAST])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_many_sizes(machine, layout, stride, rng):
    convolution = Convolution(machine, layout=layout, stride=stride)
    for sizes in SIZES:
        x, w, b = operands(rng, sizes, (3, 2))
        close(*run(convolution, x, w, b, layout, stride), sizes[1] * 6)


@pytest.mark.parametrize("layout", [FIRST, LAST])
@pytest.mark.parametrize(("stride", "dilation"), [(3, 1), (4, 2), (5, 1), (1, 3), (2, -2)])
def test_strides_and_dilations(layout, stride, dilation, rng):
    convolution = Convolution(layout=layout, stride=stride, dilation=dilation)
    for sizes in ((2, 3, 14, 75, 6), (1, 20, 23, 9, 50)):
        x, w, b = operands(rng, sizes, (3, 2))
        close(*run(convolution, x, w, b, layout, stride, dilation), sizes[1] * 6)


@pytest.mark.parametrize("layout", [FIRST, LAST])
@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i32", "i8"])
def test_other_dtypes(layout, dtype, rng):
    convolution = Convolution(layout=layout, dtype=dtype)
    for sizes in ((2, 3, 6, 20, 9), (1, 40, 5, 4, 30)):
        x, w, b = operands(rng, sizes, (3, 2), dtype)
        close(*run(convolution, x, w, b, layout), sizes[1] * 6)


@pytest.mark.parametrize("layout", [FIRST, LAST])
def test_sums_longer_than_a_stretch_and_more_tiles_than_one(layout, rng):
    convolution = Convolution(layout=layout)
    columns = PANELS * 32
    for sizes in ((1, 200, 5, 20, ROWS + 1), (3, 65, 4, columns // 6 + 9, 2 * ROWS + 5)):
        x, w, b = operands(rng, sizes, (3, 2))
        close(*run(convolution, x, w, b, layout), sizes[1] * 6)


@pytest.mark.parametrize("layout", [FIRST, LAST])
def test_bits_do_not_depend_on_how_a_launch_is_cut(layout, rng):
    convolution = Convolution(layout=layout)
    x, w, b = operands(rng, (3, 70, 9, 60, 110), (3, 2))
    results = {run(convolution, x, w, b, layout, cut=cut)[0].tobytes() for cut in (1, 2, 3, 8)}
    assert len(results) == 1


@pytest.mark.parametrize("layout", [FIRST, LAST])
def test_strided_operands(layout, rng):
    graph = graph_of(layout)
    region = Region(
        tuple(graph.params), tuple(graph.nodes), tuple(graph.results), frozenset((0, 1))
    )
    kernel = lower(region).kernel
    stage = split_contraction(kernel).stages[0]
    compiled = Compiled(stage.kernel)
    x, w, b = operands(rng, (2, 5, 9, 40, 14), (3, 2))
    want = right_answer(x, w, b)
    dims = {"n": 2, "c": 5, "h": 9, "w": 40, "o": 14}
    extent = stage.extent.evaluate(dims)
    if layout == LAST:
        x, w = np.moveaxis(x, 1, -1), np.transpose(w, (2, 3, 1, 0))
    spread = np.zeros((*x.shape[:-1], x.shape[-1] * 3), x.dtype)[..., ::3]
    spread[...] = x
    for image in (x, spread, np.ascontiguousarray(x[:, ::-1])[:, ::-1]):
        got = np.zeros(want.shape, x.dtype)
        if layout == LAST:
            got = np.ascontiguousarray(np.moveaxis(got, 1, -1))
        compiled(image, w, b, got, chunks=[(0, extent)], **{k: dims[k] for k in kernel.dims})
        close(np.moveaxis(got, -1, 1) if layout == LAST else got, want, 30)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("layout", [FIRST, LAST])
@pytest.mark.parametrize("stride", [1, 2, 3, 5])
def test_nothing_beside_the_operands_is_touched(machine, layout, stride, rng):
    convolution = Convolution(machine, layout=layout, stride=stride)
    for width in (7, 33, 64, 65):
        x, w, b = operands(rng, (1, 2, 5, width, 14), (3, 2))
        want = right_answer(x, w, b, stride)
        out = want.shape
        if layout == LAST:
            x, w = np.moveaxis(x, 1, -1), np.transpose(w, (2, 3, 1, 0))
            out = np.moveaxis(want, 1, -1).shape
        for at_end in (False, True):
            fences = [Fenced(math.prod(shape) * 4) for shape in (x.shape, w.shape, b.shape, out)]
            inside = [
                fence.array(shape, np.float32, at_end)
                for fence, shape in zip(fences, (x.shape, w.shape, b.shape, out))
            ]
            for array, source in zip(inside, (x, w, b)):
                array[...] = source
            dims = {"n": 1, "c": 2, "h": 5, "w": width, "o": 14}
            convolution(*inside, **{k: dims[k] for k in convolution.kernel.dims})
            got = np.moveaxis(inside[3], -1, 1) if layout == LAST else inside[3]
            close(got, want, 12)


@pytest.mark.parametrize("layout", [FIRST, LAST])
def test_interpreting_the_kernel_gives_the_sums(layout, rng):
    convolution = Convolution(layout=layout, stride=2)
    x, w, b = operands(rng, (2, 2, 5, 6, 4), (3, 2), "f64")
    kernel = Convolution(layout=layout, stride=2, dtype="f64").kernel
    want = right_answer(x, w, b, 2)
    got = np.zeros(want.shape)
    if layout == LAST:
        x, w = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.transpose(w, (2, 3, 1, 0)).copy()
        got = np.ascontiguousarray(np.moveaxis(got, 1, -1))
    dims = {"n": 2, "c": 2, "h": 5, "w": 6, "o": 4}
    lying = [
        array.reshape([s.evaluate(dims) if isinstance(s, Dim) else s for s in p.shape])
        for array, p in zip((x, w, b, got), kernel.params)
    ]
    interpret(kernel, lying, dims)
    np.testing.assert_allclose(np.moveaxis(got, -1, 1) if layout == LAST else got, want)
    assert convolution.split.stages[0].kernel is convolution.kernel


def test_roles_are_those_of_the_operands():
    first, last = (
        windowed_of(contraction_of(Convolution(layout=form).kernel)) for form in (FIRST, LAST)
    )
    assert len(first.columns) == len(last.columns) == 3
    assert not first.along_rows
    assert last.along_rows
    assert not first.outer
    assert not last.outer


def test_depthwise_kernels_are_plain_loops():
    text = """graph @f(%x: f32[g, n, h, w], %w: f32[g, 3, 3]) -> f32[g, n, h - 2, w - 2] {
  %y = convolve %x, %w {axes=[], batch=[[0, 0]], windows=WINDOWS} : f32[g, n, h - 2, w - 2]
  return %y
}"""
    graph = parse_graph(text.replace("WINDOWS", "[[2, 1, 1, 1], [3, 2, 1, 1]]"))
    region = Region(tuple(graph.params), tuple(graph.nodes), tuple(graph.results), frozenset())
    assert contraction_of(lower(region).kernel) is None


def test_axes_that_one_stride_leads_through_are_one():
    n = Dim.symbol("n")
    assert merged([(4, 3 * n), (3, n), (n, 1)]) == [(12 * n, 1)]
    assert merged([(4, 99), (3, n), (n, 1)]) == [(4, 99), (3 * n, 1)]
