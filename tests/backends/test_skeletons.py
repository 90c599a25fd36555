"""Kernels that differ in their ops share the code of their loops, and each calls its own ops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kernel_runner import Compiled, sym
from tracemill.backends.llvm import outlined, skeletons
from tracemill.backends.llvm.machine import Machine, host_machine, level_machine
from tracemill.backends.llvm.native.loader import Loaded, load
from tracemill.compiler.kernel.kernel import Kernel, Let, Load, Parallel, Parameter, Store
from tracemill.compiler.types import F32, F64, DType

pytestmark = pytest.mark.cpu

n, i = sym("n"), sym("i")
OPS = {"tanh": np.tanh, "sin": np.sin, "square": np.square, "abs": np.abs, "log1p": np.log1p}
PAIRS = [(a, b) for a in OPS for b in OPS]


class Quick(Compiled):
    """One kernel's quick code."""

    def load(self, machine: Machine) -> Loaded:
        return load(skeletons.quick_code(self.kernel, machine))


def layer(first: str, second: str, dtype: DType = F32, vector: int = 8) -> Kernel:
    """out = x + second(first(x) * x)."""
    body = (
        Load("a", "x", (i,), dtype),
        Let("b", first, ("a",), dtype),
        Let("c", "mul", ("b", "a"), dtype),
        Let("d", second, ("c",), dtype),
        Let("e", "add", ("a", "d"), dtype),
        Store("o", (i,), "e"),
    )
    params = (Parameter("x", dtype, (n,), "in"), Parameter("o", dtype, (n,), "out"))
    return Kernel("layer", params, ("n",), (Parallel("i", n, body, vector=vector),))


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    skeletons._compiled.cache_clear()


def made() -> int:
    return skeletons._compiled.cache_info().misses


@pytest.mark.parametrize("level", ["host", "x86-64-v2"])
@pytest.mark.parametrize("dtype", [F32, F64], ids=lambda d: d.name)
def test_one_skeleton_serves_all_ops(dtype: DType, level: str, rng: Any) -> None:
    machine = host_machine() if level == "host" else level_machine(level)
    for count in (1, 8, 29):
        x = rng.uniform(0.01, 3, count).astype(dtype.numpy)
        for a, b in PAIRS:
            out = np.zeros_like(x)
            Quick(layer(a, b, dtype), machine)(x, out, n=count)
            want = x + OPS[b](OPS[a](x) * x)
            np.testing.assert_allclose(out, want, rtol=1e-5 if dtype is F32 else 1e-12)
    assert made() == 1


def test_what_is_not_an_op_is_another_skeleton() -> None:
    kernel = layer("tanh", "sin")
    machine = host_machine()
    loop = kernel.body[0]
    assert isinstance(loop, Parallel)
    for one in (
        kernel,
        layer("tanh", "sin", vector=16),
        layer("tanh", "sin", F64),
        replace(kernel, dims=("z", "n")),
        replace(kernel, body=(replace(loop, threads=True),)),
    ):
        skeletons.quick_code(one, machine)
    assert made() == 5
    skeletons.quick_code(kernel, level_machine("x86-64-v2"))
    assert made() == 6


def test_a_routine_is_compiled_once_for_all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    compile_one = outlined._compile
    monkeypatch.setattr(outlined, "_compiled", {})

    def counted(*given: Any) -> outlined.Routine:
        compiled.append(given)
        return compile_one(*given)

    monkeypatch.setattr(outlined, "_compile", counted)
    codes = [skeletons.quick_code(layer(a, b, vector=16), host_machine()) for a, b in PAIRS]
    assert len(compiled) == len(OPS) + 1  # and the one that asks whether to stop
    assert len({code.code for code in codes}) == len(PAIRS)


def test_equal_kernels_have_equal_quick_code() -> None:
    for a, b in PAIRS[:4]:
        first = skeletons.quick_code(layer(a, b), host_machine()).to_bytes()
        skeletons._compiled.cache_clear()
        skeletons.quick_code(layer(b, a), host_machine())
        assert skeletons.quick_code(layer(a, b), host_machine()).to_bytes() == first
