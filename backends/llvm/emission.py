"""From a module of llvmlite's to LLVM's own, and to object code.

Invariants: signals are put off meanwhile (`uninterrupted`). The level changes how good the code
is, never what it computes.
Not here: what is in the module (module.py, outlined.py).
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir

from .machine import Machine, target_machine
from .native.language.unit import has_native, simplify
from .simplifying import simplify_asked
from .uninterrupted import uninterrupted


@uninterrupted()
def emitted(module: ir.Module, machine: Machine, level: int) -> bytes:
    """The module as an object file."""
    code: bytes = target_machine(machine, level).emit_object(parsed(module, machine, level))
    return code


def parsed(module: ir.Module, machine: Machine, level: int = 2) -> llvm.ModuleRef:
    """The module as LLVM's own, with the machine's data layout."""
    reference = llvm.parse_assembly(str(module))
    emitter = target_machine(machine, level)
    reference.data_layout = str(emitter.target_data)
    if has_native(module):
        simplify(reference, emitter)
    if level:
        simplify_asked(reference, emitter)
    return reference
