"""The cpu back end: equal kernels share code, a store keeps it, damaged bytes are a miss."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from kernel_runner import sym
from tracemill.backends.cpu.backend import CpuBackend
from tracemill.backends.llvm.block import EMITTERS
from tracemill.compiler.kernel import kernel as language
from tracemill.compiler.kernel.kernel import Kernel, Load, Parallel, Parameter, Store
from tracemill.compiler.types import F32

pytestmark = pytest.mark.cpu


def copy_kernel(axis="i", size="n", vector=16):
    """out = x."""
    n, i = sym(size), sym(axis)
    body = (Load("a", "x", (i,), F32), Store("o", (i,), "a"))
    params = (Parameter("x", F32, (n,), "in"), Parameter("o", F32, (n,), "out"))
    return Kernel(f"copy_{axis}", params, (size,), (Parallel(axis, n, body, vector=vector),))


def test_every_statement_has_an_emitter():
    # Each is a kernel of its own.
    steps = {language.Sort, language.Search, language.Select, language.Call}
    assert not steps & set(EMITTERS)
    assert set(EMITTERS) | steps == set(language.Statement.__args__)


def test_equal_kernels_compile_once_whatever_their_names():
    backend = CpuBackend()
    loaded = backend.compile_kernels([copy_kernel(), copy_kernel("k", "m"), copy_kernel(vector=8)])
    assert loaded.compiled == 2
    assert loaded.addresses[0] == loaded.addresses[1] != loaded.addresses[2]
    assert backend.compile_kernels([copy_kernel()]).compiled == 0


class Store_(dict):
    """A code store in memory."""

    def put(self, key, payload):
        self[key] = payload


def test_the_store_saves_compilation_and_damage_is_a_miss():
    store = Store_()
    assert CpuBackend().compile_kernels([copy_kernel()], store).compiled == 1
    assert CpuBackend().compile_kernels([copy_kernel()], store).compiled == 0
    (key,) = store
    store[key] = store[key][:-1]
    assert CpuBackend().compile_kernels([copy_kernel()], store).compiled == 1


def test_sizes_in_another_order_are_another_kernel():
    kernel = copy_kernel()
    more = replace(kernel, dims=("z", "n"))
    assert CpuBackend().fingerprint(kernel) != CpuBackend().fingerprint(more)


def test_texts_show_llvm_and_assembly():
    texts = CpuBackend().texts([copy_kernel()])
    assert "define void" in texts["llvm"]
    assert "retq" in texts["asm"]


def test_importing_the_back_end_does_not_load_llvm():
    code = (
        "import sys, tracemill.backends.cpu.backend as b; b.CpuBackend().key;"
        "sys.exit(any(m.split('.')[0] == 'llvmlite' for m in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
