"""Planted faults: the emulator finds in a broken kernel what a GPU would pass over in silence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernel_runner import sym
from tracemill.backends.cuda.emulated_memory import KernelFault, Kind
from tracemill.backends.cuda.emulator import emulate
from tracemill.compiler.dims import Dim, maximum, minimum
from tracemill.compiler.kernel.grid import BLOCK, GridKernel, map_to_grid
from tracemill.compiler.kernel.kernel import (
    Checked,
    Constant,
    If,
    Kernel,
    Let,
    Load,
    Local,
    Parallel,
    Parameter,
    Reduce,
    Store,
)
from tracemill.compiler.kernel.symbols import map_body, substitute_sizes
from tracemill.compiler.types import BOOL, F32, I64

n, i, j = (sym(name) for name in "nij")
SIZES = {"n": 300}


def points():
    """o = -x, a thread an element."""
    params = (Parameter("x", F32, (n,), "in"), Parameter("o", F32, (n,), "out"))
    body = (Load("a", "x", (i,), F32), Let("b", "neg", ("a",), F32), Store("o", (i,), "b"))
    return map_to_grid(Kernel("points", params, ("n",), (Parallel("i", n, body),)))


def rows():
    """o[i] = the sum of x[i, :] and y[i, :] = x[i, :] times it, a block a row."""
    params = (
        Parameter("x", F32, (n, 100), "in"), Parameter("o", F32, (n,), "out"),
        Parameter("y", F32, (n, 100), "out"),
    )  # fmt: skip
    total = Reduce(("s",), "sum", "j", 100, (Load("a", "x", (i, j), F32),), ("a",), (F32,))
    k = sym("k")
    scaled = (Load("b", "x", (i, k), F32), Let("c", "mul", ("b", "s"), F32),
              Store("y", (i, k), "c"))  # fmt: skip
    body = (total, Store("o", (i,), "s"), Parallel("k", 100, scaled))
    return map_to_grid(Kernel("rows", params, ("n",), (Parallel("i", n, body),)))


def run(mapped: GridKernel, blocks=None):
    """Emulate with random inputs; the arrays."""
    rng = np.random.default_rng(0)
    arrays = []
    for p in mapped.kernel.params:
        shape = tuple(s.evaluate(SIZES) if isinstance(s, Dim) else s for s in p.shape)
        data = rng.standard_normal(shape)
        if p.dtype is I64:
            data = rng.permutation(shape[0])
        arrays.append(data.astype(p.dtype.numpy))
    emulate(mapped, arrays, SIZES, blocks)
    return arrays


def changed(mapped: GridKernel, change) -> GridKernel:
    """The kernel with each statement replaced, inner ones first."""
    kernel = replace(mapped.kernel, body=map_body(mapped.kernel.body, change))
    assert kernel != mapped.kernel
    return replace(mapped, kernel=kernel)


def in_block(mapped: GridKernel, change) -> GridKernel:
    """The kernel with the body of its grid axis replaced."""
    (grid,) = mapped.kernel.body
    body = (replace(grid, body=tuple(change(list(grid.body)))),)
    return replace(mapped, kernel=replace(mapped.kernel, body=body))


def found(mapped: GridKernel) -> Kind:
    with pytest.raises(KernelFault) as caught:
        run(mapped)
    return caught.value.kind


@pytest.mark.parametrize("blocks", [None, 2, 1])
def test_nothing_is_found_in_kernels_that_are_right(blocks):
    x, o = run(points(), blocks)
    np.testing.assert_array_equal(o, -x)
    x, o, y = run(rows(), blocks)
    np.testing.assert_allclose(o, x.sum(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(y, x * o[:, None])


# -- barriers


@pytest.mark.parametrize("at", range(1, 7))
def test_a_missing_barrier_between_two_phases_is_a_race(at):
    def join(body):
        first, second = body[at], body[at + 1]
        thread = Dim.symbol(first.axis)
        moved = substitute_sizes(second.body, {second.axis: thread})
        guard = maximum(minimum(second.extent - thread, 1), 0)
        guarded = Parallel("once", guard, moved)
        return [*body[:at], replace(first, body=(*first.body, guarded)), *body[at + 2 :]]

    assert found(in_block(rows(), join)) is Kind.RACE


def test_a_barrier_that_some_threads_do_not_reach_is_found():
    def inside(body):
        wrapped = Parallel("few", 10, (body[2],), bind=BLOCK)
        return [*body[:2], wrapped, *body[3:]]

    assert found(in_block(rows(), inside)) is Kind.DIVERGENT_BARRIER


def test_a_barrier_under_a_condition_of_one_thread_is_found():
    def inside(body):
        own = Load("v", "lanes", (sym("all"),), F32)
        positive = Let("p", "lt", ("zero", "v"), BOOL)
        asking = (Constant("zero", 0.0, F32), own, positive, If("p", (body[2],)))
        return [*body[:2], Parallel("all", 64, asking, bind=BLOCK), *body[3:]]

    assert found(in_block(rows(), inside)) is Kind.DIVERGENT_BARRIER


# -- guards and indices


def test_a_guard_that_is_one_too_long_is_out_of_bounds():
    def longer(s):
        bound = isinstance(s, Parallel) and s.bind == BLOCK
        return replace(s, extent=s.extent + 1) if bound else s

    assert found(changed(points(), longer)) is Kind.OUT_OF_BOUNDS


def test_blocks_that_overlap_by_one_element_are_a_race():
    block = Dim.symbol("block")

    def closer(s):
        if isinstance(s, Load | Store):
            return replace(s, index=tuple(p - block for p in s.index))
        return s

    assert found(changed(points(), closer)) is Kind.RACE


def test_a_negative_index_is_out_of_bounds():
    def shifted(s):
        return replace(s, index=(s.index[0] - 1,)) if isinstance(s, Load) else s

    assert found(changed(points(), shifted)) is Kind.OUT_OF_BOUNDS


def test_a_lane_that_takes_in_the_wrong_one_is_a_race():
    def neighbour(s):
        far = isinstance(s, Load) and s.name.startswith("far")
        return replace(s, index=(s.index[0] - 1,)) if far else s

    assert found(changed(rows(), neighbour)) is Kind.RACE


def test_lanes_that_are_folded_but_never_written_are_found():
    def fewer(s):
        loop = isinstance(s, Parallel) and s.axis == "lane"
        return replace(s, extent=s.extent - 1) if loop else s

    assert found(changed(rows(), fewer)) is Kind.UNINITIALISED


# -- address spaces, stores


def test_lanes_in_a_threads_own_memory_are_read_before_they_are_written():
    def own(s):
        return replace(s, memory="stack") if isinstance(s, Local) else s

    assert found(changed(rows(), own)) is Kind.UNINITIALISED


def test_a_store_by_every_thread_of_a_block_is_a_race():
    def spread(s):
        return replace(s, extent=2) if isinstance(s, Parallel) and s.axis == "first" else s

    assert found(changed(rows(), spread)) is Kind.RACE


def test_an_output_read_before_any_thread_wrote_it_is_found():
    def other(s):
        return replace(s, buffer="o") if isinstance(s, Load) else s

    assert found(changed(points(), other)) is Kind.UNINITIALISED


def scattered(extent):
    """o[k[i]] = x[i], which is right where no two k are the same."""
    params = (
        Parameter("x", F32, (n,), "in"), Parameter("k", I64, (n,), "in"),
        Parameter("o", F32, (n,), "out"),
    )  # fmt: skip
    body = (
        Load("a", "x", (i,), F32), Load("at", "k", (i % extent,), I64),
        Store("o", (Checked("at", n),), "a"),
    )  # fmt: skip
    return map_to_grid(Kernel("scattered", params, ("n",), (Parallel("i", n, body),)))


def test_two_threads_that_scatter_to_one_element_are_a_race():
    x, k, o = run(scattered(300))
    np.testing.assert_array_equal(o[k], x)
    assert found(scattered(299)) is Kind.RACE
