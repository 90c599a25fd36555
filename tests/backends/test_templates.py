"""Kernels that differ in constants share machine code; the bits are those of their own code."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest

import tracemill as tm
from kernel_runner import sym
from tracemill import engine
from tracemill.backends.cpu.backend import CpuBackend
from tracemill.backends.cpu.mapped import filled
from tracemill.backends.cpu.templates import families, template
from tracemill.backends.cpu.worker import compiled
from tracemill.backends.llvm.machine import host_machine, level_machine
from tracemill.backends.llvm.native.objects import LinkError
from tracemill.backends.llvm.slot import Slot
from tracemill.compiler.kernel.kernel import Constant, Kernel, Let, Load, Parallel, Parameter, Store
from tracemill.compiler.types import F32, F64, I64, DType

pytestmark = pytest.mark.cpu

X = np.linspace(-3, 3, 37)


def affine(scale: float, shift: float, dtype: DType = F32) -> Kernel:
    """out = x * scale + shift, the shift inside the loop."""
    n, i = sym("n"), sym("i")
    inner = (
        Load("a", "x", (i,), dtype),
        Constant("d", shift, dtype),
        Let("b", "mul", ("a", "c"), dtype),
        Let("e", "add", ("b", "d"), dtype),
        Store("o", (i,), "e"),
    )
    body = (Constant("c", scale, dtype), Parallel("i", n, inner, vector=8))
    params = (Parameter("x", dtype, (n,), "in"), Parameter("o", dtype, (n,), "out"))
    return Kernel(f"affine_{scale}_{shift}", params, ("n",), body)


def run(address: int, runtime: Any, dtype: DType) -> np.ndarray[Any, Any]:
    x = X.astype(dtype.numpy)
    out = np.zeros_like(x)
    words = (ctypes.c_int64 * 3)(x.ctypes.data, out.ctypes.data, len(x))
    kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)(address)
    control = runtime.control_block()
    kernel(control.address, ctypes.addressof(words), 0, 1)
    return out


@pytest.fixture(scope="module")
def runtime() -> Any:
    return engine.native()


PAIRS = [(1.1 * k + 0.3, math.sqrt(k) + 0.1) for k in range(1, 9)]


@pytest.mark.parametrize("level", ["host", "x86-64-v2", "x86-64-v3"])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_a_copy_computes_the_bits_of_its_own_code(runtime: Any, dtype: DType, level: str) -> None:
    machine = None if level == "host" else level_machine(level)
    together, alone = CpuBackend(machine), CpuBackend(machine)
    kernels = [affine(*pair, dtype) for pair in PAIRS]
    shared = together.compile_kernels(kernels)
    assert shared.compiled == 1
    for pair, kernel, address in zip(PAIRS, kernels, shared.addresses, strict=True):
        own = alone.compile_kernels([kernel])
        assert own.compiled == 1
        result = run(address, runtime, dtype)
        np.testing.assert_array_equal(result, run(own.addresses[0], runtime, dtype))
        scale, shift = (dtype.numpy.type(value) for value in pair)
        np.testing.assert_array_equal(result, X.astype(dtype.numpy) * scale + shift)


def test_numbers_that_code_generation_looks_at_stay() -> None:
    for value in (0.0, -0.0, 1.0, -2.0, 0.25, math.inf, math.nan):
        assert template(affine(value, 1.0)) == (affine(value, 1.0), b"")
    kernel = affine(3.0, 1.0)
    made, words = template(kernel)
    assert made.body[0] == Constant("c", Slot(0), F32)
    assert words == np.float32(3).tobytes() + bytes(4)
    integer = Kernel("k", (), (), (Constant("c", 5, I64),))
    assert template(integer) == (integer, b"")


def test_few_kernels_are_compiled_as_they_are() -> None:
    assert CpuBackend().compile_kernels([affine(*pair) for pair in PAIRS[:3]]).compiled == 3
    mixed = [*(affine(*pair) for pair in PAIRS), affine(3.5, 1.0), affine(1.0, 0.5)]
    assert CpuBackend().compile_kernels(mixed).compiled == 3
    named = {str(number): kernel for number, kernel in enumerate(mixed)}
    chosen = families(named, lambda kernel: repr(kernel.body))
    assert sorted(len(family.members) for family in chosen.values()) == [1, 1, 8]


class Counting(dict[str, bytes]):
    """A store."""

    def put(self, key: str, payload: bytes) -> None:
        self[key] = payload


def test_a_template_is_stored_once(runtime: Any) -> None:
    store = Counting()
    kernels = [affine(*pair) for pair in PAIRS]
    assert CpuBackend().compile_kernels(kernels, store).compiled == 1
    assert len(store) == 1
    others = [affine(scale + 0.7, shift) for scale, shift in PAIRS]
    again = CpuBackend().compile_kernels(others, store)
    assert again.compiled == 0
    result = run(again.addresses[2], runtime, F32)
    scale, shift = map(np.float32, (PAIRS[2][0] + 0.7, PAIRS[2][1]))
    np.testing.assert_array_equal(result, X.astype(np.float32) * scale + shift)
    for key in store:
        store[key] = store[key][:-1]
    assert CpuBackend().compile_kernels(kernels, store).compiled == 1


def test_code_without_a_table_is_refused() -> None:
    with pytest.raises(LinkError):
        filled(compiled(affine(1.0, 2.0), host_machine()), bytes(8))


def test_layers_that_differ_in_numbers_compile_together(rng: np.random.Generator) -> None:
    numbers = rng.uniform(0.1, 2.0, (12, 2)).tolist()

    def network(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        for scale, shift in numbers:
            x = x + np.tanh((x @ w) * scale - x.mean() * shift) / 3.0
        return x

    x, w = rng.normal(size=(5, 7)), rng.normal(size=(7, 7))
    compiled_network = tm.jit(network)
    np.testing.assert_allclose(compiled_network(x, w), network(x, w), rtol=1e-9)
