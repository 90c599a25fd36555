"""The structure of the PTX: entries, parameters, memory accesses, barriers, rounding."""

from __future__ import annotations

import re

import pytest

from grid_kernels import SUITE, plan_of
from kernel_runner import sym
from tracemill.backends.cuda.ptx import ARCHITECTURES, compile_mapped, compile_ptx
from tracemill.compiler.kernel.grid import map_to_grid, segments
from tracemill.compiler.kernel.kernel import (
    Check,
    Kernel,
    Let,
    Load,
    Parallel,
    Parameter,
    Reduce,
    Store,
    walk,
)
from tracemill.compiler.kernel.schedule import IllegalSchedule
from tracemill.compiler.types import BOOL, F32

n, i, j = (sym(name) for name in "nij")


def count(pattern, text):
    return len(re.findall(pattern, text))


def chain(strided=False):
    params = tuple(Parameter(p, F32, (n,), mode, strided)
                   for p, mode in (("x", "in"), ("y", "in"), ("o", "out")))  # fmt: skip
    body = (
        Load("a", "x", (i,), F32), Load("b", "y", (i,), F32), Let("c", "mul", ("a", "b"), F32),
        Let("d", "add", ("c", "a"), F32), Store("o", (i,), "d"),
    )  # fmt: skip
    return Kernel("chain", params, ("n",), (Parallel("i", n, body, vector=16, threads=True),))


def row_sums():
    body = (
        Reduce(("s",), "sum", "j", 70, (Load("a", "x", (i, j), F32),), ("a",), (F32,)),
        Store("o", (i,), "s"),
    )
    params = (Parameter("x", F32, (n, 70), "in"), Parameter("o", F32, (n,), "out"))
    return Kernel("sums", params, ("n",), (Parallel("i", n, body),))


def test_an_elementwise_kernel_loads_each_input_once_and_needs_no_barrier():
    code = compile_ptx([chain()])
    assert code.entries[0].symbol == "k0"
    assert (code.entries[0].blocks, code.entries[0].threads) == ((n + 255) // 256, 256)
    assert ".target sm_90" in code.text
    assert ".reqntid 256" in code.text
    assert ".visible .entry k0(" in code.text
    assert count(r"\.param \.u64 \.ptr", code.text) == 4  # the failure word and three arrays
    assert count(r"\.param \.u64 k0_param_4", code.text) == 1  # n
    assert count(r"ld\.global\.b32", code.text) == 2
    assert count(r"st\.global\.b32", code.text) == 1
    assert count(r"\bld\.b|\bst\.b|\.local|bar(rier)?\.", code.text) == 0


def test_products_and_sums_are_rounded_apart():
    text = compile_ptx([chain()]).text
    assert count(r"mul\.rn\.f32", text) == 1
    assert count(r"add\.rn\.f32", text) == 1
    assert "fma" not in text


def test_strided_parameters_bring_their_strides():
    text = compile_ptx([chain(strided=True)]).text
    assert count(r"\.param \.u64 \.ptr", text) == 4
    assert count(r"\.param \.u64 k0_param_\d", text) == 4  # three strides and n


def test_a_row_sum_has_its_lanes_in_shared_memory_and_a_barrier_behind_each_phase():
    text = compile_ptx([row_sums()]).text
    assert ".reqntid 64" in text
    assert count(r"\.shared \.align \d+ \.b8 \S+\[256\]", text) == 1
    assert count(r"bar\.sync|barrier\.sync", text) == 9
    assert count(r"ld\.global", text) == 1
    assert count(r"st\.global", text) == 1
    assert count(r"st\.shared\.b32", text) == 7
    assert count(r"ld\.shared\.b32", text) == 13
    assert ".local" not in text


def test_a_failure_is_the_least_number_kept_by_an_atomic():
    params = (Parameter("p", BOOL, (n,), "in"),)
    body = (Load("a", "p", (i,), BOOL), Check("a"))
    text = compile_ptx([Kernel("c", params, ("n",), (Parallel("i", n, body),))]).text
    assert count(r"(atom|red)\S*\.min\.u64", text) == 1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_gets_its_own_code(architecture):
    assert f".target {architecture}\n" in compile_ptx([chain(), row_sums()], architecture).text


def test_an_architecture_we_do_not_know_is_refused_with_those_we_do():
    with pytest.raises(ValueError, match=r"no code for 'sm_20': .*sm_90"):
        compile_ptx([chain()], "sm_20")


def test_equal_kernels_give_equal_text():
    assert compile_ptx([chain(), row_sums()]) == compile_ptx([chain(), row_sums()])


def test_a_barrier_inside_one_threads_code_is_refused():
    mapped = map_to_grid(row_sums())
    (grid,) = mapped.kernel.body
    assert isinstance(grid, Parallel)
    wrapped = Parallel("few", 10, grid.body[1:2], bind="block.x")
    body = (Parallel("row", n, (grid.body[0], wrapped), bind="grid.x"),)
    kernel = Kernel("k", mapped.kernel.params, ("n",), body)
    with pytest.raises(IllegalSchedule, match="bound inside one thread's code"):
        compile_mapped([type(mapped)(kernel, n, 64)])


def barriers(body, repeated):
    """How many barriers the code of a block has."""
    found = 0
    for piece, barrier in segments(body, repeated):
        found += barrier
        for s in piece:
            bind = getattr(s, "bind", None)
            if bind != "block.x" and hasattr(s, "body"):
                found += barriers(s.body, bind is None)
    return found


@pytest.mark.parametrize("name", SUITE)
def test_every_kernel_has_its_entry_its_parameters_and_its_barriers(name):
    kernels = plan_of(name).kernels
    for kernel in kernels:
        mapped = map_to_grid(kernel)
        text = compile_mapped([mapped]).text
        strides = sum(len(p.shape) for p in kernel.params if p.strided)
        assert count(r"\.param \.u64 \.ptr", text) == 1 + len(kernel.params)
        assert count(r"\.param \.u64 k0_param", text) == strides + len(kernel.dims)
        wanted = barriers(mapped.kernel.body, False)
        assert count(r"bar\.sync|barrier\.sync", text) == wanted, kernel.name
        stores = sum(isinstance(s, Store) for s in walk(kernel.body))
        assert count(r"st\.global", text) >= min(1, stores)
