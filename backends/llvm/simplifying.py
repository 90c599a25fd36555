"""Functions that LLVM's passes improve before code is made: loops around numbers.

Loops over lanes are written as they should run. Loops around numbers are not: tests of indices that
hold in every trip, addresses and what is the same in a loop are found by LLVM's passes.

Invariants: a simplified function calls nothing that it did not call: loops that fill memory stay
loops, as code is linked with nothing that has a `memset`.
Not here: which kernels are like that (loops.py).
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir

_NO_CALLS = '"no-builtins"'
_LEVEL = 1  # that of C compilers; the next one takes twice as long and gains nothing here


class _Attributes(ir.values.FunctionAttributes):  # type: ignore[misc]
    """Attributes with one that llvmlite does not name."""

    _known = ir.values.FunctionAttributes._known | {_NO_CALLS}


def ask_to_simplify(function: ir.Function) -> None:
    """Have a function simplified before code is made of it."""
    function.attributes = _Attributes([*function.attributes, _NO_CALLS])


def simplify_asked(module: llvm.ModuleRef, emitter: llvm.TargetMachine) -> None:
    """Simplify those functions of a module for which that was asked."""
    wanted = [f for f in module.functions if any(b"no-builtins" in a for a in f.attributes)]
    if not wanted:
        return
    options = llvm.create_pipeline_tuning_options(speed_level=_LEVEL)
    builder = llvm.create_pass_builder(emitter, options)
    passes = builder.getFunctionPassManager()
    for function in wanted:
        passes.run(function, builder)
