"""Kernels to object code: one module for several kernels, equal kernels once.

Invariants: the object code is position-independent and refers to nothing outside itself. Equal
kernels and machines give equal code.
Not here: mapping code (native/loader.py), where it is kept (the runtime's cache).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir

from ...compiler.kernel.kernel import Kernel
from ...compiler.records import dataclass
from .emission import emitted, parsed
from .function import emit_kernel
from .machine import Machine, target_machine
from .outlined import Routines
from .uninterrupted import uninterrupted


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """An object file and, for each kernel asked for, the symbol of its function."""

    code: bytes
    symbols: tuple[str, ...]


def build_module(
    kernels: Sequence[Kernel],
    machine: Machine,
    keys: Sequence[str] | None = None,
    routines: Routines | None = None,
) -> tuple[ir.Module, tuple[str, ...]]:
    """The module of `kernels`; kernels with equal `keys` share a function.

    routines: collects those that the kernels call; None where they call none.
    """
    module = ir.Module(name="kernels")
    module.triple = machine.triple
    symbols: dict[str, str] = {}
    named = []
    for position, kernel in enumerate(kernels):
        key = str(position) if keys is None else keys[position]
        if key not in symbols:
            symbols[key] = f"k{len(symbols)}"
            emit_kernel(module, machine, kernel, symbols[key], routines)
        named.append(symbols[key])
    return module, tuple(named)


def compile_module(
    kernels: Sequence[Kernel], machine: Machine, keys: Sequence[str] | None = None, level: int = 2
) -> ObjectCode:
    """Object code for `kernels`."""
    module, symbols = build_module(kernels, machine, keys)
    return ObjectCode(emitted(module, machine, level), symbols)


def texts(kernels: Sequence[Kernel], machine: Machine, level: int = 2) -> Mapping[str, str]:
    """For people: the ``llvm`` and ``asm`` text of kernels."""
    return _texts(build_module(kernels, machine)[0], machine, level)


@uninterrupted()
def _texts(module: ir.Module, machine: Machine, level: int) -> Mapping[str, str]:
    reference = parsed(module, machine)
    return {"llvm": str(reference), "asm": target_machine(machine, level).emit_assembly(reference)}
